//! What a loop that has more work than another loop of its process gives away: connections that it
//! has just accepted, and connections that wait for their next request. A decision for a window of
//! time, by what was seen in the window before.

use std::time::Duration;

/// How long a window is while the loop has work.
pub const WINDOW: Duration = Duration::from_millis(250);
/// The same while it has none.
pub const WINDOW_IDLE: Duration = Duration::from_secs(1);
/// With less than this share of its time in use a loop has no work.
pub const IDLE: f64 = 0.02;
/// With less than this share of its time in use a loop gives nothing: nobody waits for it for long.
const BUSY: f64 = 0.50;
/// A loop whose share is larger by this than the other's begins to give.
const APART: f64 = 0.30;
/// It ends when they are closer than this.
const CLOSE: f64 = 0.15;
/// Connections that wait for a request move after so many windows of imbalance in a row.
const PATIENCE: u32 = 2;

/// How much of an imbalance one window of giving away accepted connections makes up for.
const GAIN: f64 = 0.5;
/// What the share of accepted connections that is given away loses in each window: it lives on only
/// as long as there would be an imbalance without it.
const LEAK: f64 = 1.0 / 16.0;
/// The largest share of accepted connections that is given away.
const SHARE_MOST: f64 = 0.9;
/// A smaller share is none.
const SHARE_LEAST: f64 = 0.03;

/// How much of the way to an even load one window of moves goes, at most.
const STEP: f64 = 0.5;
/// No more connections of a kind move in one window.
pub const MOVES_MOST: usize = 32;
/// How many windows a loop keeps what has moved to it. Twice as many each time that it was given
/// what it did not keep, so that a connection that is a load by itself does not go to and fro.
const REST: u32 = 8;
/// So many times.
const REST_DOUBLED_MOST: u32 = 5;
/// After so many windows without a move a loop rests as shortly as at first.
const CALM: u32 = 240;

/// What was seen of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// The share of the window that it did not wait for events.
    pub share: f64,
    /// Its connections.
    pub connections: usize,
    /// Those of them that have had a request a moment ago.
    pub active: usize,
    /// Connections that moved to it in this window.
    pub arrived: u64,
    /// It has no room for another connection.
    pub is_full: bool,
}

/// What a loop gives away in the next window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Giving {
    /// The share of the connections that it accepts.
    pub accepted: f64,
    /// How many of the connections that have had a request a moment ago.
    pub active: usize,
    /// How many of those that have been quiet for longer.
    pub quiet: usize,
}

impl Giving {
    /// Nothing.
    pub const NOTHING: Self = Self { accepted: 0.0, active: 0, quiet: 0 };

    /// Whether connections move.
    pub fn moves(&self) -> bool {
        self.active + self.quiet > 0
    }
}

/// One loop's decisions, and what they depend on beside the last window.
#[derive(Debug, Default)]
pub struct Relief {
    /// [`Giving::accepted`] of the last window.
    accepted: f64,
    /// Windows of imbalance in a row.
    uneven: u32,
    /// Windows that it still keeps everything.
    rest: u32,
    /// How often [`REST`] is doubled.
    doubled: u32,
    /// Something has moved here since it last moved something away.
    was_given: bool,
    /// Windows without a move in a row.
    calm: u32,
}

impl Relief {
    /// What the loop gives away now. `own` is what was seen of it, `other` of the loop that it
    /// would give to; `None` where no loop could take anything.
    pub fn turn(&mut self, own: &Seen, other: Option<&Seen>) -> Giving {
        self.note_guests(own);
        let Some(other) = other else {
            self.accepted = 0.0;
            self.uneven = 0;
            return Giving::NOTHING;
        };
        let apart = own.share - other.share;
        let accepted = self.accepted(own, apart);
        let active = if self.is_to_move(own, apart) { active(own, apart) } else { 0 };
        let is_relieved = self.uneven >= PATIENCE && self.rest == 0;
        let quiet = if is_relieved || own.is_full { quiet(own, other) } else { 0 };
        let giving = Giving { accepted, active, quiet };
        self.note_moves(&giving);
        giving
    }

    /// The share of accepted connections follows the imbalance as a controller's output does: where
    /// all connections come in at one loop it must stay when the loads have become even.
    fn accepted(&mut self, own: &Seen, apart: f64) -> f64 {
        let begins = own.share >= BUSY && apart >= APART;
        if self.accepted > 0.0 || begins {
            let next = self.accepted * (1.0 - LEAK) + apart * GAIN;
            let is_over = own.share < IDLE || next < SHARE_LEAST;
            self.accepted = if is_over { 0.0 } else { next.min(SHARE_MOST) };
        }
        self.accepted
    }

    fn is_to_move(&mut self, own: &Seen, apart: f64) -> bool {
        let bound = if self.uneven >= PATIENCE { CLOSE } else { APART };
        if own.share < BUSY || apart < bound {
            self.uneven = 0;
            return false;
        }
        self.uneven += 1;
        self.uneven >= PATIENCE && self.rest == 0
    }

    fn note_guests(&mut self, own: &Seen) {
        self.rest = self.rest.saturating_sub(1);
        if own.arrived > 0 {
            self.was_given = true;
            self.rest = REST << self.doubled;
        }
    }

    fn note_moves(&mut self, giving: &Giving) {
        if !giving.moves() {
            self.calm = (self.calm + 1).min(CALM);
            if self.calm == CALM {
                (self.doubled, self.was_given) = (0, false);
            }
            return;
        }
        self.calm = 0;
        if std::mem::take(&mut self.was_given) {
            self.doubled = (self.doubled + 1).min(REST_DOUBLED_MOST);
        }
    }
}

/// So many that the loads come nearer to each other and not past each other; one alone stays, for
/// wherever it goes it is all of the load.
fn active(own: &Seen, apart: f64) -> usize {
    let even = own.active as f64 * apart / (2.0 * own.share);
    let step = (even * STEP).ceil() as usize;
    step.min(own.active / 2).min(MOVES_MOST)
}

/// Quiet connections are no load: at most so many that the loops then have as many connections.
fn quiet(own: &Seen, other: &Seen) -> usize {
    let step = own.connections.saturating_sub(other.connections) / 4;
    step.min(own.connections.saturating_sub(own.active)).min(MOVES_MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(share: f64, connections: usize, active: usize) -> Seen {
        Seen { share, connections, active, ..Seen::default() }
    }

    #[test]
    fn even_loops_and_idle_ones_give_nothing() {
        let mut relief = Relief::default();
        for (own, other) in [(0.9, 0.7), (0.45, 0.0), (0.0, 0.0), (0.2, 1.0), (1.0, 0.71)] {
            for _ in 0..10 {
                let own = seen(own, 100, 50);
                assert_eq!(relief.turn(&own, Some(&seen(other, 0, 0))), Giving::NOTHING);
            }
        }
        assert_eq!(relief.turn(&seen(1.0, 9, 9), None), Giving::NOTHING);
    }

    #[test]
    fn active_connections_move_step_by_step_until_loads_are_close() {
        let mut relief = Relief::default();
        let (mut here, mut there, mut windows) = (32_usize, 0_usize, 0);
        assert_eq!(relief.turn(&seen(1.0, here, here), Some(&seen(0.0, 0, 0))).active, 0);
        // The first loop is as busy as it can be until less than half of them are left.
        let share = |connections: usize| (connections as f64 / 16.0).min(1.0);
        loop {
            let own = seen(share(here), here, here);
            let giving = relief.turn(&own, Some(&seen(share(there), there, there)));
            if giving.active == 0 {
                break;
            }
            windows += 1;
            here -= giving.active;
            there += giving.active;
            assert!(here >= there, "{here} {there}");
        }
        assert!(share(here) - share(there) < APART && windows < 6, "{here} {there} {windows}");
    }

    #[test]
    fn a_connection_that_is_all_the_load_stays() {
        let mut relief = Relief::default();
        for _ in 0..9 {
            assert_eq!(relief.turn(&seen(1.0, 1, 1), Some(&seen(0.0, 0, 0))).active, 0);
        }
    }

    #[test]
    fn what_came_stays_for_a_while_and_the_next_for_longer() {
        let mut relief = Relief::default();
        let mut wait = || {
            let other = seen(0.0, 0, 0);
            let arrived = Seen { arrived: 1, ..seen(1.0, 4, 4) };
            assert!(!relief.turn(&arrived, Some(&other)).moves());
            let until = |_: &i32| !relief.turn(&seen(1.0, 4, 4), Some(&other)).moves();
            (0..1000).take_while(until).count()
        };
        let waits = [wait(), wait(), wait()];
        assert_eq!(waits, [REST as usize - 1, 2 * REST as usize - 1, 4 * REST as usize - 1]);
    }

    #[test]
    fn quiet_connections_go_until_there_are_as_many() {
        let mut relief = Relief::default();
        let (mut here, mut there) = (101_usize, 0_usize);
        for _ in 0..100 {
            let giving = relief.turn(&seen(1.0, here, 1), Some(&seen(0.0, there, 0)));
            assert_eq!(giving.active, 0);
            here -= giving.quiet;
            there += giving.quiet;
        }
        assert!(here.abs_diff(there) <= 4, "{here} {there}");
    }

    #[test]
    fn who_is_full_gives_quiet_ones_without_any_load() {
        let own = Seen { is_full: true, ..seen(0.0, 40, 0) };
        let giving = Relief::default().turn(&own, Some(&seen(0.0, 0, 0)));
        assert_eq!(giving, Giving { quiet: 10, ..Giving::NOTHING });
    }

    /// All connections come in at one loop, each is a load of its own, and none stays.
    #[test]
    fn accepted_connections_are_shared_until_loads_are_close_and_stay_so() {
        for load in [0.6, 1.0, 1.6] {
            let mut relief = Relief::default();
            let mut given = 0.0;
            for window in 0..100 {
                let own = seen(f64::min(load * (1.0 - given), 1.0), 0, 0);
                let other = seen(f64::min(load * given, 1.0), 0, 0);
                assert!(window < 8 || (own.share - other.share).abs() < CLOSE, "{own:?} {other:?}");
                given = relief.turn(&own, Some(&other)).accepted;
            }
            // Once they come in at both, it ends.
            for _ in 0..100 {
                let own = seen(load / 2.0 * (1.0 - given), 0, 0);
                let other = seen(load / 2.0 * (1.0 + given), 0, 0);
                given = relief.turn(&own, Some(&other)).accepted;
            }
            assert_eq!(given, 0.0);
        }
    }

    proptest! {
        #[test]
        fn nobody_gives_more_than_there_is(
            windows in proptest::collection::vec(
                (
                    (0.0..1.2f64, 0..5000usize, 0..200usize),
                    (0.0..1.2f64, 0..5000usize),
                    any::<bool>(),
                ),
                1..40,
            ),
        ) {
            let mut relief = Relief::default();
            for ((share, connections, active), (other, others), is_full) in windows {
                let own = Seen { is_full, ..seen(share, connections + active, active) };
                let giving = relief.turn(&own, Some(&seen(other, others, 0)));
                prop_assert!((0.0..=SHARE_MOST).contains(&giving.accepted));
                prop_assert!(giving.active <= MOVES_MOST && giving.quiet <= MOVES_MOST);
                prop_assert!(giving.active * 2 <= active && giving.quiet <= connections);
                prop_assert!(giving.active == 0 || share - other >= CLOSE);
            }
        }
    }
}
