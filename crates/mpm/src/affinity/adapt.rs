//! The closed loop: what becomes of the serving loops and their CPUs is looked at several times a
//! second, and who is held up is let go until its CPU is quiet again.

mod kept;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::cpus::Roots;
use super::grip::{Change, Grip, Seen};
use super::meter::{CpuMeter, ThreadMeter};
use super::plan::{Plan, Unit};
use super::pressure::{self, Doing};
use super::steer::{Load, Steering};
use crate::scoreboard::{Decision, Scoreboard};
use kept::{Kept, MaskOf};

/// Between two turns while loops have work.
const TURN: Duration = Duration::from_millis(250);
/// Between two turns while they have none, or nothing can be decided.
const TURN_IDLE: Duration = Duration::from_secs(1);
/// How often it is published what loops waited and moved.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// With less than this share of a CPU a loop is idle.
const IDLE: f64 = 0.02;
/// Threads that are measured at most: each has two open files, of the 1024 that a process has where
/// nobody gave it more.
const METERS_MAX: usize = 256;
/// Threads of processes that were told to go and still run, whose files stay open, at most.
const LEAVING_MAX: usize = 64;

/// A child that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    pub pid: u32,
    /// Its place in the shape.
    pub slot: usize,
    /// Its slot in the scoreboard.
    pub board_slot: usize,
}

/// What a turn looks at.
#[derive(Clone, Copy)]
pub(crate) struct View<'v> {
    /// The children of the generation that serves.
    pub serving: &'v [Serving],
    /// Where they were placed.
    pub plan: &'v Plan,
    /// What their loops say.
    pub board: &'v Scoreboard,
    /// Where the kernel tells of threads and CPUs.
    pub roots: &'v Roots,
}

/// What was decided in a turn.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// Scoreboard slots of the processes whose masks have changed.
    pub moved: Vec<usize>,
    /// What is allowed has changed, which concerns all threads of all processes.
    pub is_replanned: bool,
    /// Lines for the error log, with their numbers.
    pub lines: Vec<(u32, String)>,
    /// How new connections are to be spread over the loops from now on; empty is evenly.
    pub weights: Option<Vec<u32>>,
    /// The CPU of each loop where that has changed; none where loops do not have one each.
    pub receivers: Option<Vec<usize>>,
}

/// The serving loops (or processes).
#[derive(Default)]
pub(crate) struct Adapter {
    kept: Vec<Kept>,
    /// Of those that leave: closed before a thread ends, its files are left to it to clean up.
    leaving: VecDeque<ThreadMeter>,
    cpus: Option<CpuMeter>,
    /// The CPUs' meter was read at the turn before.
    is_fresh: bool,
    steering: Steering,
    mask_of: MaskOf,
    last: Option<Instant>,
    tell_at: Option<Instant>,
    due: Option<Instant>,
}

impl Adapter {
    /// When there is something to do again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// There is nothing to do, until the next turn is asked for.
    pub(crate) fn rest(&mut self) {
        self.due = None;
    }

    /// Nothing is to be adapted any more. Returns how connections are to be spread, if they were
    /// steered.
    pub(crate) fn stop(&mut self) -> Option<Vec<u32>> {
        self.rest();
        self.kept.clear();
        self.end_steering()
    }

    /// Connections are to be spread evenly, if they were not.
    pub(crate) fn end_steering(&mut self) -> Option<Vec<u32>> {
        self.steering.stop()
    }

    /// Looks at the children, and decides.
    pub(crate) fn turn(&mut self, now: Instant, view: View<'_>) -> Decided {
        let mut bound = self.know(view);
        let mut late = self.fetch(view.plan);
        self.measure(now, view);
        let mut decided = self.decide(now, view);
        bound.append(&mut decided.lines);
        decided.lines = bound;
        decided.moved.append(&mut late);
        self.steer(now, view, &mut decided);
        let is_busy = self.kept.iter().any(|kept| kept.doing.run + kept.doing.wait > IDLE);
        let is_worth_it = is_busy && self.has_choice(view.plan);
        self.due = Some(now + if is_worth_it { TURN } else { TURN_IDLE });
        decided
    }

    /// Whether there is anything to decide: somebody has a CPU to let go of, or connections can be
    /// spread. Under a quota of one CPU there is nothing, and each look would take from its time.
    fn has_choice(&self, plan: &Plan) -> bool {
        let can_spread = plan.unit == Unit::Loop && plan.loops > 1;
        can_spread || self.kept.iter().any(|kept| kept.home.is_some())
    }

    /// Looks at them once a second, and only tells what it sees.
    pub(crate) fn watch(&mut self, now: Instant, view: View<'_>) -> Vec<(u32, String)> {
        let bound = self.know(view);
        if self.due.is_none_or(|due| due <= now) {
            self.measure(now, view);
            self.due = Some(now + TELL_EVERY);
        }
        bound
    }

    /// Puts everybody in the places of a new plan. Who has let go stays loose.
    pub(crate) fn replan(&mut self, now: Instant, view: View<'_>) -> Decided {
        let plan = view.plan;
        let mut lines = self.know(view);
        for kept in &mut self.kept {
            let given = kept.given();
            kept.home = plan.place(kept.child.slot, kept.number).map(|place| place.cpus.clone());
            if let Some(mask) = kept.mask_since(&given, plan, &self.mask_of) {
                lines.extend(kept.leave(&mask, plan));
            }
            kept.publish(plan);
        }
        let mut moved: Vec<usize> = self.kept.iter().map(|kept| kept.child.board_slot).collect();
        moved.dedup();
        // Nobody is judged by where he is before he has had time to go.
        self.due = Some(now + TURN);
        Decided { moved, lines, is_replanned: true, ..Decided::default() }
    }

    /// Spreads new connections over the loops, where each has listeners of its own.
    fn steer(&mut self, now: Instant, view: View<'_>, decided: &mut Decided) {
        let View { plan, board, .. } = view;
        if plan.unit != Unit::Loop {
            decided.weights = self.steering.stop();
            return;
        }
        let now_us = crate::scoreboard::now_us();
        let load = |number: usize| {
            let kept = self.kept.iter_mut().find(|kept| kept.number == number);
            kept.map_or(Load { share: 0.0, is_stalled: true }, |kept| kept.load(now, now_us))
        };
        let loads: Vec<Load> = (0..plan.loops).map(load).collect();
        let before: Vec<usize> = self.steering.avoided().collect();
        let are_loose = self.kept.iter().any(|kept| kept.grip.is_wide());
        let Some(weights) = self.steering.turn(&loads, are_loose) else { return };
        let text = match weights.is_empty() {
            true => "new connections are spread evenly over the loops".to_owned(),
            false => format!("new connections are spread over the loops as {weights:?}"),
        };
        decided.weights = Some(weights.to_vec());
        decided.lines.push((20104, text));
        board.count_decision(Decision::Steered);
        let after: Vec<usize> = self.steering.avoided().collect();
        for number in after.iter().filter(|number| !before.contains(number)) {
            decided.lines.push((20105, format!("loop {number} stands still and gets nothing new")));
            board.count_decision(Decision::Avoided);
        }
        for number in before.iter().filter(|number| !after.contains(number)) {
            decided.lines.push((20106, format!("loop {number} turns and gets connections again")));
            board.count_decision(Decision::Readmitted);
        }
    }

    /// Notices children that are new or gone; says where the new ones are bound to.
    fn know(&mut self, view: View<'_>) -> Vec<(u32, String)> {
        let View { serving, plan, board, .. } = view;
        let leaving = self.kept.extract_if(.., |kept| !serving.contains(&kept.child));
        self.leaving.extend(leaving.flat_map(|kept| kept.meters).map(|(_, meter)| meter));
        let surplus = self.leaving.len().saturating_sub(LEAVING_MAX);
        self.leaving.drain(..surplus);
        let known = self.kept.len();
        for child in serving {
            if self.kept.iter().any(|kept| kept.child == *child) {
                continue;
            }
            let slots = (0..).map_while(|index| board.loop_slot(child.board_slot, index));
            let first = plan.first_loops.get(child.slot).copied().unwrap_or(0);
            match plan.unit {
                Unit::Loop => self.kept.extend(
                    slots
                        .enumerate()
                        .map(|(index, slot)| Kept::new(*child, first + index, vec![slot], plan)),
                ),
                Unit::Process => {
                    self.kept.push(Kept::new(*child, child.slot, slots.collect(), plan));
                }
            }
        }
        let new = self.kept.iter().skip(known);
        let bound = new.filter_map(|kept| {
            let home = kept.home.as_ref()?;
            board.count_decision(Decision::Pinned);
            Some((20103, format!("{} is bound to CPU {home}", kept.name(plan))))
        });
        bound.collect()
    }

    /// Children that were begun by an earlier plan, and are seen for the first time now, are put
    /// where this one has them.
    fn fetch(&mut self, plan: &Plan) -> Vec<usize> {
        let mut moved = Vec::new();
        for kept in &mut self.kept {
            let is_new = !std::mem::replace(&mut kept.is_known, true);
            if is_new && kept.is_elsewhere(plan) {
                kept.publish(plan);
                moved.push(kept.child.board_slot);
            }
        }
        moved.dedup();
        moved
    }

    /// What everybody has done since the last turn.
    fn measure(&mut self, now: Instant, view: View<'_>) {
        let passed = self.last.map_or(TURN, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        let passed_us = passed.as_micros().max(1) as f64;
        let mut room = METERS_MAX;
        for kept in &mut self.kept {
            // Nothing depends on a process that is not bound.
            if kept.home.is_none() && view.plan.unit == Unit::Process {
                continue;
            }
            let (times, measured) = kept.times(view.roots, room);
            room = room.saturating_sub(measured);
            kept.is_measured = measured > 0;
            let scale = kept.slots.len().max(1) as f64 / measured.max(1) as f64 / passed_us;
            kept.doing.run = times.run_us as f64 * scale;
            kept.doing.wait = times.wait_us as f64 * scale;
        }
        self.assume();
        self.leaving.retain_mut(|meter| meter.elapsed().is_some());
        if self.tell_at.is_none_or(|at| at <= now) {
            self.tell_at = Some(now + TELL_EVERY);
            self.kept.iter().for_each(Kept::tell);
        }
    }

    /// Those that are too many to be measured are taken to do what the others do: what they really
    /// do would count as somebody else's.
    fn assume(&mut self) {
        let bound = |kept: &&Kept| kept.home.is_some();
        let known: Vec<&Doing> = (self.kept.iter().filter(bound))
            .filter(|kept| kept.is_measured)
            .map(|kept| &kept.doing)
            .collect();
        let count = known.len().max(1) as f64;
        let run = known.iter().map(|doing| doing.run).sum::<f64>() / count;
        let wait = known.iter().map(|doing| doing.wait).sum::<f64>() / count;
        let unknown = |kept: &&mut Kept| kept.home.is_some() && !kept.is_measured;
        for kept in self.kept.iter_mut().filter(unknown) {
            (kept.doing.run, kept.doing.wait) = (run, wait);
        }
    }

    fn decide(&mut self, now: Instant, view: View<'_>) -> Decided {
        let View { plan, board, roots, .. } = view;
        let mut decided = Decided::default();
        let is_any = self.kept.iter().any(|kept| {
            kept.grip.is_wide() || kept.home.is_some() && Grip::is_held_up(&kept.doing)
        });
        if !is_any {
            self.is_fresh = false;
            self.kept.iter_mut().for_each(|kept| kept.grip.rest());
            return decided;
        }
        if self.cpus.is_none() {
            self.cpus = CpuMeter::open(roots);
        }
        let times = self.cpus.as_mut().and_then(CpuMeter::times).unwrap_or_default();
        // What was read longer ago than a turn tells of another time.
        if !std::mem::replace(&mut self.is_fresh, true) {
            return decided;
        }
        let doing: Vec<Doing> = self.kept.iter().map(|kept| kept.doing.clone()).collect();
        let seen = pressure::see(&doing, &times, &plan.usable);
        // Of the time that is left over elsewhere: what those need who let go in this turn.
        let mut taken = 0.0;
        for (kept, seen) in self.kept.iter_mut().zip(&seen) {
            if kept.home.is_none() {
                continue;
            }
            let is_asked = kept.grip.is_wide() || Grip::is_held_up(&kept.doing);
            if is_asked && let Some(mask) = kept.mask_of_others(plan, &self.mask_of) {
                decided.lines.extend(kept.leave(&mask, plan));
                kept.grip.rest();
                continue;
            }
            kept.is_left = false;
            let seen = &Seen { room: seen.room.map(|room| room - taken), ..*seen };
            if let Some(change) = kept.grip.turn(now, seen) {
                if change == Change::Widen {
                    taken += seen.wanted * seen.waiting;
                }
                kept.publish(plan);
                decided.moved.push(kept.child.board_slot);
                decided.lines.push(kept.line(change, seen, plan));
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
