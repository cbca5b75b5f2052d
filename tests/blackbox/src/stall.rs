//! Detects stalls of the machine. Some responses depend on the time of a request (KeepAliveTimeout,
//! RequestReadTimeout): observations during a stall are no evidence about the server.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The interval at which the watch reads the clock.
const TICK: Duration = Duration::from_millis(10);
/// A tick as late as this is a stall: a tenth of the shortest timeout in the tests.
const LATE: Duration = Duration::from_millis(70);

/// The number of ticks, and of late ones.
static TICKS: AtomicU64 = AtomicU64::new(0);
static STALLS: AtomicU64 = AtomicU64::new(0);

/// A time limit that excludes stalls: it ends when the time is over, and the watch has ticked as
/// often as it does in that time.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    clock: Instant,
    tick: u64,
}

impl Deadline {
    /// Returns a limit that begins now.
    pub fn after(limit: Duration) -> Deadline {
        watch();
        let ticks = u64::try_from(limit.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX);
        let tick = TICKS.load(Ordering::Relaxed).saturating_add(ticks);
        Deadline { clock: Instant::now() + limit, tick }
    }

    /// The least remaining time; `None` if it is over.
    pub fn left(&self) -> Option<Duration> {
        let by_clock = self.clock.saturating_duration_since(Instant::now());
        let ticks = self.tick.saturating_sub(TICKS.load(Ordering::Relaxed));
        let by_ticks = TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
        Some(by_clock.max(by_ticks)).filter(|left| !left.is_zero())
    }
}

/// Reads the clock on a thread of its own, for the life of the process.
fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| drop(std::thread::spawn(look)));
}

fn look() {
    loop {
        let before = Instant::now();
        std::thread::sleep(TICK);
        TICKS.fetch_add(1, Ordering::Relaxed);
        if before.elapsed() >= TICK + LATE {
            STALLS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The number of stalls so far.
pub fn count() -> u64 {
    watch();
    // A stall that has just ended is known after the next tick.
    std::thread::sleep(2 * TICK);
    STALLS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Deadline;

    #[test]
    fn a_deadline_ends_and_not_before_its_time() {
        let (limit, began) = (Duration::from_millis(50), Instant::now());
        let deadline = Deadline::after(limit);
        while let Some(left) = deadline.left() {
            std::thread::sleep(left);
        }
        assert!(began.elapsed() >= limit);
    }
}
