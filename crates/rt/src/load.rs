//! How busy a loop is, readable by the other loops of its process.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

/// How often a read is retried because the loop went to sleep or woke up meanwhile.
const TRIES_MAX: usize = 4;

/// A loop's load. Only the loop writes it, twice a turn, with plain stores. Any thread may read it
/// at any time; the reading includes a turn that has not ended.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Load {
    /// Time spent in completed turns, µs.
    busy_us: AtomicU64,
    /// When the current turn began, in µs on the monotonic clock; 0 while the loop waits.
    began_us: AtomicU64,
}

impl Load {
    /// The time that the loop has not spent waiting for events, in µs.
    pub fn busy_us(&self) -> u64 {
        let mut busy_us = self.busy_us.load(Ordering::Acquire);
        for _ in 0..TRIES_MAX {
            let turn_us = self.turn_us();
            let again_us = self.busy_us.load(Ordering::Acquire);
            if again_us == busy_us {
                return busy_us + turn_us;
            }
            busy_us = again_us;
        }
        busy_us
    }

    /// How long the current turn has taken so far, in µs; 0 while the loop waits for events.
    pub fn turn_us(&self) -> u64 {
        match self.began_us.load(Ordering::Acquire) {
            0 => 0,
            began_us => clock::monotonic_us().saturating_sub(began_us),
        }
    }

    /// Marks the beginning of a turn.
    pub(crate) fn begin(&self, now_us: u64) {
        self.began_us.store(now_us, Ordering::Release);
    }

    /// Marks the end of the turn.
    pub(crate) fn end(&self, now_us: u64) {
        let turn_us = now_us.saturating_sub(self.began_us.load(Ordering::Relaxed));
        // The order matters: a reader may miss a turn briefly but never counts it twice.
        self.began_us.store(0, Ordering::Release);
        let busy_us = self.busy_us.load(Ordering::Relaxed);
        self.busy_us.store(busy_us + turn_us, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_count_also_before_they_end() {
        let load = Load::default();
        assert_eq!((load.busy_us(), load.turn_us()), (0, 0));
        load.begin(1000);
        load.end(1700);
        assert_eq!((load.busy_us(), load.turn_us()), (700, 0));
        load.begin(clock::monotonic_us() - 50_000);
        assert!(load.turn_us() >= 50_000);
        assert!(load.busy_us() >= 50_700);
    }
}
