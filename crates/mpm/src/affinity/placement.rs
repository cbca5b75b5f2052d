//! The supervisor's side: the plans of the existing generations, made on demand, and the adaptation
//! of the serving one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use messages::Message;

use super::adapt::{Adapter, Decided, Serving, View};
use super::cpu_set::CpuSet;
use super::cpus::{Cpus, Roots};
use super::mask;
use super::plan::{Plan, Rule, Unit};
use super::queues;
use super::setting::Setting;
use super::topology::Topology;
use crate::child::Child;
use crate::scoreboard::{Decision, Scoreboard};
use crate::settings::{ListenAddress, Settings};

/// Plans kept: the children of older generations have all been forked.
const PLANS_MAX: usize = 4;
/// How often masks, quotas and the online CPUs are checked.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Which loop or process runs on which CPU.
pub(crate) struct Placement {
    roots: Roots,
    topology: Topology,
    cpus: Cpus,
    plans: Vec<(u32, Arc<Plan>)>,
    adapter: Adapter,
    /// The last reported CPUs of a generation's loops.
    told: Option<(u32, Vec<usize>)>,
    look_at: Option<Instant>,
    /// A change that has not been applied yet, as text.
    change: Option<String>,
}

impl Placement {
    /// Detects the machine and what the process may use.
    pub(crate) fn new(roots: Roots) -> Self {
        let (topology, cpus) = look(&roots);
        let (plans, adapter) = (Vec::new(), Adapter::default());
        let (told, look_at, change) = (None, None, None);
        Self { roots, topology, cpus, plans, adapter, told, look_at, change }
    }

    /// Makes the plan of a generation, before its first child is forked.
    pub(crate) fn prepare(&mut self, generation: u32, settings: &Settings) {
        self.plan(generation, settings);
    }

    /// A warning about the effect of the configured `CPUAffinity`, if one is needed.
    pub(crate) fn warning(&mut self, generation: u32, settings: &Settings) -> Option<String> {
        let plan = self.plan(generation, settings);
        let (setting, allowed) = (&settings.affinity.setting, &self.cpus.allowed);
        (plan.rule == Rule::NoneListed).then(|| {
            format!(
                "CPUAffinity {setting}: none of these CPUs is allowed (only {allowed}); nothing is \
                 bound"
            )
        })
    }

    /// The CPUs of loop `number` of the process in `slot`; `None` if the kernel chooses.
    pub(crate) fn cpus(
        &mut self,
        generation: u32,
        settings: &Settings,
        slot: usize,
        number: usize,
    ) -> Option<CpuSet> {
        let plan = self.plan(generation, settings);
        plan.place(slot, number).map(|place| place.cpus.clone())
    }

    /// Binds the calling process, before it has threads, if whole processes are placed.
    pub(crate) fn pin_process(&mut self, child: &Child) {
        let plan = self.plan(child.generation, &child.settings);
        if plan.unit == Unit::Process
            && let Some(place) = plan.place(child.slot, child.slot)
        {
            // Fails if its CPUs were just taken away: then it runs wherever it may.
            let _ = mask::pin(&place.cpus);
        }
    }

    /// Samples the serving generation and decides, if that is due.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        (generation, settings): (u32, &Settings),
        serving: &[Serving],
        board: &Scoreboard,
    ) -> Decided {
        let receivers = self.receivers(generation, settings);
        let decided = self.decide(now, (generation, settings), serving, board);
        Decided { receivers, ..decided }
    }

    /// Whether connections to `address` arrive on all of `cpus`.
    pub(crate) fn is_spread(&self, address: ListenAddress, cpus: &[usize]) -> bool {
        queues::are_spread(&self.roots, address, cpus)
    }

    /// The CPU of each loop, if changed since the last call.
    fn receivers(&mut self, generation: u32, settings: &Settings) -> Option<Vec<usize>> {
        let cpus = queues::cpu_each(&self.plan(generation, settings)).unwrap_or_default();
        let now = (generation, cpus);
        let is_new = self.told.as_ref() != Some(&now);
        is_new.then(|| self.told.insert(now).1.clone())
    }

    fn decide(
        &mut self,
        now: Instant,
        (generation, settings): (u32, &Settings),
        serving: &[Serving],
        board: &Scoreboard,
    ) -> Decided {
        if settings.affinity.setting == Setting::Off {
            let weights = self.adapter.stop();
            return Decided { weights, ..Decided::default() };
        }
        if !settings.affinity.adapt {
            let weights = self.adapter.end_steering();
            let plan = &self.plan(generation, settings);
            let roots = &self.roots;
            let lines = self.adapter.watch(now, View { serving, plan, board, roots });
            return Decided { lines, weights, ..Decided::default() };
        }
        if self.adapter.due().is_some_and(|due| now < due) {
            return Decided::default();
        }
        let changed = self.follow(now);
        let plan = self.plan(generation, settings);
        let view = View { serving, plan: &plan, board, roots: &self.roots };
        let Some(line) = changed else { return self.adapter.turn(now, view) };
        board.count_decision(Decision::Replanned);
        let mut decided = self.adapter.replan(now, view);
        decided.lines.insert(0, (Message::Replanned.number(), format!("{line}: {}", plan.rule)));
        decided
    }

    /// Closes the supervisor's meters, in a child.
    pub(crate) fn forget(&mut self) {
        self.adapter = Adapter::default();
    }

    /// Suspends the turns: no generation serves, or the server is shutting down.
    pub(crate) fn rest(&mut self) {
        self.adapter.rest();
    }

    /// When [`Placement::turn`] is due.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        self.adapter.due()
    }

    /// Checks, if that is due, whether the machine or the allowed CPUs have changed; returns the
    /// changes since the last call as text.
    fn follow(&mut self, now: Instant) -> Option<String> {
        if self.look_at.is_none_or(|at| now >= at) {
            self.look_at = Some(now + LOOK_INTERVAL);
            self.look();
        }
        self.change.take()
    }

    /// Checks now, and remembers what has changed: a starting generation checks too, and the
    /// earlier ones must still follow.
    fn look(&mut self) {
        let (topology, cpus) = look(&self.roots);
        if (&topology, &cpus) == (&self.topology, &self.cpus) {
            return;
        }
        let quota = |cpus: &Cpus| match cpus.quota_thousandths {
            Some(quota) => format!("a quota of {}.{:03}", quota / 1000, quota % 1000),
            None => "no quota".to_owned(),
        };
        self.change = Some(format!(
            "CPUs {} of {} with {} are now allowed, instead of {} of {} with {}",
            cpus.allowed,
            topology.online(),
            quota(&cpus),
            self.cpus.allowed,
            self.topology.online(),
            quota(&self.cpus),
        ));
        (self.topology, self.cpus) = (topology, cpus);
        // Plans of other generations are made again on demand.
        self.plans.clear();
    }

    fn plan(&mut self, generation: u32, settings: &Settings) -> Arc<Plan> {
        if let Some((_, plan)) = self.plans.iter().find(|(number, _)| *number == generation) {
            return Arc::clone(plan);
        }
        self.look();
        let setting = &settings.affinity.setting;
        let plan = Arc::new(Plan::new(&self.topology, &self.cpus, settings.shape, setting));
        if self.plans.len() >= PLANS_MAX {
            self.plans.remove(0);
        }
        self.plans.push((generation, Arc::clone(&plan)));
        plan
    }
}

/// Detects the machine, and stores the supervisor's mask for executed programs.
fn look(roots: &Roots) -> (Topology, Cpus) {
    let whole = mask::current().unwrap_or_default();
    // If this fails for want of memory, programs of children keep the mask they inherit.
    let _ = mask::remember_whole(&whole);
    (Topology::read(roots), Cpus::from_roots(roots, whole))
}

#[cfg(test)]
mod tests;
