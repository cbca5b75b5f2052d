//! The loop's cached time. Reading the clock costs about 25 ns, and a request needs the time
//! several times (deadlines, the access log, the Date field); one reading per turn serves them all.

use std::cell::Cell;
use std::time::Duration;

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// How long the offset between the wall clock and the monotonic clock is cached, in µs: a step of
/// the wall clock takes effect after this delay at the latest.
const WALL_OFFSET_MAX_AGE_US: u64 = 100_000;

/// The cached time of one loop: refreshed after each wait for events, once per turn.
#[derive(Debug)]
pub struct Clock {
    now_us: Cell<u64>,
    wall_offset_us: Cell<i64>,
    offset_read_us: Cell<u64>,
}

impl Clock {
    /// A clock set to the current time.
    pub fn new() -> Self {
        let clock = Self {
            now_us: Cell::new(0),
            wall_offset_us: Cell::new(0),
            offset_read_us: Cell::new(0),
        };
        clock.read_offset(monotonic_us());
        clock
    }

    /// The monotonic time of this turn, in µs since an arbitrary point (CLOCK_MONOTONIC).
    #[inline]
    pub fn now_us(&self) -> u64 {
        self.now_us.get()
    }

    /// The monotonic time of this turn, in ms.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.now_us.get() / 1000
    }

    /// The wall clock of this turn, in µs since 1970. A step of the system's clock takes effect
    /// within 100 ms.
    #[inline]
    pub fn wall_us(&self) -> u64 {
        self.now_us.get().saturating_add_signed(self.wall_offset_us.get())
    }

    /// The wall clock of this turn, in whole seconds since 1970, as for a Date field.
    #[inline]
    pub fn wall_s(&self) -> u64 {
        self.wall_us() / 1_000_000
    }

    /// Reads the monotonic clock and caches the result as the time of the turn, in µs.
    pub fn refresh(&self) -> u64 {
        let now = monotonic_us();
        self.now_us.set(now);
        if now.wrapping_sub(self.offset_read_us.get()) >= WALL_OFFSET_MAX_AGE_US {
            self.read_offset(now);
        }
        now
    }

    /// The current monotonic time, in µs; leaves the cached time unchanged.
    #[inline]
    pub fn precise_us(&self) -> u64 {
        monotonic_us()
    }

    /// The current wall-clock time, in µs since 1970.
    pub fn precise_wall_us(&self) -> u64 {
        wall_us()
    }

    fn read_offset(&self, now: u64) {
        self.now_us.set(now);
        self.offset_read_us.set(now);
        self.wall_offset_us.set(wall_us().wrapping_sub(now).cast_signed());
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Whole milliseconds of a duration, rounded up, capped far in the future.
pub(crate) fn ceil_ms(duration: Duration) -> u64 {
    // `as_micros` would cost a 128-bit division per deadline.
    let part_ms = u64::from(duration.subsec_micros()).div_ceil(1000);
    duration.as_secs().saturating_mul(1000).saturating_add(part_ms)
}

/// The current monotonic time, in µs.
pub(crate) fn monotonic_us() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

fn wall_us() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// Calls libc because rustix locates the vDSO by itself, which crashes under valgrind.
fn read(clock: ClockId) -> u64 {
    // Neither clock can fail on Linux.
    clock_gettime(clock).map_or(0, |time| u64::try_from(time.num_microseconds()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_until_refreshed_and_then_moves() {
        let clock = Clock::new();
        let before = clock.now_us();
        std::thread::sleep(Duration::from_millis(3));
        assert_eq!(clock.now_us(), before);
        assert!(clock.precise_us() >= before + 3000);
        assert!(clock.refresh() >= before + 3000);
        assert_eq!(clock.now_ms(), clock.now_us() / 1000);
    }

    #[test]
    fn wall_clock_is_the_systems() {
        let system = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map(|d| d.as_micros() as u64).unwrap_or(0)
        };
        let before = system();
        let clock = Clock::new();
        let after = system();
        assert!((before..=after).contains(&clock.wall_us()));
        assert!(clock.precise_wall_us() >= clock.wall_us().saturating_sub(1000));
    }

    #[test]
    fn milliseconds_round_up() {
        assert_eq!(ceil_ms(Duration::from_micros(1)), 1);
        assert_eq!(ceil_ms(Duration::from_millis(2)), 2);
        assert_eq!(ceil_ms(Duration::MAX), u64::MAX);
    }
}
