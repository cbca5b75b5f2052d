//! A serving loop (or process): its measurements, and where it may run.

use std::io;
use std::time::{Duration, Instant};

use messages::Message;

use super::Serving;
use crate::affinity::cpu_set::CpuSet;
use crate::affinity::cpus::Roots;
use crate::affinity::mask;
use crate::affinity::meter::{ThreadMeter, Times};
use crate::affinity::pin_policy::{Change, PinPolicy, Sample};
use crate::affinity::plan::{Plan, Unit};
use crate::affinity::pressure::Activity;
use crate::affinity::steer::Load;
use crate::scoreboard::LoopSlot;

/// A loop whose last heartbeat is older than this is stalled; heartbeats come once a second. For a
/// loop without any, the time counts from when it was first seen, so that a loop that hangs before
/// its first turn is stalled as well.
pub(super) const STALLED: Duration = Duration::from_millis(2_500);
/// Threads measured per process; the others are assumed to behave alike.
const METERS_PER_PROCESS_MAX: usize = 8;

/// The state of a serving loop (or process).
pub(super) struct Tracked {
    pub child: Serving,
    /// The loop's number over all processes, or the process's place if whole processes are placed.
    pub number: usize,
    pub slots: Vec<LoopSlot>,
    /// The measured threads, and their meters.
    pub threads: Vec<u32>,
    pub meters: Vec<(LoopSlot, ThreadMeter)>,
    /// The planned CPUs; `None` if the kernel chooses.
    pub home: Option<CpuSet>,
    pub pin: PinPolicy,
    pub activity: Activity,
    /// Its activity was measured in the last turn.
    pub is_measured: bool,
    /// The turn that first measured it.
    pub first_seen: Option<Instant>,
    /// Another program has bound it: it is left alone.
    pub is_left: bool,
    /// An earlier turn has seen it.
    pub is_known: bool,
}

/// Reads a thread's mask from the kernel.
pub(super) struct MaskOf(pub fn(i32) -> io::Result<CpuSet>);

impl Default for MaskOf {
    fn default() -> Self {
        Self(mask::of_thread)
    }
}

impl Tracked {
    pub(super) fn new(child: Serving, number: usize, slots: Vec<LoopSlot>, plan: &Plan) -> Self {
        let home = plan.place(child.slot, number).map(|place| place.cpus.clone());
        let of_home = home.clone().unwrap_or_else(|| plan.usable.clone());
        let activity = Activity { run: 0.0, wait: 0.0, home: of_home, is_wide: home.is_none() };
        let (threads, meters, pin) = (Vec::new(), Vec::new(), PinPolicy::default());
        Self {
            child,
            number,
            slots,
            threads,
            meters,
            home,
            pin,
            activity,
            is_measured: false,
            first_seen: None,
            is_left: false,
            is_known: false,
        }
    }

    /// The times of its threads since the last call, and how many threads were measured.
    pub(super) fn times(&mut self, roots: &Roots, room: usize) -> (Times, usize) {
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

    /// Publishes waits and migrations of the measured threads on the scoreboard.
    pub(super) fn tell(&self) {
        for (slot, meter) in &self.meters {
            slot.set_run_delay_us(meter.total().wait_us);
            if let Some(migrations) = meter.migrations() {
                slot.set_migrations(migrations);
            }
        }
    }

    /// The mask of its threads, if it is none that was set here.
    pub(super) fn mask_of_others(&self, plan: &Plan, mask_of: &MaskOf) -> Option<CpuSet> {
        let thread = i32::try_from(*self.threads.first()?).ok()?;
        let mask = (mask_of.0)(thread).ok()?;
        (self.home.as_ref() != Some(&mask) && mask != plan.usable).then_some(mask)
    }

    /// The mask last set, from the scoreboard; empty if none was.
    pub(super) fn given(&self) -> CpuSet {
        self.slots.first().map(|slot| CpuSet::from_words(&slot.mask())).unwrap_or_default()
    }

    /// Whether the mask last set differs from the plan's.
    pub(super) fn is_elsewhere(&self, plan: &Plan) -> bool {
        let given = self.given();
        !given.is_empty() && given != *self.home.as_ref().unwrap_or(&plan.usable)
    }

    /// The mask of its threads after the allowed CPUs have changed, if it is neither `given` nor
    /// what the kernel has made of that: the part still allowed, or all allowed CPUs.
    pub(super) fn mask_since(
        &self,
        given: &CpuSet,
        plan: &Plan,
        mask_of: &MaskOf,
    ) -> Option<CpuSet> {
        let thread = self.slots.first().and_then(LoopSlot::thread)?;
        let mask = (mask_of.0)(i32::try_from(thread).ok()?).ok()?;
        let is_own = mask == *given || mask == given.and(&plan.usable) || mask == plan.usable;
        (!given.is_empty() && !is_own).then_some(mask)
    }

    /// Another program has bound it: returns the log line for that, if it is new.
    pub(super) fn leave(&mut self, mask: &CpuSet, plan: &Plan) -> Option<(u32, String)> {
        let is_known = std::mem::replace(&mut self.is_left, true);
        let who = self.name(plan);
        let text = format!("{who} was bound to CPUs {mask} by another program and is left there");
        (!is_known).then_some((Message::BoundByOther.number(), text))
    }

    /// Publishes where it may run now on the scoreboard.
    pub(super) fn publish(&mut self, plan: &Plan) {
        let is_wide = self.pin.is_wide() || self.home.is_none();
        let home = self.home.as_ref().unwrap_or(&plan.usable);
        self.activity.home = home.clone();
        self.activity.is_wide = is_wide;
        let mask = if is_wide { &plan.usable } else { home };
        let planned = home.first().filter(|_| home.len() == 1);
        for slot in &self.slots {
            slot.set_place(&mask.to_words(), planned, self.pin.is_wide());
        }
    }

    pub(super) fn load(&mut self, now: Instant, now_us: u64) -> Load {
        let first_seen = *self.first_seen.get_or_insert(now);
        let beat_us = self.slots.first().map_or(0, LoopSlot::heartbeat_us);
        let silence = match beat_us {
            0 => now.saturating_duration_since(first_seen),
            beat_us => Duration::from_micros(now_us.saturating_sub(beat_us)),
        };
        let is_stalled = silence > STALLED;
        Load { share: self.activity.run + self.activity.wait, is_stalled }
    }

    pub(super) fn name(&self, plan: &Plan) -> String {
        match plan.unit {
            Unit::Loop => format!("loop {} (process {})", self.number, self.child.pid),
            Unit::Process => format!("process {}", self.child.pid),
        }
    }

    pub(super) fn line(&self, change: Change, sample: &Sample, plan: &Plan) -> (u32, String) {
        let percent = |share: f64| (share * 100.0).round();
        let who = self.name(plan);
        let home = &self.activity.home;
        let foreign = percent(sample.foreign.unwrap_or(0.0));
        let (waiting, all) = (percent(sample.waiting), &plan.usable);
        match change {
            Change::Widen => (
                Message::Widened.number(),
                format!(
                    "{who} waits {waiting}% of its runnable time, other programs use {foreign}% of \
                     CPU {home}: it may now run on CPUs {all}"
                ),
            ),
            Change::Return => (
                Message::Returned.number(),
                format!("{who} is bound to CPU {home} again: other programs use {foreign}% of it"),
            ),
            Change::Retreat => (
                Message::Returned.number(),
                format!("{who} is bound to CPU {home} again: no other CPU has idle time"),
            ),
        }
    }
}
