//! A shape that is full, or nearly so: said in the error log, again from time to time, and counted.

use std::time::{Duration, Instant};

use super::Supervisor;
use crate::program::Level;
use crate::scoreboard::Event;
use crate::shape::Shape;

/// How often the log says the same of these.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How full a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fullness {
    /// Fewer threads are left than there are to be in reserve.
    Near,
    /// None is left.
    Reached,
}

/// What the log has said of it. One does not keep the other from being said, as in Apache.
#[derive(Default)]
pub(super) struct FullLog {
    near: Said,
    reached: Said,
}

/// When something was said last, and how often it has been seen since.
#[derive(Default)]
struct Said {
    at: Option<Instant>,
    since: u64,
}

impl Said {
    /// It is seen once more: how often since it was said last, when it is to be said now.
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
    /// The number and text of the line that is due now, if one is.
    fn line(&mut self, shape: &Shape, how: Fullness, now: Instant) -> Option<(u32, String)> {
        let said = match how {
            Fullness::Near => &mut self.near,
            Fullness::Reached => &mut self.reached,
        };
        let (number, text) = text(shape, how);
        Some(match said.seen(now)? {
            1 => (number, text.to_owned()),
            count => (number, format!("{text} (seen {count} times since this was said last)")),
        })
    }
}

impl Supervisor<'_> {
    /// A loop of event takes no more connections for now, or is near that.
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

/// Apache's words and number.
fn text(shape: &Shape, how: Fullness) -> (u32, &'static str) {
    const REACHED: &str =
        "server reached MaxRequestWorkers setting, consider raising the MaxRequestWorkers setting";
    const NEAR: &str = "server is within MinSpareThreads of MaxRequestWorkers, consider raising \
                        the MaxRequestWorkers setting";
    match (shape, how) {
        // It has no other words.
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
        assert_eq!(line(Fullness::Near, 60), near(" (seen 60 times since this was said last)"));
        assert_eq!(line(Fullness::Near, 119), None);
        assert_eq!(line(Fullness::Near, 500), near(" (seen 2 times since this was said last)"));
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
