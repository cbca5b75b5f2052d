//! The supervisor's side: plans of the generations that there are, made when they are first asked
//! for.

use std::sync::Arc;

use super::cpu_set::CpuSet;
use super::cpus::{Cpus, Roots};
use super::mask;
use super::plan::{Plan, Unit};
use super::topology::Topology;
use crate::child::Child;
use crate::settings::Settings;

/// Plans of generations before the last ones are forgotten: their children are all forked.
const PLANS_MAX: usize = 4;

/// Who runs on which CPU.
#[derive(Debug)]
pub(crate) struct Placement {
    roots: Roots,
    topology: Topology,
    cpus: Cpus,
    plans: Vec<(u32, Arc<Plan>)>,
}

impl Placement {
    /// What the machine has and the process may use now.
    pub(crate) fn new(roots: Roots) -> Self {
        let whole = mask::current().unwrap_or_default();
        // Without memory for it, programs of children keep what masks they are started with.
        let _ = mask::remember_whole(&whole);
        let topology = Topology::read(&roots);
        let cpus = Cpus::from_roots(&roots, whole);
        Self { roots, topology, cpus, plans: Vec::new() }
    }

    /// Makes the plan of a generation, before its first child is forked.
    pub(crate) fn prepare(&mut self, generation: u32, settings: &Settings) {
        self.plan(generation, settings);
    }

    /// The CPUs of loop `number` of the process in `slot`; `None` where the kernel chooses.
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

    /// Binds the process that calls, before it has threads, where whole processes are placed.
    pub(crate) fn pin_process(&mut self, child: &Child) {
        let plan = self.plan(child.generation, &child.settings);
        if plan.unit == Unit::Process
            && let Some(place) = plan.place(child.slot, child.slot)
        {
            // Its CPUs may have been taken away a moment ago: then it runs where it may.
            let _ = mask::pin(&place.cpus);
        }
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

    /// Looks at the machine again.
    fn look(&mut self) {
        let whole = mask::current().unwrap_or_default();
        let _ = mask::remember_whole(&whole);
        self.topology = Topology::read(&self.roots);
        self.cpus = Cpus::from_roots(&self.roots, whole);
    }
}
