//! The control loop: several times a second it samples the serving loops and their CPUs. A loop
//! that is delayed is unpinned until its CPU is quiet again.

mod tracked;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use messages::Message;

use super::cpus::Roots;
use super::meter::{CpuMeter, ThreadMeter};
use super::pin_policy::{Change, PinPolicy, Sample};
use super::plan::{Plan, Unit};
use super::pressure::{self, Activity};
use super::steer::{Load, Steering};
use crate::scoreboard::{Decision, Scoreboard};
use tracked::{MaskOf, Tracked};

/// The interval of turns while loops have work.
const TURN: Duration = Duration::from_millis(250);
/// The interval of turns while they have none, or nothing can be decided.
const TURN_IDLE: Duration = Duration::from_secs(1);
/// How often waits and migrations of loops are published.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// A loop that uses less than this share of a CPU is idle.
const IDLE: f64 = 0.02;
/// Threads measured at most: each needs two open files, of the 1024 that a process has by default.
const METERS_MAX: usize = 256;
/// Threads of retired but running processes whose files stay open, at most.
const LEAVING_MAX: usize = 64;

/// A serving child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    pub pid: u32,
    /// Its place in the shape.
    pub slot: usize,
    /// Its slot in the scoreboard.
    pub board_slot: usize,
}

/// The input of a turn.
#[derive(Clone, Copy)]
pub(crate) struct View<'v> {
    /// The children of the serving generation.
    pub serving: &'v [Serving],
    /// Their placement.
    pub plan: &'v Plan,
    /// The loops' published state.
    pub board: &'v Scoreboard,
    /// The kernel's files about threads and CPUs.
    pub roots: &'v Roots,
}

/// The decisions of a turn.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// Scoreboard slots of the processes whose masks have changed.
    pub moved: Vec<usize>,
    /// The allowed CPUs have changed, which concerns all threads of all processes.
    pub is_replanned: bool,
    /// Lines for the error log, with their numbers.
    pub lines: Vec<(u32, String)>,
    /// The new weights for distributing connections over the loops; empty: evenly.
    pub weights: Option<Vec<u32>>,
    /// The new CPU of each loop, if changed; empty if the loops do not have one each.
    pub receivers: Option<Vec<usize>>,
}

/// The serving loops (or processes).
#[derive(Default)]
pub(crate) struct Adapter {
    tracked: Vec<Tracked>,
    /// Meters of retired threads. A meter that is closed before its thread ends leaves the clean-up
    /// of its files to the thread.
    leaving: VecDeque<ThreadMeter>,
    cpus: Option<CpuMeter>,
    /// The CPU meter was read in the previous turn.
    is_fresh: bool,
    steering: Steering,
    mask_of: MaskOf,
    last: Option<Instant>,
    tell_at: Option<Instant>,
    due: Option<Instant>,
}

impl Adapter {
    /// When the next turn is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Suspends the turns until one is requested.
    pub(crate) fn rest(&mut self) {
        self.due = None;
    }

    /// Stops adapting. Returns the weights to set, if connections were steered.
    pub(crate) fn stop(&mut self) -> Option<Vec<u32>> {
        self.rest();
        self.tracked.clear();
        self.end_steering()
    }

    /// Returns to even distribution, if connections were steered.
    pub(crate) fn end_steering(&mut self) -> Option<Vec<u32>> {
        self.steering.stop()
    }

    /// Samples the children and decides.
    pub(crate) fn turn(&mut self, now: Instant, view: View<'_>) -> Decided {
        let mut bound = self.know(view);
        let mut late = self.fetch(view.plan);
        self.measure(now, view);
        let mut decided = self.decide(now, view);
        bound.append(&mut decided.lines);
        decided.lines = bound;
        decided.moved.append(&mut late);
        self.steer(now, view, &mut decided);
        let is_busy =
            self.tracked.iter().any(|tracked| tracked.activity.run + tracked.activity.wait > IDLE);
        let is_worth_it = is_busy && self.has_choice(view.plan);
        self.due = Some(now + if is_worth_it { TURN } else { TURN_IDLE });
        decided
    }

    /// Whether there is anything to decide: a loop could leave its CPU, or connections could be
    /// redistributed. Under a quota of one CPU there is nothing, and each sample would use up part
    /// of the quota.
    fn has_choice(&self, plan: &Plan) -> bool {
        let can_spread = plan.unit == Unit::Loop && plan.loops > 1;
        can_spread || self.tracked.iter().any(|tracked| tracked.home.is_some())
    }

    /// Samples them once a second, for publishing only.
    pub(crate) fn watch(&mut self, now: Instant, view: View<'_>) -> Vec<(u32, String)> {
        let bound = self.know(view);
        if self.due.is_none_or(|due| due <= now) {
            self.measure(now, view);
            self.due = Some(now + TELL_EVERY);
        }
        bound
    }

    /// Moves all loops to their places in a new plan. Unpinned ones stay unpinned.
    pub(crate) fn replan(&mut self, now: Instant, view: View<'_>) -> Decided {
        let plan = view.plan;
        let mut lines = self.know(view);
        for tracked in &mut self.tracked {
            let given = tracked.given();
            tracked.home =
                plan.place(tracked.child.slot, tracked.number).map(|place| place.cpus.clone());
            if let Some(mask) = tracked.mask_since(&given, plan, &self.mask_of) {
                lines.extend(tracked.leave(&mask, plan));
            }
            tracked.publish(plan);
        }
        let mut moved: Vec<usize> =
            self.tracked.iter().map(|tracked| tracked.child.board_slot).collect();
        moved.dedup();
        // Give threads one turn to migrate before measuring them.
        self.due = Some(now + TURN);
        Decided { moved, lines, is_replanned: true, ..Decided::default() }
    }

    /// Redistributes new connections over the loops, if each has its own listeners.
    fn steer(&mut self, now: Instant, view: View<'_>, decided: &mut Decided) {
        let View { plan, board, .. } = view;
        if plan.unit != Unit::Loop {
            decided.weights = self.steering.stop();
            return;
        }
        let now_us = crate::scoreboard::now_us();
        let load = |number: usize| {
            let tracked = self.tracked.iter_mut().find(|tracked| tracked.number == number);
            tracked
                .map_or(Load { share: 0.0, is_stalled: true }, |tracked| tracked.load(now, now_us))
        };
        let loads: Vec<Load> = (0..plan.loops).map(load).collect();
        let before: Vec<usize> = self.steering.avoided().collect();
        let are_loose = self.tracked.iter().any(|tracked| tracked.pin.is_wide());
        let Some(weights) = self.steering.turn(&loads, are_loose) else { return };
        let text = match weights.is_empty() {
            true => "new connections are distributed evenly over the loops".to_owned(),
            false => {
                format!("new connections are distributed over the loops by weights {weights:?}")
            }
        };
        decided.weights = Some(weights.to_vec());
        decided.lines.push((Message::Steered.number(), text));
        board.count_decision(Decision::Steered);
        let after: Vec<usize> = self.steering.avoided().collect();
        for number in after.iter().filter(|number| !before.contains(number)) {
            decided.lines.push((
                Message::Avoided.number(),
                format!("loop {number} is stalled; new connections are routed elsewhere"),
            ));
            board.count_decision(Decision::Avoided);
        }
        for number in before.iter().filter(|number| !after.contains(number)) {
            decided.lines.push((
                Message::Readmitted.number(),
                format!("loop {number} turns again and gets new connections"),
            ));
            board.count_decision(Decision::Readmitted);
        }
    }

    /// Tracks new children and drops ended ones; returns log lines for the bound ones.
    fn know(&mut self, view: View<'_>) -> Vec<(u32, String)> {
        let View { serving, plan, board, .. } = view;
        let leaving = self.tracked.extract_if(.., |tracked| !serving.contains(&tracked.child));
        self.leaving.extend(leaving.flat_map(|tracked| tracked.meters).map(|(_, meter)| meter));
        let surplus = self.leaving.len().saturating_sub(LEAVING_MAX);
        self.leaving.drain(..surplus);
        let known = self.tracked.len();
        for child in serving {
            if self.tracked.iter().any(|tracked| tracked.child == *child) {
                continue;
            }
            let slots = (0..).map_while(|index| board.loop_slot(child.board_slot, index));
            let first = plan.first_loops.get(child.slot).copied().unwrap_or(0);
            match plan.unit {
                Unit::Loop => self.tracked.extend(
                    slots
                        .enumerate()
                        .map(|(index, slot)| Tracked::new(*child, first + index, vec![slot], plan)),
                ),
                Unit::Process => {
                    self.tracked.push(Tracked::new(*child, child.slot, slots.collect(), plan));
                }
            }
        }
        let new = self.tracked.iter().skip(known);
        let bound = new.filter_map(|tracked| {
            let home = tracked.home.as_ref()?;
            board.count_decision(Decision::Pinned);
            Some((
                Message::Bound.number(),
                format!("{} is bound to CPU {home}", tracked.name(plan)),
            ))
        });
        bound.collect()
    }

    /// Moves children that were started by an earlier plan, and are seen for the first time, to
    /// their places in this plan.
    fn fetch(&mut self, plan: &Plan) -> Vec<usize> {
        let mut moved = Vec::new();
        for tracked in &mut self.tracked {
            let is_new = !std::mem::replace(&mut tracked.is_known, true);
            if is_new && tracked.is_elsewhere(plan) {
                tracked.publish(plan);
                moved.push(tracked.child.board_slot);
            }
        }
        moved.dedup();
        moved
    }

    /// Measures the activity since the last turn.
    fn measure(&mut self, now: Instant, view: View<'_>) {
        let passed = self.last.map_or(TURN, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        let passed_us = passed.as_micros().max(1) as f64;
        let mut room = METERS_MAX;
        for tracked in &mut self.tracked {
            // Nothing depends on a process that is not bound.
            if tracked.home.is_none() && view.plan.unit == Unit::Process {
                continue;
            }
            let (times, measured) = tracked.times(view.roots, room);
            room = room.saturating_sub(measured);
            tracked.is_measured = measured > 0;
            let scale = tracked.slots.len().max(1) as f64 / measured.max(1) as f64 / passed_us;
            tracked.activity.run = times.run_us as f64 * scale;
            tracked.activity.wait = times.wait_us as f64 * scale;
        }
        self.assume();
        self.leaving.retain_mut(|meter| meter.elapsed().is_some());
        if self.tell_at.is_none_or(|at| at <= now) {
            self.tell_at = Some(now + TELL_EVERY);
            self.tracked.iter().for_each(Tracked::tell);
        }
    }

    /// Assumes that loops beyond the measured number behave as the others do: their actual activity
    /// would count as that of other programs.
    fn assume(&mut self) {
        let bound = |tracked: &&Tracked| tracked.home.is_some();
        let known: Vec<&Activity> = (self.tracked.iter().filter(bound))
            .filter(|tracked| tracked.is_measured)
            .map(|tracked| &tracked.activity)
            .collect();
        let count = known.len().max(1) as f64;
        let run = known.iter().map(|activity| activity.run).sum::<f64>() / count;
        let wait = known.iter().map(|activity| activity.wait).sum::<f64>() / count;
        let unknown = |tracked: &&mut Tracked| tracked.home.is_some() && !tracked.is_measured;
        for tracked in self.tracked.iter_mut().filter(unknown) {
            (tracked.activity.run, tracked.activity.wait) = (run, wait);
        }
    }

    fn decide(&mut self, now: Instant, view: View<'_>) -> Decided {
        let View { plan, board, roots, .. } = view;
        let mut decided = Decided::default();
        let is_any = self.tracked.iter().any(|tracked| {
            tracked.pin.is_wide()
                || tracked.home.is_some() && PinPolicy::is_held_up(&tracked.activity)
        });
        if !is_any {
            self.is_fresh = false;
            self.tracked.iter_mut().for_each(|tracked| tracked.pin.rest());
            return decided;
        }
        if self.cpus.is_none() {
            self.cpus = CpuMeter::open(roots);
        }
        let times = self.cpus.as_mut().and_then(CpuMeter::times).unwrap_or_default();
        // An older reading would cover more than this turn.
        if !std::mem::replace(&mut self.is_fresh, true) {
            return decided;
        }
        let activities: Vec<Activity> =
            self.tracked.iter().map(|tracked| tracked.activity.clone()).collect();
        let samples = pressure::sample(&activities, &times, &plan.usable);
        // The part of the idle time elsewhere that loops unpinned in this turn will need.
        let mut taken = 0.0;
        for (tracked, sample) in self.tracked.iter_mut().zip(&samples) {
            if tracked.home.is_none() {
                continue;
            }
            let is_asked = tracked.pin.is_wide() || PinPolicy::is_held_up(&tracked.activity);
            if is_asked && let Some(mask) = tracked.mask_of_others(plan, &self.mask_of) {
                decided.lines.extend(tracked.leave(&mask, plan));
                tracked.pin.rest();
                continue;
            }
            tracked.is_left = false;
            let sample = &Sample { room: sample.room.map(|room| room - taken), ..*sample };
            if let Some(change) = tracked.pin.turn(now, sample) {
                if change == Change::Widen {
                    taken += sample.wanted * sample.waiting;
                }
                tracked.publish(plan);
                decided.moved.push(tracked.child.board_slot);
                decided.lines.push(tracked.line(change, sample, plan));
                board.count_decision(match change {
                    Change::Widen => Decision::Widened,
                    Change::Return | Change::Retreat => Decision::Returned,
                });
            }
        }
        decided.moved.dedup();
        decided
    }
}

#[cfg(test)]
mod tests;
