//! Decides whether a loop (or process) stays pinned to its CPU. It is unpinned if other programs
//! use its CPU and another CPU has idle time, and pinned again if its CPU is quiet, or if no other
//! CPU has idle time. A function of samples, with hysteresis.

use std::time::{Duration, Instant};

use super::pressure::Activity;

/// A thread that wants less than this share of a CPU has no reason to leave it.
const WANTED_LEAST: f64 = 0.10;
/// It waits for its CPU for at least this share of the time that it is runnable.
const WAITING_MOST: f64 = 0.20;
/// Other programs use at least this share of the CPU.
const FOREIGN_MOST: f64 = 0.15;
/// Another CPU has at least this share idle. If all CPUs are used up, a pinned loop gets the share
/// that the kernel's scheduler grants it, while an unpinned one competes with the server's other
/// loops and leaves its CPU to other programs.
const ROOM_LEAST: f64 = 0.15;
/// With less than this idle elsewhere, it is no better off there.
const ROOM_NONE: f64 = 0.05;
/// Except if it waited for its own CPU for at least this share of the time that it was runnable:
/// the share granted there is then well below a half, and less than it gets anywhere else.
const STARVED: f64 = 0.60;
/// The number of consecutive turns that must agree.
const TURNS: u32 = 2;
/// How long no other CPU must have idle time before it returns, initially.
const CROWDED_FIRST: Duration = Duration::from_millis(500);
/// How long it then stays on its CPU, initially.
const STAY_FIRST: Duration = Duration::from_secs(1);
/// The limit of both.
const TRIAL_MAX: Duration = Duration::from_secs(64);
/// The server ran this much more while the loop was unpinned: it used the idle time itself.
const GAIN_LEAST: f64 = 0.05;
/// A CPU of which other programs use less than this share is quiet.
const FOREIGN_QUIET: f64 = 0.08;
/// How long it must be quiet, initially.
const QUIET_FIRST: Duration = Duration::from_secs(2);
/// The limit of that.
const QUIET_MAX: Duration = Duration::from_secs(64);
/// A loop that must be unpinned again within this time of its return came back too early. A loop
/// that finds no idle time elsewhere again within this time of its stay has not stayed long enough.
const RELAPSE: Duration = Duration::from_secs(15);

/// One turn's sample of a loop and its CPU. Shares are of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Time that it ran or waited to run.
    pub wanted: f64,
    /// The waiting part of `wanted`.
    pub waiting: f64,
    /// The use of its CPU by other programs; `None` if unknown.
    pub foreign: Option<f64>,
    /// The idle share of the least used other CPU; `None` if unknown.
    pub room: Option<f64>,
    /// The time that all loops of the server ran.
    pub total: f64,
}

/// A change of the pinning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Let it run on all CPUs that the server may use.
    Widen,
    /// Pin it to its CPU again, which is quiet.
    Return,
    /// Pin it to its CPU again: no other CPU has idle time.
    Retreat,
}

/// Whether a loop is pinned, with what counts towards a change.
#[derive(Clone, Copy, Debug)]
enum State {
    Pinned {
        /// Consecutive turns in which other programs held the loop up.
        pressed_turns: u32,
    },
    Unpinned {
        /// Its own CPU left it next to nothing when it was unpinned.
        was_starved: bool,
        /// Since when its CPU has been quiet.
        quiet_since: Option<Instant>,
        /// Since when no other CPU has had idle time.
        crowded_since: Option<Instant>,
    },
}

/// The last return for want of idle time elsewhere.
#[derive(Clone, Copy, Debug)]
struct Retreat {
    /// Until when the loop stays on its CPU.
    stays_until: Instant,
    /// The time that the server ran while the loop was unpinned.
    total_wide: f64,
}

/// The pinning policy of a loop.
#[derive(Clone, Debug)]
pub(crate) struct PinPolicy {
    state: State,
    /// How long its CPU must be quiet before it returns.
    quiet_needed: Duration,
    /// How long no other CPU must have idle time before it retreats.
    crowded_needed: Duration,
    /// How long it stays after a retreat.
    stay: Duration,
    /// When it last returned to a quiet CPU.
    returned: Option<Instant>,
    retreat: Option<Retreat>,
}

impl Default for PinPolicy {
    fn default() -> Self {
        Self {
            state: State::Pinned { pressed_turns: 0 },
            quiet_needed: QUIET_FIRST,
            crowded_needed: CROWDED_FIRST,
            stay: STAY_FIRST,
            returned: None,
            retreat: None,
        }
    }
}

impl PinPolicy {
    /// Whether it is unpinned.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self.state, State::Unpinned { .. })
    }

    /// Whether a loop waits long enough for its CPU to examine why.
    pub(crate) fn is_held_up(activity: &Activity) -> bool {
        let wanted = activity.run + activity.wait;
        wanted >= WANTED_LEAST && activity.wait >= WAITING_MOST * wanted
    }

    /// The loop is not delayed: discards what was counted against its CPU.
    pub(crate) fn rest(&mut self) {
        if let State::Pinned { pressed_turns } = &mut self.state {
            *pressed_turns = 0;
        }
    }

    /// Decides, given this turn's sample.
    pub(crate) fn turn(&mut self, now: Instant, sample: &Sample) -> Option<Change> {
        match self.state {
            State::Pinned { pressed_turns } => self.hold(now, sample, pressed_turns),
            State::Unpinned { was_starved, quiet_since, crowded_since } => {
                // Each time counts from the first of consecutive turns for which it holds.
                let is_quiet = sample.foreign.is_some_and(|share| share < FOREIGN_QUIET);
                let is_crowded = !was_starved
                    && sample.wanted >= WANTED_LEAST
                    && sample.room.is_some_and(|share| share < ROOM_NONE);
                let quiet_since = is_quiet.then(|| quiet_since.unwrap_or(now));
                let crowded_since = is_crowded.then(|| crowded_since.unwrap_or(now));
                self.state = State::Unpinned { was_starved, quiet_since, crowded_since };
                self.wait(now, sample, quiet_since, crowded_since)
            }
        }
    }

    fn hold(&mut self, now: Instant, sample: &Sample, pressed_turns: u32) -> Option<Change> {
        let is_pressed = sample.wanted >= WANTED_LEAST
            && sample.waiting >= WAITING_MOST
            && sample.foreign.is_some_and(|share| share >= FOREIGN_MOST)
            && sample.room.is_some_and(|share| share >= ROOM_LEAST)
            && self.retreat.is_none_or(|retreat| now >= retreat.stays_until);
        let pressed_turns = if is_pressed { pressed_turns + 1 } else { 0 };
        if pressed_turns < TURNS {
            self.state = State::Pinned { pressed_turns };
            return None;
        }
        let is_relapse = self.returned.is_some_and(|at| now.duration_since(at) < RELAPSE);
        self.quiet_needed =
            if is_relapse { (self.quiet_needed * 2).min(QUIET_MAX) } else { QUIET_FIRST };
        self.judge_stay(now, sample);
        let was_starved = sample.waiting >= STARVED;
        self.state = State::Unpinned { was_starved, quiet_since: None, crowded_since: None };
        Some(Change::Widen)
    }

    fn wait(
        &mut self,
        now: Instant,
        sample: &Sample,
        quiet_since: Option<Instant>,
        crowded_since: Option<Instant>,
    ) -> Option<Change> {
        let lasts = |since: Option<Instant>, needed: Duration| {
            since.is_some_and(|since| now.duration_since(since) >= needed)
        };
        if lasts(quiet_since, self.quiet_needed) {
            self.returned = Some(now);
            self.state = State::Pinned { pressed_turns: 0 };
            return Some(Change::Return);
        }
        if lasts(crowded_since, self.crowded_needed) {
            let stays_until = now + self.stay;
            self.retreat = Some(Retreat { stays_until, total_wide: sample.total });
            self.state = State::Pinned { pressed_turns: 0 };
            return Some(Change::Retreat);
        }
        None
    }

    /// Called when the loop is about to be unpinned again: judges whether its retreat was right.
    /// No other CPU has idle time either because the loop only displaces others there, or because
    /// it uses the idle time. The running time of the whole server tells the two apart.
    fn judge_stay(&mut self, now: Instant, sample: &Sample) {
        let is_trial = |retreat: &Retreat| now.duration_since(retreat.stays_until) < RELAPSE;
        (self.stay, self.crowded_needed) = match self.retreat.filter(is_trial) {
            None => (STAY_FIRST, CROWDED_FIRST),
            // The server ran more while the loop was away: let it stay away longer.
            Some(retreat) if sample.total + GAIN_LEAST < retreat.total_wide => {
                (STAY_FIRST, (self.crowded_needed * 2).min(TRIAL_MAX))
            }
            Some(_) => ((self.stay * 2).min(TRIAL_MAX), CROWDED_FIRST),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(250);
    const PRESSED: Sample =
        Sample { wanted: 1.0, waiting: 0.5, foreign: Some(0.5), room: Some(0.5), total: 1.0 };
    const QUIET: Sample = Sample { wanted: 0.5, waiting: 0.02, foreign: Some(0.01), ..PRESSED };
    const CROWDED: Sample = Sample { room: Some(0.01), ..PRESSED };

    /// Feeds `sample` for `turns` turns; returns the changes and advances `now`.
    fn show(pin: &mut PinPolicy, now: &mut Instant, sample: &Sample, turns: u32) -> Vec<Change> {
        (0..turns)
            .filter_map(|_| {
                *now += TURN;
                pin.turn(*now, sample)
            })
            .collect()
    }

    #[test]
    fn it_lets_go_and_returns() {
        let (mut pin, mut now) = (PinPolicy::default(), Instant::now());
        assert_eq!(show(&mut pin, &mut now, &QUIET, 40), []);
        assert_eq!(show(&mut pin, &mut now, &PRESSED, 40), [Change::Widen]);
        assert!(pin.is_wide());
        assert_eq!(show(&mut pin, &mut now, &QUIET, 8), []);
        assert_eq!(show(&mut pin, &mut now, &QUIET, 40), [Change::Return]);
        assert!(!pin.is_wide());
    }

    #[test]
    fn one_turn_is_no_reason() {
        let (mut pin, mut now) = (PinPolicy::default(), Instant::now());
        for _ in 0..20 {
            assert_eq!(show(&mut pin, &mut now, &PRESSED, 1), []);
            assert_eq!(show(&mut pin, &mut now, &QUIET, 1), []);
        }
        show(&mut pin, &mut now, &PRESSED, 2);
        // Nor does one quiet turn, while it is away.
        for _ in 0..20 {
            assert_eq!(show(&mut pin, &mut now, &QUIET, 6), []);
            assert_eq!(show(&mut pin, &mut now, &PRESSED, 1), []);
        }
    }

    #[test]
    fn every_condition_counts() {
        for sample in [
            Sample { wanted: 0.05, ..PRESSED },
            Sample { waiting: 0.1, ..PRESSED },
            Sample { foreign: Some(0.05), ..PRESSED },
            Sample { foreign: None, ..PRESSED },
            Sample { room: Some(0.1), ..PRESSED },
            Sample { room: None, ..PRESSED },
        ] {
            let (mut pin, mut now) = (PinPolicy::default(), Instant::now());
            assert_eq!(show(&mut pin, &mut now, &sample, 40), [], "{sample:?}");
        }
    }

    #[test]
    fn a_loop_that_returns_too_early_waits_longer_each_time() {
        let (mut pin, mut now) = (PinPolicy::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(show(&mut pin, &mut now, &PRESSED, 2), [Change::Widen]);
            let mut turns = 1;
            while show(&mut pin, &mut now, &QUIET, 1).is_empty() {
                turns += 1;
            }
            waits.push((TURN * turns).as_secs());
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 64, 64, 64]);
        // A long quiet time resets the wait.
        assert_eq!(show(&mut pin, &mut now, &QUIET, 100), []);
        show(&mut pin, &mut now, &PRESSED, 2);
        assert_eq!(show(&mut pin, &mut now, &QUIET, 9), [Change::Return]);
    }

    #[test]
    fn where_nothing_is_left_over_it_is_better_off_at_home() {
        let (mut pin, mut now) = (PinPolicy::default(), Instant::now());
        let mut stays = Vec::new();
        for _ in 0..9 {
            let mut turns = 0;
            while show(&mut pin, &mut now, &PRESSED, 1).is_empty() {
                turns += 1;
            }
            stays.push((TURN * turns).as_secs());
            // A single turn does not count, nor does a loop without work.
            assert_eq!(show(&mut pin, &mut now, &CROWDED, 2), []);
            assert_eq!(show(&mut pin, &mut now, &Sample { wanted: 0.0, ..CROWDED }, 9), []);
            assert_eq!(show(&mut pin, &mut now, &PRESSED, 9), []);
            assert_eq!(show(&mut pin, &mut now, &CROWDED, 2), []);
            assert_eq!(show(&mut pin, &mut now, &CROWDED, 1), [Change::Retreat]);
            assert!(!pin.is_wide());
        }
        assert_eq!(stays, [0, 1, 2, 4, 8, 16, 32, 64, 64], "it stays longer each time");
        // A long quiet time resets the stay.
        assert_eq!(show(&mut pin, &mut now, &QUIET, 400), []);
        assert_eq!(show(&mut pin, &mut now, &PRESSED, 2), [Change::Widen]);
    }

    #[test]
    fn a_loop_that_would_starve_stays_away_until_its_cpu_is_quiet() {
        let (mut pin, mut now) = (PinPolicy::default(), Instant::now());
        let starved = Sample { waiting: 0.8, foreign: Some(0.8), ..PRESSED };
        assert_eq!(show(&mut pin, &mut now, &starved, 2), [Change::Widen]);
        assert_eq!(show(&mut pin, &mut now, &CROWDED, 400), []);
        assert_eq!(show(&mut pin, &mut now, &QUIET, 9), [Change::Return]);
        // The next time it is judged independently.
        assert_eq!(show(&mut pin, &mut now, &PRESSED, 2), [Change::Widen]);
        assert_eq!(show(&mut pin, &mut now, &CROWDED, 3), [Change::Retreat]);
    }

    #[test]
    fn a_loop_that_uses_idle_time_returns_less_and_less_often() {
        let (mut pin, mut now) = (PinPolicy::default(), Instant::now());
        // The loop runs in all the idle time of the other CPU, and got a quarter of its own.
        let crowded = Sample { total: 1.0, ..CROWDED };
        let pressed = Sample { total: 0.55, ..PRESSED };
        let mut aways = Vec::new();
        for _ in 0..9 {
            while show(&mut pin, &mut now, &pressed, 1).is_empty() {}
            let mut turns = 0;
            while show(&mut pin, &mut now, &crowded, 1).is_empty() {
                turns += 1;
            }
            aways.push((TURN * turns).as_millis());
        }
        assert_eq!(aways, [500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 64000]);
    }
}
