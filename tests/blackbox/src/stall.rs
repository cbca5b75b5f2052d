//! Whether the machine stands still. Some answers depend on when a request comes (KeepAliveTimeout,
//! RequestReadTimeout): what is seen while nobody gets a CPU says nothing about the server.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the watch looks at the clock.
const TICK: Duration = Duration::from_millis(10);
/// A tick that comes so late is a stall: a tenth of what the shortest of the tests' timeouts is.
const LATE: Duration = Duration::from_millis(70);

/// The watch's looks at the clock, and those that came too late.
static TICKS: AtomicU64 = AtomicU64::new(0);
static STALLS: AtomicU64 = AtomicU64::new(0);

/// A time limit that leaves out what the machine stood still: it ends when the clock says so, and
/// the watch has looked as often as it does in that time.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    clock: Instant,
    tick: u64,
}

impl Deadline {
    /// The limit, from now.
    pub fn after(limit: Duration) -> Deadline {
        watch();
        let ticks = u64::try_from(limit.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX);
        let tick = TICKS.load(Ordering::Relaxed).saturating_add(ticks);
        Deadline { clock: Instant::now() + limit, tick }
    }

    /// How long it lasts at least; `None` when it is over.
    pub fn left(&self) -> Option<Duration> {
        let by_clock = self.clock.saturating_duration_since(Instant::now());
        let ticks = self.tick.saturating_sub(TICKS.load(Ordering::Relaxed));
        let by_ticks = TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
        Some(by_clock.max(by_ticks)).filter(|left| !left.is_zero())
    }
}

/// Looks at the clock from now on, on a thread of its own, as long as the process lives.
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

/// How often the machine has stood still up to now.
pub fn count() -> u64 {
    watch();
    // A stall that has just ended is known after the watch's next look.
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
