//! Rare events, counted for the whole server: deaths, refusals, decisions on affinity.

use std::sync::atomic::Ordering;

use super::Scoreboard;

/// An event in the server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// A child died of a signal or a failure.
    Crashed,
    /// A child was started to replace one that died or had served its share.
    Replaced,
    /// A child that no longer turned was killed.
    Hung,
    /// A child could not be forked.
    ForkFailed,
    /// All workers of the shape were busy, and a connection had to wait.
    ShapeFull,
    /// A companion was started to replace one that died.
    CompanionReplaced,
}

/// The number of [`Event`]s.
pub(super) const EVENTS: usize = Event::ALL.len();

impl Event {
    /// All, by number.
    pub const ALL: [Event; 6] = [
        Event::Crashed,
        Event::Replaced,
        Event::Hung,
        Event::ForkFailed,
        Event::ShapeFull,
        Event::CompanionReplaced,
    ];

    /// The event's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Event::Crashed => "crashed",
            Event::Replaced => "replaced",
            Event::Hung => "hung",
            Event::ForkFailed => "fork_failed",
            Event::ShapeFull => "shape_full",
            Event::CompanionReplaced => "companion_replaced",
        }
    }
}

/// A decision on where loops run and where connections go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Decision {
    /// A loop was pinned.
    Pinned,
    /// A loop's mask was widened because another process uses its CPU.
    Widened,
    /// A loop returned to its CPU, which is quiet again.
    Returned,
    /// A new plan was made because CPUs, mask, cpuset or quota have changed.
    Replanned,
    /// The program that steers new connections was replaced.
    Steered,
    /// A stalled loop gets no new connections.
    Avoided,
    /// A loop that was stalled gets connections again.
    Readmitted,
    /// A loop began to hand connections that it accepts to other loops of its process.
    Handing,
    /// A loop let idle connections migrate to another loop of its process.
    Moving,
}

/// The number of [`Decision`]s.
pub(super) const DECISIONS: usize = Decision::ALL.len();

impl Decision {
    /// All, by number.
    pub const ALL: [Decision; 9] = [
        Decision::Pinned,
        Decision::Widened,
        Decision::Returned,
        Decision::Replanned,
        Decision::Steered,
        Decision::Avoided,
        Decision::Readmitted,
        Decision::Handing,
        Decision::Moving,
    ];

    /// The decision's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Pinned => "pinned",
            Decision::Widened => "widened",
            Decision::Returned => "returned",
            Decision::Replanned => "replanned",
            Decision::Steered => "steered",
            Decision::Avoided => "avoided",
            Decision::Readmitted => "readmitted",
            Decision::Handing => "handing",
            Decision::Moving => "moving",
        }
    }
}

impl Scoreboard {
    /// Counts log lines that were dropped because a pipe was full or broken, or a disk full.
    pub fn count_dropped_log_lines(&self, lines: u64) {
        self.global.tallies.log_lines_dropped.fetch_add(lines, Ordering::Relaxed);
    }

    /// Counts an event. For rare ones: all processes share the counter.
    pub fn count(&self, event: Event) {
        self.count_many(event, 1);
    }

    /// Counts several occurrences of an event.
    pub fn count_many(&self, event: Event, times: u64) {
        self.global.tallies.events[event as usize].fetch_add(times, Ordering::Relaxed);
    }

    /// Counts a decision. For rare ones: all processes share the counter.
    pub fn count_decision(&self, decision: Decision) {
        self.global.tallies.decisions[decision as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_counter_of_its_own() {
        let board = Scoreboard::new(1, 1).unwrap();
        for (index, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, index);
            board.count_many(event, index as u64 + 1);
        }
        for (index, decision) in Decision::ALL.into_iter().enumerate() {
            assert_eq!(decision as usize, index);
            (0..=index).for_each(|_| board.count_decision(decision));
        }
        let snapshot = board.snapshot();
        assert_eq!(snapshot.event(Event::ShapeFull), 5);
        assert_eq!(snapshot.decision(Decision::Moving), 9);
        let all: Vec<u64> = Event::ALL.into_iter().map(|event| snapshot.event(event)).collect();
        assert_eq!(all, [1, 2, 3, 4, 5, 6]);
    }
}
