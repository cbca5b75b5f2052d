//! A shape at its limit, or near it: logged repeatedly at an interval, and counted.

use std::time::{Duration, Instant};

use super::Supervisor;
use crate::program::Level;
use crate::scoreboard::Event;
use crate::shape::Shape;

/// How often the same message is logged.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How close a shape is to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fullness {
    /// Fewer workers are left than the reserve requires.
    Near,
    /// No worker is left.
    Reached,
}

/// What has been logged. As in Apache, the two messages are independent of each other.
#[derive(Default)]
pub(super) struct FullLog {
    near: Said,
    reached: Said,
}

/// When a message was last logged, and how often it has applied since.
#[derive(Default)]
struct Said {
    at: Option<Instant>,
    since: u64,
}

impl Said {
    /// Counts an occurrence. If the message is due, returns the number of occurrences since the
    /// last.
    fn seen(&mut self, now: Instant) -> Option<u64> {
        self.since += 1;
        if self.at.is_some_and(|at| now.saturating_duration_since(at) < TOLD_EVERY) {
            return None;
        }
        self.at = Some(now);
        Some(std::mem::take(&mut self.since))
    }
}

impl FullLog {
    /// The number and text of the line to log now, if one is due.
    fn line(&mut self, shape: &Shape, how: Fullness, now: Instant) -> Option<(u32, String)> {
        let said = match how {
            Fullness::Near => &mut self.near,
            Fullness::Reached => &mut self.reached,
        };
        let (number, text) = text(shape, how);
        Some(match said.seen(now)? {
            1 => (number, text.to_owned()),
            count => (number, format!("{text} (seen {count} times since last logged)")),
        })
    }
}

impl Supervisor<'_> {
    /// Handles a loop of event that accepts no more connections for now, or is near that.
    pub(super) fn loop_is_full(&mut self, how: Fullness) {
        if how == Fullness::Reached {
            self.board.count(Event::ShapeFull);
        }
        self.tell_full(how, Instant::now());
    }

    pub(super) fn tell_full(&mut self, how: Fullness, now: Instant) {
        let Some(generation) = self.current.as_ref().or(self.staged.as_ref()) else { return };
        if let Some((number, text)) = self.full.line(&generation.settings.shape, how, now) {
            self.program.log(Level::Error, number, &text);
        }
    }
}

/// Apache's text and number.
fn text(shape: &Shape, how: Fullness) -> (u32, &'static str) {
    const REACHED: &str =
        "server reached MaxRequestWorkers setting, consider raising the MaxRequestWorkers setting";
    const NEAR: &str = "server is within MinSpareThreads of MaxRequestWorkers, consider raising \
                        the MaxRequestWorkers setting";
    match (shape, how) {
        // Prefork has this message only.
        (Shape::Prefork { .. }, _) => (161, REACHED),
        (Shape::Worker { .. }, Fullness::Reached) => (286, REACHED),
        (Shape::Worker { .. }, Fullness::Near) => (287, NEAR),
        (Shape::Event { .. } | Shape::Loop, Fullness::Reached) => (484, REACHED),
        (Shape::Event { .. } | Shape::Loop, Fullness::Near) => (10159, NEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_a_minute_with_a_count() {
        let mut log = FullLog::default();
        let shape = Shape::Worker { processes: 1, threads: 2 };
        let start = Instant::now();
        let mut line = |how, second| log.line(&shape, how, start + Duration::from_secs(second));
        let near = |count: &str| {
            let text = "server is within MinSpareThreads of MaxRequestWorkers, consider raising \
                        the MaxRequestWorkers setting";
            Some((287, format!("{text}{count}")))
        };
        assert_eq!(line(Fullness::Near, 0), near(""));
        for second in 1..60 {
            assert_eq!(line(Fullness::Near, second), None, "{second}");
        }
        assert_eq!(line(Fullness::Near, 60), near(" (seen 60 times since last logged)"));
        assert_eq!(line(Fullness::Near, 119), None);
        assert_eq!(line(Fullness::Near, 500), near(" (seen 2 times since last logged)"));
        assert_eq!(line(Fullness::Near, 600), near(""));
    }

    #[test]
    fn to_be_near_is_not_to_be_full() {
        let mut log = FullLog::default();
        let now = Instant::now();
        let loops = Shape::Event { processes: 1, loops: 2 };
        for (how, number) in [(Fullness::Near, 10159), (Fullness::Reached, 484)] {
            assert_eq!(log.line(&loops, how, now).map(|line| line.0), Some(number));
            assert_eq!(log.line(&loops, how, now), None);
        }
    }
}
