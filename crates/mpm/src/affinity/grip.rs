//! Whether a loop (or process) holds on to its CPU: let go when others use it, taken again when it
//! is quiet. A function of what was seen, with hysteresis.

use std::time::{Duration, Instant};

use super::pressure::Doing;

/// A thread that would use less of a CPU than this has no reason to leave it.
const WANTED_LEAST: f64 = 0.10;
/// It waits for its CPU for this share of the time that it could run.
const WAITING_MOST: f64 = 0.20;
/// Others than this server's loops have this share of the CPU.
const FOREIGN_MOST: f64 = 0.15;
/// Another CPU would give it this much more.
const RELIEF_LEAST: f64 = 0.10;
/// So many turns in a row have to say the same.
const TURNS: u32 = 2;
/// Below this share of others a CPU is quiet.
const FOREIGN_QUIET: f64 = 0.08;
/// How long it has to be quiet, at first.
const QUIET_FIRST: Duration = Duration::from_secs(2);
/// The longest that it may have to be quiet.
const QUIET_MAX: Duration = Duration::from_secs(64);
/// Who has to let go again within this time of its return came back too early.
const RELAPSE: Duration = Duration::from_secs(15);

/// What one turn has seen of a loop and its CPU. Shares are of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Time that it ran or waited to.
    pub wanted: f64,
    /// Time that it waited, as a share of `wanted`.
    pub waiting: f64,
    /// What others than this server's loops use of its CPU; `None` where nobody knows.
    pub foreign: Option<f64>,
    /// How much less the least used of the other CPUs is in demand than its own.
    pub relief: f64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Let it run on all CPUs that the server may use.
    Widen,
    /// Bind it to its CPU again.
    Return,
}

/// How a loop holds on to its CPU.
#[derive(Clone, Debug)]
pub(crate) struct Grip {
    is_wide: bool,
    turns: u32,
    quiet_since: Option<Instant>,
    quiet_needed: Duration,
    returned: Option<Instant>,
}

impl Default for Grip {
    fn default() -> Self {
        Self {
            is_wide: false,
            turns: 0,
            quiet_since: None,
            quiet_needed: QUIET_FIRST,
            returned: None,
        }
    }
}

impl Grip {
    /// Whether it has let go.
    pub(crate) fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// Whether a loop waits so long for its CPU that it is worth asking why.
    pub(crate) fn is_held_up(doing: &Doing) -> bool {
        let wanted = doing.run + doing.wait;
        wanted >= WANTED_LEAST && doing.wait >= WAITING_MOST * wanted
    }

    /// Nobody is held up: what was counted against the CPU is forgotten.
    pub(crate) fn rest(&mut self) {
        self.turns = 0;
    }

    /// Decides, given what this turn saw.
    pub(crate) fn turn(&mut self, now: Instant, seen: &Seen) -> Option<Change> {
        match self.is_wide {
            false => self.hold(now, seen),
            true => self.wait(now, seen),
        }
    }

    fn hold(&mut self, now: Instant, seen: &Seen) -> Option<Change> {
        let is_pressed = seen.wanted >= WANTED_LEAST
            && seen.waiting >= WAITING_MOST
            && seen.foreign.is_some_and(|share| share >= FOREIGN_MOST)
            && seen.relief >= RELIEF_LEAST;
        self.turns = if is_pressed { self.turns + 1 } else { 0 };
        if self.turns < TURNS {
            return None;
        }
        let is_relapse = self.returned.is_some_and(|at| now.duration_since(at) < RELAPSE);
        self.quiet_needed =
            if is_relapse { (self.quiet_needed * 2).min(QUIET_MAX) } else { QUIET_FIRST };
        self.is_wide = true;
        self.turns = 0;
        self.quiet_since = None;
        Some(Change::Widen)
    }

    fn wait(&mut self, now: Instant, seen: &Seen) -> Option<Change> {
        if seen.foreign.is_none_or(|share| share >= FOREIGN_QUIET) {
            self.quiet_since = None;
            return None;
        }
        let since = *self.quiet_since.get_or_insert(now);
        if now.duration_since(since) < self.quiet_needed {
            return None;
        }
        self.is_wide = false;
        self.returned = Some(now);
        Some(Change::Return)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(250);
    const PRESSED: Seen = Seen { wanted: 1.0, waiting: 0.5, foreign: Some(0.5), relief: 0.5 };
    const QUIET: Seen = Seen { wanted: 0.5, waiting: 0.02, foreign: Some(0.01), relief: 0.0 };

    /// What came of showing `seen` for `turns` turns, and the time after them.
    fn show(grip: &mut Grip, now: &mut Instant, seen: &Seen, turns: u32) -> Vec<Change> {
        (0..turns)
            .filter_map(|_| {
                *now += TURN;
                grip.turn(*now, seen)
            })
            .collect()
    }

    #[test]
    fn it_lets_go_and_returns() {
        let (mut grip, mut now) = (Grip::default(), Instant::now());
        assert_eq!(show(&mut grip, &mut now, &QUIET, 40), []);
        assert_eq!(show(&mut grip, &mut now, &PRESSED, 40), [Change::Widen]);
        assert!(grip.is_wide());
        assert_eq!(show(&mut grip, &mut now, &QUIET, 8), []);
        assert_eq!(show(&mut grip, &mut now, &QUIET, 40), [Change::Return]);
        assert!(!grip.is_wide());
    }

    #[test]
    fn one_turn_is_no_reason() {
        let (mut grip, mut now) = (Grip::default(), Instant::now());
        for _ in 0..20 {
            assert_eq!(show(&mut grip, &mut now, &PRESSED, 1), []);
            assert_eq!(show(&mut grip, &mut now, &QUIET, 1), []);
        }
        show(&mut grip, &mut now, &PRESSED, 2);
        // Nor is a quiet moment, while it is away.
        for _ in 0..20 {
            assert_eq!(show(&mut grip, &mut now, &QUIET, 6), []);
            assert_eq!(show(&mut grip, &mut now, &PRESSED, 1), []);
        }
    }

    #[test]
    fn every_condition_counts() {
        for seen in [
            Seen { wanted: 0.05, ..PRESSED },
            Seen { waiting: 0.1, ..PRESSED },
            Seen { foreign: Some(0.05), ..PRESSED },
            Seen { foreign: None, ..PRESSED },
            Seen { relief: 0.0, ..PRESSED },
        ] {
            let (mut grip, mut now) = (Grip::default(), Instant::now());
            assert_eq!(show(&mut grip, &mut now, &seen, 40), [], "{seen:?}");
        }
    }

    #[test]
    fn who_comes_back_too_early_waits_longer_each_time() {
        let (mut grip, mut now) = (Grip::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(show(&mut grip, &mut now, &PRESSED, 2), [Change::Widen]);
            let mut turns = 1;
            while show(&mut grip, &mut now, &QUIET, 1).is_empty() {
                turns += 1;
            }
            waits.push((TURN * turns).as_secs());
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 64, 64, 64]);
        // A long time of peace makes it forget.
        assert_eq!(show(&mut grip, &mut now, &QUIET, 100), []);
        show(&mut grip, &mut now, &PRESSED, 2);
        assert_eq!(show(&mut grip, &mut now, &QUIET, 9), [Change::Return]);
    }
}
