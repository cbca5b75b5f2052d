//! Decides what a loop with more work than a peer hands over: connections that it has just
//! accepted, and connections that wait for their next request. Each decision applies to a window of
//! time and is based on samples of the previous one.

use std::time::Duration;

/// The length of a window while the loop has work.
pub const WINDOW: Duration = Duration::from_millis(250);
/// The length of a window while it has none.
pub const WINDOW_IDLE: Duration = Duration::from_secs(1);
/// A loop that is busy for less than this share of its time has no work.
pub const IDLE: f64 = 0.02;
/// A loop that is busy for less than this share of its time hands nothing over: its connections do
/// not wait long.
const BUSY: f64 = 0.50;
/// A loop starts handing over when its busy share exceeds the peer's by this.
const APART: f64 = 0.30;
/// It stops when the difference is smaller than this.
const CLOSE: f64 = 0.15;
/// Consecutive windows of imbalance after which waiting connections migrate.
const PATIENCE: u32 = 2;

/// The part of an imbalance that one window of handing over accepted connections corrects.
const GAIN: f64 = 0.5;
/// The part that the share of accepted connections loses in each window: it persists only while
/// there would be an imbalance without it.
const LEAK: f64 = 1.0 / 16.0;
/// The largest share of accepted connections that is handed over.
const SHARE_MOST: f64 = 0.9;
/// Smaller shares are rounded to none.
const SHARE_LEAST: f64 = 0.03;

/// The largest part of the way to balance that one window of migrations covers.
const STEP: f64 = 0.5;
/// Migrations of each kind per window at most.
pub const MOVES_MOST: usize = 32;
/// Windows for which a loop keeps the connections that migrated to it. The number doubles each time
/// the loop hands over what it was handed, so that a connection that is a load by itself does not
/// go back and forth.
const REST: u32 = 8;
/// The most doublings.
const REST_DOUBLED_MOST: u32 = 5;
/// Windows without a migration after which the doubling is reset.
const CALM: u32 = 240;

/// A loop's sample of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowSample {
    /// The share of the window in which it did not wait for events.
    pub share: f64,
    /// Its open connections.
    pub connections: usize,
    /// The ones that had a request recently.
    pub active: usize,
    /// Connections that migrated to it in this window.
    pub arrived: u64,
    /// It can't take another connection.
    pub is_full: bool,
}

/// What a loop hands over in the next window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quota {
    /// The share of newly accepted connections.
    pub accepted: f64,
    /// The number of connections that had a request recently.
    pub active: usize,
    /// The number of connections that have been quiet for longer.
    pub quiet: usize,
}

impl Quota {
    /// Hands nothing over.
    pub const NONE: Self = Self { accepted: 0.0, active: 0, quiet: 0 };

    /// Whether idle connections migrate.
    pub fn has_migrations(&self) -> bool {
        self.active + self.quiet > 0
    }
}

/// The policy of one loop, with its state from earlier windows.
#[derive(Debug, Default)]
pub struct RebalancePolicy {
    /// [`Quota::accepted`] of the last window.
    accepted: f64,
    /// Consecutive windows of imbalance.
    uneven: u32,
    /// Windows for which it still keeps all connections.
    rest: u32,
    /// How often [`REST`] is doubled.
    doubled: u32,
    /// Connections have migrated here since it last handed some over.
    was_given: bool,
    /// Consecutive windows without a migration.
    calm: u32,
}

impl RebalancePolicy {
    /// The quota for the next window. `own` is the loop's own sample, `other` that of the peer that
    /// would take over; `None` if no loop could.
    pub fn turn(&mut self, own: &WindowSample, other: Option<&WindowSample>) -> Quota {
        self.note_arrivals(own);
        let Some(other) = other else {
            self.accepted = 0.0;
            self.uneven = 0;
            return Quota::NONE;
        };
        let apart = own.share - other.share;
        let accepted = self.accepted(own, apart);
        let active = if self.is_to_move(own, apart) { active(own, apart) } else { 0 };
        let is_relieved = self.uneven >= PATIENCE && self.rest == 0;
        let quiet = if is_relieved || own.is_full { quiet(own, other) } else { 0 };
        let quota = Quota { accepted, active, quiet };
        self.note_moves(&quota);
        quota
    }

    /// The share follows the imbalance like a controller's output: if all connections arrive at one
    /// loop, it must persist after the loads have become even.
    fn accepted(&mut self, own: &WindowSample, apart: f64) -> f64 {
        let begins = own.share >= BUSY && apart >= APART;
        if self.accepted > 0.0 || begins {
            let next = self.accepted * (1.0 - LEAK) + apart * GAIN;
            let is_over = own.share < IDLE || next < SHARE_LEAST;
            self.accepted = if is_over { 0.0 } else { next.min(SHARE_MOST) };
        }
        self.accepted
    }

    fn is_to_move(&mut self, own: &WindowSample, apart: f64) -> bool {
        let bound = if self.uneven >= PATIENCE { CLOSE } else { APART };
        if own.share < BUSY || apart < bound {
            self.uneven = 0;
            return false;
        }
        self.uneven += 1;
        self.uneven >= PATIENCE && self.rest == 0
    }

    fn note_arrivals(&mut self, own: &WindowSample) {
        self.rest = self.rest.saturating_sub(1);
        if own.arrived > 0 {
            self.was_given = true;
            self.rest = REST << self.doubled;
        }
    }

    fn note_moves(&mut self, quota: &Quota) {
        if !quota.has_migrations() {
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

/// As many as bring the loads closer without reversing the imbalance. A single active connection
/// stays, since it is the whole load wherever it goes.
fn active(own: &WindowSample, apart: f64) -> usize {
    let even = own.active as f64 * apart / (2.0 * own.share);
    let step = (even * STEP).ceil() as usize;
    step.min(own.active / 2).min(MOVES_MOST)
}

/// Quiet connections are no load: at most as many as even out the numbers of connections.
fn quiet(own: &WindowSample, other: &WindowSample) -> usize {
    let step = own.connections.saturating_sub(other.connections) / 4;
    step.min(own.connections.saturating_sub(own.active)).min(MOVES_MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(share: f64, connections: usize, active: usize) -> WindowSample {
        WindowSample { share, connections, active, ..WindowSample::default() }
    }

    #[test]
    fn even_loops_and_idle_ones_give_nothing() {
        let mut policy = RebalancePolicy::default();
        for (own, other) in [(0.9, 0.7), (0.45, 0.0), (0.0, 0.0), (0.2, 1.0), (1.0, 0.71)] {
            for _ in 0..10 {
                let own = sample(own, 100, 50);
                assert_eq!(policy.turn(&own, Some(&sample(other, 0, 0))), Quota::NONE);
            }
        }
        assert_eq!(policy.turn(&sample(1.0, 9, 9), None), Quota::NONE);
    }

    #[test]
    fn active_connections_move_step_by_step_until_loads_are_close() {
        let mut policy = RebalancePolicy::default();
        let (mut here, mut there, mut windows) = (32_usize, 0_usize, 0);
        assert_eq!(policy.turn(&sample(1.0, here, here), Some(&sample(0.0, 0, 0))).active, 0);
        // The first loop is saturated until less than half of them are left.
        let share = |connections: usize| (connections as f64 / 16.0).min(1.0);
        loop {
            let own = sample(share(here), here, here);
            let quota = policy.turn(&own, Some(&sample(share(there), there, there)));
            if quota.active == 0 {
                break;
            }
            windows += 1;
            here -= quota.active;
            there += quota.active;
            assert!(here >= there, "{here} {there}");
        }
        assert!(share(here) - share(there) < APART && windows < 6, "{here} {there} {windows}");
    }

    #[test]
    fn a_connection_that_is_all_the_load_stays() {
        let mut policy = RebalancePolicy::default();
        for _ in 0..9 {
            assert_eq!(policy.turn(&sample(1.0, 1, 1), Some(&sample(0.0, 0, 0))).active, 0);
        }
    }

    #[test]
    fn what_came_stays_for_a_while_and_the_next_for_longer() {
        let mut policy = RebalancePolicy::default();
        let mut wait = || {
            let other = sample(0.0, 0, 0);
            let arrived = WindowSample { arrived: 1, ..sample(1.0, 4, 4) };
            assert!(!policy.turn(&arrived, Some(&other)).has_migrations());
            let until = |_: &i32| !policy.turn(&sample(1.0, 4, 4), Some(&other)).has_migrations();
            (0..1000).take_while(until).count()
        };
        let waits = [wait(), wait(), wait()];
        assert_eq!(waits, [REST as usize - 1, 2 * REST as usize - 1, 4 * REST as usize - 1]);
    }

    #[test]
    fn quiet_connections_go_until_there_are_as_many() {
        let mut policy = RebalancePolicy::default();
        let (mut here, mut there) = (101_usize, 0_usize);
        for _ in 0..100 {
            let quota = policy.turn(&sample(1.0, here, 1), Some(&sample(0.0, there, 0)));
            assert_eq!(quota.active, 0);
            here -= quota.quiet;
            there += quota.quiet;
        }
        assert!(here.abs_diff(there) <= 4, "{here} {there}");
    }

    #[test]
    fn a_full_loop_hands_over_quiet_connections_without_any_load() {
        let own = WindowSample { is_full: true, ..sample(0.0, 40, 0) };
        let quota = RebalancePolicy::default().turn(&own, Some(&sample(0.0, 0, 0)));
        assert_eq!(quota, Quota { quiet: 10, ..Quota::NONE });
    }

    /// All connections arrive at one loop, each is a load of its own, and none stays open.
    #[test]
    fn accepted_connections_are_shared_until_loads_are_close_and_stay_so() {
        for load in [0.6, 1.0, 1.6] {
            let mut policy = RebalancePolicy::default();
            let mut given = 0.0;
            for window in 0..100 {
                let own = sample(f64::min(load * (1.0 - given), 1.0), 0, 0);
                let other = sample(f64::min(load * given, 1.0), 0, 0);
                assert!(window < 8 || (own.share - other.share).abs() < CLOSE, "{own:?} {other:?}");
                given = policy.turn(&own, Some(&other)).accepted;
            }
            // Once they arrive at both, it stops.
            for _ in 0..100 {
                let own = sample(load / 2.0 * (1.0 - given), 0, 0);
                let other = sample(load / 2.0 * (1.0 + given), 0, 0);
                given = policy.turn(&own, Some(&other)).accepted;
            }
            assert_eq!(given, 0.0);
        }
    }

    proptest! {
        #[test]
        fn no_loop_hands_over_more_than_it_has(
            windows in proptest::collection::vec(
                (
                    (0.0..1.2f64, 0..5000usize, 0..200usize),
                    (0.0..1.2f64, 0..5000usize),
                    any::<bool>(),
                ),
                1..40,
            ),
        ) {
            let mut policy = RebalancePolicy::default();
            for ((share, connections, active), (other, others), is_full) in windows {
                let own = WindowSample { is_full, ..sample(share, connections + active, active) };
                let quota = policy.turn(&own, Some(&sample(other, others, 0)));
                prop_assert!((0.0..=SHARE_MOST).contains(&quota.accepted));
                prop_assert!(quota.active <= MOVES_MOST && quota.quiet <= MOVES_MOST);
                prop_assert!(quota.active * 2 <= active && quota.quiet <= connections);
                prop_assert!(quota.active == 0 || share - other >= CLOSE);
            }
        }
    }
}
