//! What `maxtotal` needs of a worker's state.

use std::sync::atomic::Ordering::Relaxed;

use super::super::lock::own_process;
use super::{At, State, take};

/// How long a request that waits for a connection is known to wait, ms: more than its pause.
const WANTED_MS: u64 = 100;
/// The part of a word that is a time.
const LOW: u64 = u32::MAX as u64;

/// Open connections of all processes (`maxtotal`).
impl State {
    /// Counts a connection, if there are fewer than `limit`.
    pub fn open_one(&self, limit: u64) -> bool {
        let more = |open: u64| (open < limit).then_some(open + 1);
        let is_open = self.word(At::Open).fetch_update(Relaxed, Relaxed, more).is_ok();
        if is_open && let Some(own) = self.own_open.get() {
            own.fetch_add(1, Relaxed);
        }
        is_open
    }

    /// Counts it no longer.
    pub fn close_one(&self) {
        take(self.word(At::Open), 1);
        if let Some(own) = self.own_open.get() {
            own.fetch_sub(1, Relaxed);
        }
    }

    /// Notes that a request of this process waits for a connection of any other.
    pub fn want(&self, now_ms: u64) {
        let process = u64::from(own_process());
        self.word(At::Wanted).store(process << 32 | now_ms & LOW, Relaxed);
    }

    /// Whether a request of another process has just waited.
    pub fn is_wanted(&self, now_ms: u64) -> bool {
        let wanted = self.get(At::Wanted);
        let passed = (now_ms & LOW).wrapping_sub(wanted & LOW) & LOW;
        wanted > 0 && wanted >> 32 != u64::from(own_process()) && passed <= WANTED_MS
    }
}
