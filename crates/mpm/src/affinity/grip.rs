//! Whether a loop (or process) holds on to its CPU: let go when others use it and time is left
//! elsewhere, taken again when it is quiet, or when nothing is left elsewhere. A function of what
//! was seen, with hysteresis.

use std::time::{Duration, Instant};

use super::pressure::Doing;

/// A thread that would use less of a CPU than this has no reason to leave it.
const WANTED_LEAST: f64 = 0.10;
/// It waits for its CPU for this share of the time that it could run.
const WAITING_MOST: f64 = 0.20;
/// Others than this server's loops have this share of the CPU.
const FOREIGN_MOST: f64 = 0.15;
/// This share of another CPU is left over. Where all CPUs are used up, who is bound to one gets
/// the part of it that the kernel owes him; who may run anywhere meets the server's other loops,
/// and leaves it to the others.
const ROOM_LEAST: f64 = 0.15;
/// With less than this left over elsewhere it is no better off there.
const ROOM_NONE: f64 = 0.05;
/// Unless it waited for its own CPU for this share of the time that it could run: what the kernel
/// owes it there is well below a half, and less than what it gets anywhere else.
const STARVED: f64 = 0.60;
/// So many turns in a row have to say the same.
const TURNS: u32 = 2;
/// How long nothing has to be left over elsewhere, at first.
const CROWDED_FIRST: Duration = Duration::from_millis(500);
/// How long it stays on its CPU after that, at first.
const STAY_FIRST: Duration = Duration::from_secs(1);
/// The longest of both.
const TRIAL_MAX: Duration = Duration::from_secs(64);
/// The server ran so much more while it had let go: what was left over nowhere, the server used.
const GAIN_LEAST: f64 = 0.05;
/// Below this share of others a CPU is quiet.
const FOREIGN_QUIET: f64 = 0.08;
/// How long it has to be quiet, at first.
const QUIET_FIRST: Duration = Duration::from_secs(2);
/// The longest that it may have to be quiet.
const QUIET_MAX: Duration = Duration::from_secs(64);
/// Who has to let go again within this time of its return came back too early; who finds nothing
/// left over again within this time of having stayed has not stayed long enough.
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
    /// What is left over of the least used of the other CPUs; `None` where nobody knows.
    pub room: Option<f64>,
    /// What all loops of the server ran.
    pub total: f64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Let it run on all CPUs that the server may use.
    Widen,
    /// Bind it to its CPU again, which is quiet.
    Return,
    /// Bind it to its CPU again: there is nothing left over elsewhere.
    Retreat,
}

/// How a loop holds on to its CPU.
#[derive(Clone, Debug)]
pub(crate) struct Grip {
    is_wide: bool,
    /// Its own CPU had next to nothing for it when it let go.
    was_starved: bool,
    /// Turns in a row that spoke for a change.
    turns: u32,
    quiet_since: Option<Instant>,
    quiet_needed: Duration,
    returned: Option<Instant>,
    /// How long nothing has to be left over elsewhere, and since when there is nothing.
    crowded_needed: Duration,
    crowded_since: Option<Instant>,
    /// What the server ran then.
    total_wide: f64,
    /// How long it stays, and until when it does.
    stay: Duration,
    stays_until: Option<Instant>,
}

impl Default for Grip {
    fn default() -> Self {
        Self {
            is_wide: false,
            was_starved: false,
            turns: 0,
            quiet_since: None,
            quiet_needed: QUIET_FIRST,
            returned: None,
            crowded_needed: CROWDED_FIRST,
            crowded_since: None,
            total_wide: 0.0,
            stay: STAY_FIRST,
            stays_until: None,
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
            && seen.room.is_some_and(|share| share >= ROOM_LEAST)
            && self.stays_until.is_none_or(|until| now >= until);
        self.turns = if is_pressed { self.turns + 1 } else { 0 };
        if self.turns < TURNS {
            return None;
        }
        let is_relapse = self.returned.is_some_and(|at| now.duration_since(at) < RELAPSE);
        self.quiet_needed =
            if is_relapse { (self.quiet_needed * 2).min(QUIET_MAX) } else { QUIET_FIRST };
        self.judge_stay(now, seen);
        self.is_wide = true;
        self.was_starved = seen.waiting >= STARVED;
        self.turns = 0;
        self.quiet_since = None;
        self.crowded_since = None;
        Some(Change::Widen)
    }

    fn wait(&mut self, now: Instant, seen: &Seen) -> Option<Change> {
        let is_quiet = seen.foreign.is_some_and(|share| share < FOREIGN_QUIET);
        let quiet_since = is_quiet.then(|| self.quiet_since.unwrap_or(now));
        self.quiet_since = quiet_since;
        if quiet_since.is_some_and(|since| now.duration_since(since) >= self.quiet_needed) {
            self.returned = Some(now);
            return Some(self.bind(Change::Return));
        }
        let is_crowded = !self.was_starved
            && seen.wanted >= WANTED_LEAST
            && seen.room.is_some_and(|share| share < ROOM_NONE);
        let crowded_since = is_crowded.then(|| self.crowded_since.unwrap_or(now));
        self.crowded_since = crowded_since;
        if crowded_since.is_none_or(|since| now.duration_since(since) < self.crowded_needed) {
            return None;
        }
        self.total_wide = seen.total;
        self.stays_until = Some(now + self.stay);
        Some(self.bind(Change::Retreat))
    }

    /// It is about to let go again: whether it was right to have gone back before. Nothing is left
    /// over elsewhere either because the loop only pushes others aside there, or because it uses
    /// what there was. What the server runs as a whole tells which.
    fn judge_stay(&mut self, now: Instant, seen: &Seen) {
        let is_trial = self.stays_until.is_some_and(|at| now.duration_since(at) < RELAPSE);
        let was_better_off = seen.total + GAIN_LEAST < self.total_wide;
        (self.stay, self.crowded_needed) = match (is_trial, was_better_off) {
            (false, _) => (STAY_FIRST, CROWDED_FIRST),
            (true, false) => ((self.stay * 2).min(TRIAL_MAX), CROWDED_FIRST),
            (true, true) => (STAY_FIRST, (self.crowded_needed * 2).min(TRIAL_MAX)),
        };
    }

    fn bind(&mut self, change: Change) -> Change {
        self.is_wide = false;
        self.turns = 0;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(250);
    const PRESSED: Seen =
        Seen { wanted: 1.0, waiting: 0.5, foreign: Some(0.5), room: Some(0.5), total: 1.0 };
    const QUIET: Seen = Seen { wanted: 0.5, waiting: 0.02, foreign: Some(0.01), ..PRESSED };
    const CROWDED: Seen = Seen { room: Some(0.01), ..PRESSED };

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
            Seen { room: Some(0.1), ..PRESSED },
            Seen { room: None, ..PRESSED },
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

    #[test]
    fn where_nothing_is_left_over_it_is_better_off_at_home() {
        let (mut grip, mut now) = (Grip::default(), Instant::now());
        let mut stays = Vec::new();
        for _ in 0..9 {
            let mut turns = 0;
            while show(&mut grip, &mut now, &PRESSED, 1).is_empty() {
                turns += 1;
            }
            stays.push((TURN * turns).as_secs());
            // A moment does not count, nor does a loop without work.
            assert_eq!(show(&mut grip, &mut now, &CROWDED, 2), []);
            assert_eq!(show(&mut grip, &mut now, &Seen { wanted: 0.0, ..CROWDED }, 9), []);
            assert_eq!(show(&mut grip, &mut now, &PRESSED, 9), []);
            assert_eq!(show(&mut grip, &mut now, &CROWDED, 2), []);
            assert_eq!(show(&mut grip, &mut now, &CROWDED, 1), [Change::Retreat]);
            assert!(!grip.is_wide());
        }
        assert_eq!(stays, [0, 1, 2, 4, 8, 16, 32, 64, 64], "it stays longer each time");
        // A long time of peace makes it forget.
        assert_eq!(show(&mut grip, &mut now, &QUIET, 400), []);
        assert_eq!(show(&mut grip, &mut now, &PRESSED, 2), [Change::Widen]);
    }

    #[test]
    fn who_would_starve_at_home_stays_away_until_it_is_quiet() {
        let (mut grip, mut now) = (Grip::default(), Instant::now());
        let starved = Seen { waiting: 0.8, foreign: Some(0.8), ..PRESSED };
        assert_eq!(show(&mut grip, &mut now, &starved, 2), [Change::Widen]);
        assert_eq!(show(&mut grip, &mut now, &CROWDED, 400), []);
        assert_eq!(show(&mut grip, &mut now, &QUIET, 9), [Change::Return]);
        // The next time it is judged anew.
        assert_eq!(show(&mut grip, &mut now, &PRESSED, 2), [Change::Widen]);
        assert_eq!(show(&mut grip, &mut now, &CROWDED, 3), [Change::Retreat]);
    }

    #[test]
    fn who_uses_what_there_is_goes_back_less_and_less_often() {
        let (mut grip, mut now) = (Grip::default(), Instant::now());
        // All that the other CPU had left the loop runs now, where it got a quarter of its own.
        let crowded = Seen { total: 1.0, ..CROWDED };
        let pressed = Seen { total: 0.55, ..PRESSED };
        let mut aways = Vec::new();
        for _ in 0..9 {
            while show(&mut grip, &mut now, &pressed, 1).is_empty() {}
            let mut turns = 0;
            while show(&mut grip, &mut now, &crowded, 1).is_empty() {
                turns += 1;
            }
            aways.push((TURN * turns).as_millis());
        }
        assert_eq!(aways, [500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 64000]);
    }
}
