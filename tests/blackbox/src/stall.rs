//! Whether the machine stands still. Some answers depend on when a request comes (KeepAliveTimeout,
//! RequestReadTimeout): what is seen while nobody gets a CPU says nothing about the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the watch looks at the clock.
const TICK: Duration = Duration::from_millis(10);
/// A tick that comes so late is a stall: a tenth of what the shortest of the tests' timeouts is.
const LATE: Duration = Duration::from_millis(70);

/// Ticks that came too late.
static STALLS: AtomicU64 = AtomicU64::new(0);

/// Looks at the clock from now on, on a thread of its own, as long as the process lives.
pub fn watch() {
    std::thread::spawn(look);
}

fn look() {
    loop {
        let before = Instant::now();
        std::thread::sleep(TICK);
        if before.elapsed() >= TICK + LATE {
            STALLS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How often the machine has stood still up to now.
pub fn count() -> u64 {
    // A stall that has just ended is known after the watch's next look.
    std::thread::sleep(2 * TICK);
    STALLS.load(Ordering::Relaxed)
}
