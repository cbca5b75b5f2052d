//! Placement and its reason: a function of the machine, the allowed CPUs, the shape and the
//! setting.

use std::fmt;

use super::cpu_set::CpuSet;
use super::cpus::Cpus;
use super::setting::Setting;
use super::topology::{Cpu, Topology};
use crate::shape::Shape;

/// Where the loops (of event and loop) or processes (of prefork and worker) run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The reason for the plan.
    pub rule: Rule,
    /// One place per loop or process, reused from the first if there are more of them. Empty if the
    /// kernel places everything.
    pub places: Vec<Place>,
    /// What is placed: loops, or processes with all their threads.
    pub unit: Unit,
    /// All usable CPUs, for everything that is not bound.
    pub usable: CpuSet,
    /// The number of the first loop of each process.
    pub first_loops: Vec<usize>,
    /// Loops of all processes together.
    pub loops: usize,
}

/// What is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each loop by itself.
    Loop,
    /// Each process, with all its threads.
    Process,
}

impl Unit {
    /// What is placed in `shape`.
    pub(crate) fn of(shape: Shape) -> Self {
        match shape {
            Shape::Event { .. } | Shape::Loop => Self::Loop,
            Shape::Worker { .. } | Shape::Prefork { .. } => Self::Process,
        }
    }
}

/// A place for a loop or process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its CPUs.
    pub cpus: CpuSet,
    /// The lowest CPU of its core, or of its first core.
    pub core: usize,
    /// The lowest CPU of its last-level cache.
    pub cache: usize,
    /// Its NUMA node.
    pub node: usize,
}

/// The reason for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `CPUAffinity Off`
    Off,
    /// There is one CPU, hence no choice.
    OneCpu,
    /// The quota is less than the allowed CPUs: a loop bound to one CPU would be throttled there
    /// while time is left on others.
    Quota,
    /// None of the listed CPUs is allowed.
    NoneListed,
    /// All allowed CPUs share their last-level cache, and there is not one for each loop.
    OneCache,
    /// A core each; there are at most as many loops as cores.
    Cores,
    /// A CPU each, including second threads of cores.
    Threads,
    /// The CPUs of a last-level cache each.
    Caches,
    /// All of the listed CPUs, together.
    Listed,
}

impl Plan {
    /// Makes the plan for `shape` within `cpus` on a machine with `topology`.
    pub fn new(topology: &Topology, cpus: &Cpus, shape: Shape, setting: &Setting) -> Self {
        let usable = usable(topology, cpus, setting);
        let (unit, units) = units(shape, usable.len());
        let has_quota = cpus.quota_binds();
        let with = |rule, places| {
            let first_loops =
                (0..shape.processes()).map(|slot| shape.first_loop_of(slot)).collect();
            let listed: CpuSet = usable.iter().map(|cpu| cpu.number).collect();
            let usable = if listed.is_empty() { cpus.allowed.clone() } else { listed };
            Self { rule, places, unit, usable, first_loops, loops: shape.total_loops() }
        };
        let free = |rule| with(rule, Vec::new());
        if *setting == Setting::Off {
            return free(Rule::Off);
        }
        if usable.is_empty() {
            return free(Rule::NoneListed);
        }
        if cpus.allowed.len() == 1 {
            return free(Rule::OneCpu);
        }
        let caches = || {
            let groups = group(&usable, |cpu| (cpu.node, cpu.cache));
            let is_all = groups.len() == 1 && usable.len() == cpus.allowed.len();
            match (is_all, setting) {
                (true, _) => free(Rule::OneCache),
                (false, Setting::List(_)) => with(Rule::Listed, vec![place(&usable)]),
                (false, _) => with(Rule::Caches, share_out(&groups, unit, units)),
            }
        };
        match setting {
            Setting::Llc => caches(),
            Setting::List(_) if has_quota => with(Rule::Listed, vec![place(&usable)]),
            _ if has_quota => free(Rule::Quota),
            Setting::Core => {
                let cores = group(&usable, |cpu| (cpu.node, cpu.cache, cpu.core));
                with(Rule::Cores, one_each(&cores, unit, units))
            }
            Setting::Auto if unit == Unit::Process || units > usable.len() => caches(),
            _ => {
                let chosen = first_by_merit(&usable, unit, units);
                let is_core_each = chosen.iter().all(|cpu| cpu.rank == 0);
                let rule = if is_core_each { Rule::Cores } else { Rule::Threads };
                let alone = chosen.into_iter().map(|cpu| vec![cpu]).collect::<Vec<_>>();
                with(rule, one_each(&alone, unit, units))
            }
        }
    }

    /// The place of loop `number` (counted over all processes) of the process in `slot`; `None` if
    /// the kernel chooses.
    pub fn place(&self, slot: usize, number: usize) -> Option<&Place> {
        let unit = match self.unit {
            Unit::Loop => number,
            Unit::Process => slot,
        };
        self.places.get(unit.checked_rem(self.places.len())?)
    }

    /// The useful number of loops under `setting`: one per usable CPU or core, or the quota rounded
    /// up if that is less. At least 1.
    pub fn loops_wanted(topology: &Topology, cpus: &Cpus, setting: &Setting) -> usize {
        let usable = usable(topology, cpus, setting);
        let places = match setting {
            Setting::Core => usable.iter().filter(|cpu| cpu.rank == 0).count(),
            _ => usable.len(),
        };
        // A list without any usable CPU is ignored.
        if places == 0 { cpus.count() } else { places.min(cpus.count()) }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Off => "not pinned: CPUAffinity is Off",
            Self::OneCpu => "not pinned: only one CPU is allowed",
            Self::Quota => {
                "not pinned: the quota is less than the allowed CPUs, and a loop bound to one CPU \
                 would be throttled while time is left on others"
            }
            Self::NoneListed => "not pinned: none of the CPUs of CPUAffinity is allowed",
            Self::OneCache => {
                "not pinned: all allowed CPUs share one last-level cache, and there is not one for \
                 each loop or process"
            }
            Self::Cores => "a physical core each, adjacent loops under one last-level cache",
            Self::Threads => {
                "a CPU each, first one per physical core and then their second threads, adjacent \
                 loops under one last-level cache"
            }
            Self::Caches => "the CPUs of one last-level cache each",
            Self::Listed => "all of the listed CPUs, together",
        })
    }
}

/// A usable CPU.
#[derive(Clone, Debug)]
struct Usable {
    cpu: Cpu,
    /// The number of usable threads of its core that precede it.
    rank: usize,
}

impl std::ops::Deref for Usable {
    type Target = Cpu;

    fn deref(&self) -> &Cpu {
        &self.cpu
    }
}

/// What is placed, and how many places to plan. Processes may be added later, so they are planned
/// up to the number of CPUs.
fn units(shape: Shape, usable: usize) -> (Unit, usize) {
    match Unit::of(shape) {
        Unit::Loop => (Unit::Loop, shape.total_loops()),
        Unit::Process => (Unit::Process, shape.processes().max(usable)),
    }
}

/// The allowed (and listed) CPUs, by node, cache and core.
fn usable(topology: &Topology, cpus: &Cpus, setting: &Setting) -> Vec<Usable> {
    let allowed = match setting {
        Setting::List(list) => cpus.allowed.and(list),
        _ => cpus.allowed.clone(),
    };
    let online = topology.online();
    let is_there = |cpu: &usize| online.is_empty() || online.contains(*cpu);
    let mut known: Vec<Cpu> = allowed.iter().filter(is_there).map(|n| topology.cpu(n)).collect();
    known.sort_by_key(|cpu| (cpu.node, cpu.cache, cpu.core, cpu.number));
    let mut usable: Vec<Usable> = Vec::with_capacity(known.len());
    for cpu in known {
        let rank = match usable.last() {
            Some(last) if last.core == cpu.core => last.rank + 1,
            _ => 0,
        };
        usable.push(Usable { cpu, rank });
    }
    usable
}

/// The best `wanted` CPUs: every core's first thread before any second one, and faster cores before
/// slower ones.
///
/// For loops, CPUs under one cache are preferred, and the chosen ones are returned in the machine's
/// order, so that the loops of a process are adjacent. Processes come and go, so theirs are in
/// order of preference, alternating between caches.
fn first_by_merit(usable: &[Usable], unit: Unit, wanted: usize) -> Vec<Usable> {
    use std::cmp::Reverse;
    let mut sorted = usable.to_vec();
    let turn = |cpu: &Usable| {
        let is_before = |other: &&Usable| {
            other.cache == cpu.cache && other.rank == cpu.rank && other.core < cpu.core
        };
        usable.iter().filter(is_before).count()
    };
    match unit {
        // The sort is stable: CPUs of equal rank and speed keep the machine's order.
        Unit::Loop => sorted.sort_by_key(|cpu| (cpu.rank, Reverse(cpu.capacity))),
        Unit::Process => {
            sorted.sort_by_cached_key(|cpu| (cpu.rank, Reverse(cpu.capacity), turn(cpu)));
        }
    }
    sorted.truncate(wanted.max(1));
    if unit == Unit::Loop {
        sorted.sort_by_key(|cpu| (cpu.node, cpu.cache, cpu.core, cpu.number));
    }
    sorted
}

/// Groups adjacent entries of `usable` with equal keys.
fn group<K: PartialEq>(usable: &[Usable], key: impl Fn(&Cpu) -> K) -> Vec<Vec<Usable>> {
    usable.chunk_by(|one, next| key(one) == key(next)).map(<[_]>::to_vec).collect()
}

/// One group per unit, reused from the first if there are fewer groups.
fn one_each(groups: &[Vec<Usable>], unit: Unit, units: usize) -> Vec<Place> {
    let firsts: Vec<Usable> = groups.iter().filter_map(|group| group.first().cloned()).collect();
    let chosen = first_by_merit(&firsts, unit, units);
    let of =
        |cpu: &Usable| groups.iter().find(|g| g.first().is_some_and(|f| f.number == cpu.number));
    chosen.iter().filter_map(of).map(|group| place(group)).collect()
}

/// One group per unit, each used in proportion to its CPUs.
fn share_out(groups: &[Vec<Usable>], unit: Unit, units: usize) -> Vec<Place> {
    let all: Vec<Usable> = groups.concat();
    if unit == Unit::Process {
        let of = |cpu: &Usable| groups.iter().find(|g| g.iter().any(|c| c.number == cpu.number));
        let chosen = first_by_merit(&all, unit, units);
        return chosen.iter().filter_map(of).map(|group| place(group)).collect();
    }
    let mut places = Vec::with_capacity(units);
    let mut before = 0;
    for group in groups {
        before += group.len();
        let until = (before * units).div_ceil(all.len().max(1)).min(units);
        while places.len() < until {
            places.push(place(group));
        }
    }
    places
}

fn place(cpus: &[Usable]) -> Place {
    let first = cpus.first();
    Place {
        cpus: cpus.iter().map(|cpu| cpu.number).collect(),
        core: first.map_or(0, |cpu| cpu.core),
        cache: first.map_or(0, |cpu| cpu.cache),
        node: first.map_or(0, |cpu| cpu.node),
    }
}

#[cfg(test)]
mod tests;
