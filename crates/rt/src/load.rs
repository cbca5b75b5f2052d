//! How busy a loop is, for the other loops of its process to see.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

/// How often a reader begins anew because the loop fell asleep or woke up meanwhile.
const TRIES_MAX: usize = 4;

/// A loop's load. The loop alone writes it, twice a turn, with plain stores; anybody may read it at
/// any time, and sees a turn that has not ended as well.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Load {
    /// Time in turns that are over, µs.
    busy_us: AtomicU64,
    /// When the present turn began, in µs on the monotonic clock; 0 while the loop waits.
    began_us: AtomicU64,
}

impl Load {
    /// All the time that the loop did not wait for events, up to this moment, in µs.
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

    /// How long the present turn has taken up to now, in µs; 0 while the loop waits for events.
    pub fn turn_us(&self) -> u64 {
        match self.began_us.load(Ordering::Acquire) {
            0 => 0,
            began_us => clock::monotonic_us().saturating_sub(began_us),
        }
    }

    /// A turn begins.
    pub(crate) fn begin(&self, now_us: u64) {
        self.began_us.store(now_us, Ordering::Release);
    }

    /// The turn is over.
    pub(crate) fn end(&self, now_us: u64) {
        let turn_us = now_us.saturating_sub(self.began_us.load(Ordering::Relaxed));
        // In this order: a reader may miss a turn for a moment, and never counts it twice.
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
