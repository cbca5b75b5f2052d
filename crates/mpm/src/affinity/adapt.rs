//! The closed loop: what becomes of the serving loops and their CPUs is looked at several times a
//! second, and who is held up is let go until its CPU is quiet again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::cpu_set::CpuSet;
use super::cpus::Roots;
use super::grip::{Change, Grip, Seen};
use super::meter::{CpuMeter, ThreadMeter, Times};
use super::plan::{Plan, Unit};
use super::pressure::{self, Doing};
use super::steer::{Load, Steering};
use crate::scoreboard::{Decision, LoopSlot, Scoreboard};

/// Between two turns while loops have work.
const TURN: Duration = Duration::from_millis(250);
/// Between two turns while they have none.
const TURN_IDLE: Duration = Duration::from_secs(1);
/// How often it is published what loops waited and moved.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// With less than this share of a CPU a loop is idle.
const IDLE: f64 = 0.02;
/// A loop that says nothing for longer stands still; it says once a second that it turns. One that
/// has said nothing yet has this time from when it was first seen: who hangs on the way to the
/// first turn stands still as well.
const STALLED: Duration = Duration::from_millis(2_500);
/// Threads that are measured at most: each has two open files, of the 1024 that a process has where
/// nobody gave it more.
const METERS_MAX: usize = 256;
/// Threads of processes that were told to go and still run, whose files stay open, at most.
const LEAVING_MAX: usize = 64;
/// Threads of one process that are measured; the others are taken to be like them.
const METERS_PER_PROCESS_MAX: usize = 8;

/// A child that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    pub pid: u32,
    /// Its place in the shape.
    pub slot: usize,
    /// Its slot in the scoreboard.
    pub board_slot: usize,
}

/// What was decided in a turn.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// Scoreboard slots of the processes whose masks have changed.
    pub moved: Vec<usize>,
    /// Lines for the error log, with their numbers.
    pub lines: Vec<(u32, String)>,
    /// How new connections are to be spread over the loops from now on; empty is evenly.
    pub weights: Option<Vec<u32>>,
    /// The CPU of each loop where that has changed; none where loops do not have one each.
    pub receivers: Option<Vec<usize>>,
}

/// What is kept of each loop (or process) that serves.
struct Kept {
    child: Serving,
    /// The loop's number over all processes; the process's place where whole processes are placed.
    number: usize,
    slots: Vec<LoopSlot>,
    /// The threads that are measured, and their meters.
    threads: Vec<u32>,
    meters: Vec<(LoopSlot, ThreadMeter)>,
    /// The plan's CPUs; `None` where the kernel chooses.
    home: Option<CpuSet>,
    grip: Grip,
    doing: Doing,
    /// The turn that measured it first.
    first_seen: Option<Instant>,
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

    /// Looks at the children in `serving`, which `plan` has placed.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        serving: &[Serving],
        plan: &Plan,
        board: &Scoreboard,
        roots: &Roots,
    ) -> Decided {
        let mut bound = self.know(serving, plan, board);
        self.measure(now, plan.unit, roots);
        let mut decided = self.decide(now, plan, board, roots);
        bound.append(&mut decided.lines);
        decided.lines = bound;
        self.steer(now, plan, board, &mut decided);
        let is_busy = self.kept.iter().any(|kept| kept.doing.run + kept.doing.wait > IDLE);
        self.due = Some(now + if is_busy { TURN } else { TURN_IDLE });
        decided
    }

    /// Looks at them once a second, and only tells what it sees.
    pub(crate) fn watch(
        &mut self,
        now: Instant,
        serving: &[Serving],
        plan: &Plan,
        board: &Scoreboard,
        roots: &Roots,
    ) -> Vec<(u32, String)> {
        let bound = self.know(serving, plan, board);
        if self.due.is_none_or(|due| due <= now) {
            self.measure(now, plan.unit, roots);
            self.due = Some(now + TELL_EVERY);
        }
        bound
    }

    /// Puts everybody in the places of a new plan. Who has let go stays loose.
    pub(crate) fn replan(&mut self, plan: &Plan) -> Vec<usize> {
        for kept in &mut self.kept {
            kept.home = plan.place(kept.child.slot, kept.number).map(|place| place.cpus.clone());
            kept.publish(plan);
        }
        let mut moved: Vec<usize> = self.kept.iter().map(|kept| kept.child.board_slot).collect();
        moved.dedup();
        moved
    }

    /// Spreads new connections over the loops, where each has listeners of its own.
    fn steer(&mut self, now: Instant, plan: &Plan, board: &Scoreboard, decided: &mut Decided) {
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
        let Some(weights) = self.steering.turn(&loads) else { return };
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
    fn know(&mut self, serving: &[Serving], plan: &Plan, board: &Scoreboard) -> Vec<(u32, String)> {
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

    /// What everybody has done since the last turn.
    fn measure(&mut self, now: Instant, unit: Unit, roots: &Roots) {
        let passed = self.last.map_or(TURN, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        let passed_us = passed.as_micros().max(1) as f64;
        let mut room = METERS_MAX;
        for kept in &mut self.kept {
            // Nothing depends on a process that is not bound.
            if kept.home.is_none() && unit == Unit::Process {
                continue;
            }
            let (times, measured) = kept.times(roots, room);
            room = room.saturating_sub(measured);
            let scale = kept.slots.len().max(1) as f64 / measured.max(1) as f64 / passed_us;
            kept.doing.run = times.run_us as f64 * scale;
            kept.doing.wait = times.wait_us as f64 * scale;
        }
        self.leaving.retain_mut(|meter| meter.elapsed().is_some());
        if self.tell_at.is_none_or(|at| at <= now) {
            self.tell_at = Some(now + TELL_EVERY);
            self.kept.iter().for_each(Kept::tell);
        }
    }

    fn decide(&mut self, now: Instant, plan: &Plan, board: &Scoreboard, roots: &Roots) -> Decided {
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
        let busy = self.cpus.as_mut().and_then(CpuMeter::busy).unwrap_or_default();
        // What was read longer ago than a turn tells of another time.
        if !std::mem::replace(&mut self.is_fresh, true) {
            return decided;
        }
        let doing: Vec<Doing> = self.kept.iter().map(|kept| kept.doing.clone()).collect();
        let seen = pressure::see(&doing, &busy, &plan.usable);
        for (kept, seen) in self.kept.iter_mut().zip(&seen) {
            if kept.home.is_none() {
                continue;
            }
            if let Some(change) = kept.grip.turn(now, seen) {
                kept.publish(plan);
                decided.moved.push(kept.child.board_slot);
                decided.lines.push(kept.line(change, seen, plan));
                board.count_decision(match change {
                    Change::Widen => Decision::Widened,
                    Change::Return => Decision::Returned,
                });
            }
        }
        decided.moved.dedup();
        decided
    }
}

impl Kept {
    fn new(child: Serving, number: usize, slots: Vec<LoopSlot>, plan: &Plan) -> Self {
        let home = plan.place(child.slot, number).map(|place| place.cpus.clone());
        let of_home = home.clone().unwrap_or_else(|| plan.usable.clone());
        let doing = Doing { run: 0.0, wait: 0.0, home: of_home, is_wide: home.is_none() };
        let (threads, meters, grip) = (Vec::new(), Vec::new(), Grip::default());
        let first_seen = None;
        Self { child, number, slots, threads, meters, home, grip, doing, first_seen }
    }

    /// What its threads did since the last call, and how many of them were asked.
    fn times(&mut self, roots: &Roots, room: usize) -> (Times, usize) {
        let wanted = self.slots.len().min(METERS_PER_PROCESS_MAX).min(room);
        let threads: Vec<u32> =
            self.slots.iter().take(wanted).filter_map(LoopSlot::thread).collect();
        if threads != self.threads {
            let open = |slot: &LoopSlot| {
                Some((*slot, ThreadMeter::open(roots, self.child.pid, slot.thread()?)?))
            };
            self.meters = self.slots.iter().take(wanted).filter_map(open).collect();
            self.threads = threads;
        }
        let times = self.meters.iter_mut().filter_map(|(_, meter)| meter.elapsed());
        let sum = times.fold(Times::default(), |sum, one| Times {
            run_us: sum.run_us + one.run_us,
            wait_us: sum.wait_us + one.wait_us,
        });
        (sum, self.meters.len())
    }

    /// What the measured threads have waited and moved, into the scoreboard.
    fn tell(&self) {
        for (slot, meter) in &self.meters {
            slot.set_run_delay_us(meter.total().wait_us);
            if let Some(migrations) = meter.migrations() {
                slot.set_migrations(migrations);
            }
        }
    }

    /// Where it may run now, into the scoreboard.
    fn publish(&mut self, plan: &Plan) {
        let is_wide = self.grip.is_wide() || self.home.is_none();
        let home = self.home.as_ref().unwrap_or(&plan.usable);
        self.doing.home = home.clone();
        self.doing.is_wide = is_wide;
        let mask = if is_wide { &plan.usable } else { home };
        let planned = home.first().filter(|_| home.len() == 1);
        for slot in &self.slots {
            slot.set_place(&mask.to_words(), planned, self.grip.is_wide());
        }
    }

    fn load(&mut self, now: Instant, now_us: u64) -> Load {
        let first_seen = *self.first_seen.get_or_insert(now);
        let beat_us = self.slots.first().map_or(0, LoopSlot::heartbeat_us);
        let silence = match beat_us {
            0 => now.saturating_duration_since(first_seen),
            beat_us => Duration::from_micros(now_us.saturating_sub(beat_us)),
        };
        let is_stalled = silence > STALLED;
        Load { share: self.doing.run + self.doing.wait, is_stalled }
    }

    fn name(&self, plan: &Plan) -> String {
        match plan.unit {
            Unit::Loop => format!("loop {} (process {})", self.number, self.child.pid),
            Unit::Process => format!("process {}", self.child.pid),
        }
    }

    fn line(&self, change: Change, seen: &Seen, plan: &Plan) -> (u32, String) {
        let percent = |share: f64| (share * 100.0).round();
        let who = self.name(plan);
        let home = &self.doing.home;
        let foreign = percent(seen.foreign.unwrap_or(0.0));
        let (waiting, all) = (percent(seen.waiting), &plan.usable);
        match change {
            Change::Widen => (
                20100,
                format!(
                    "{who} waits {waiting}% of the time it could run, others use {foreign}% of \
                     CPU {home}: it may run on CPUs {all} now"
                ),
            ),
            Change::Return => {
                (20101, format!("{who} is bound to CPU {home} again, others use {foreign}% of it"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
