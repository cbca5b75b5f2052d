//! From times to what [`Grip`](super::grip::Grip) decides by: a pure function of one turn's
//! measurements.

use std::collections::BTreeMap;

use super::cpu_set::CpuSet;
use super::grip::Seen;

/// What one loop (or process) did in a turn, in shares of a CPU.
#[derive(Clone, Debug)]
pub(crate) struct Doing {
    /// Time on a CPU.
    pub run: f64,
    /// Time ready to run, on none.
    pub wait: f64,
    /// The CPUs of the plan.
    pub home: CpuSet,
    /// It may run elsewhere, too.
    pub is_wide: bool,
}

/// What is seen of each in `doing`, when CPUs were as busy as `busy` says.
pub(crate) fn see(doing: &[Doing], busy: &BTreeMap<usize, f64>, allowed: &CpuSet) -> Vec<Seen> {
    let of_all = |measure: &dyn Fn(usize) -> f64| -> BTreeMap<usize, f64> {
        allowed.iter().map(|cpu| (cpu, measure(cpu))).collect()
    };
    let at = |cpu: usize, measure: &dyn Fn(&Doing) -> f64| -> f64 {
        let here = doing.iter().filter(|one| !one.is_wide && one.home.contains(cpu));
        here.map(|one| measure(one) / one.home.len().max(1) as f64).sum()
    };
    let held = of_all(&|cpu| at(cpu, &|one| one.run));
    // Who is loose may have run anywhere: counted where it hides most, so that what is called
    // foreign surely is.
    let loose: f64 = doing.iter().filter(|one| one.is_wide).map(|one| one.run).sum();
    let foreign = |cpu: usize| {
        let others = busy.get(&cpu)? - held.get(&cpu).copied().unwrap_or(0.0);
        Some((others - loose).max(0.0))
    };
    let waits = of_all(&|cpu| at(cpu, &|one| one.wait));
    // What a CPU does, and what waits for it.
    let demand =
        |cpu: usize| busy.get(&cpu).map(|share| share + waits.get(&cpu).copied().unwrap_or(0.0));
    let mean = |cpus: &CpuSet, measure: &dyn Fn(usize) -> Option<f64>| -> Option<f64> {
        let known: Vec<f64> = cpus.iter().filter_map(measure).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let seen = |one: &Doing| {
        let wanted = one.run + one.wait;
        let elsewhere = allowed.iter().filter(|cpu| !one.home.contains(*cpu)).filter_map(demand);
        let least = elsewhere.fold(f64::INFINITY, f64::min);
        Seen {
            wanted,
            waiting: if wanted > 0.0 { one.wait / wanted } else { 0.0 },
            foreign: mean(&one.home, &foreign),
            relief: mean(&one.home, &demand).map_or(0.0, |own| own - least),
        }
    };
    doing.iter().map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doing(run: f64, wait: f64, home: &str, is_wide: bool) -> Doing {
        Doing { run, wait, home: CpuSet::from_kernel(home), is_wide }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_foreign_process_presses_one_of_two() {
        let allowed = CpuSet::from_kernel("0-1");
        let busy = BTreeMap::from([(0, 0.6), (1, 1.0)]);
        let loops = [doing(0.6, 0.0, "0", false), doing(0.5, 0.5, "1", false)];
        let seen = see(&loops, &busy, &allowed);
        assert!(close(seen[1].foreign.unwrap(), 0.5) && close(seen[1].waiting, 0.5));
        assert!(close(seen[1].relief, 0.9), "{seen:?}");
        assert!(close(seen[0].foreign.unwrap(), 0.0) && seen[0].relief < 0.0);
    }

    #[test]
    fn loops_alone_are_nobody_foreign() {
        let allowed = CpuSet::from_kernel("0-3");
        let busy = BTreeMap::from([(0, 1.0), (1, 0.1), (2, 1.0), (3, 1.0)]);
        let loops = [
            doing(0.5, 0.5, "0", false),
            doing(0.5, 0.5, "0", false),
            doing(2.0, 0.0, "2-3", false),
        ];
        let seen = see(&loops, &busy, &allowed);
        assert!(seen.iter().all(|seen| close(seen.foreign.unwrap(), 0.0)), "{seen:?}");
    }

    #[test]
    fn who_is_loose_is_not_taken_for_foreign() {
        let allowed = CpuSet::from_kernel("0-1");
        let loops = [doing(0.6, 0.0, "0", false), doing(0.7, 0.1, "1", true)];
        // It ran on its own CPU, and nobody else did.
        let alone = see(&loops, &BTreeMap::from([(0, 0.6), (1, 0.7)]), &allowed);
        assert!(close(alone[1].foreign.unwrap(), 0.0));
        // CPU 1 is busy with more than it can have done.
        let pressed = see(&loops, &BTreeMap::from([(0, 0.9), (1, 1.0)]), &allowed);
        assert!(close(pressed[1].foreign.unwrap(), 0.3), "{pressed:?}");
    }

    #[test]
    fn what_nobody_measured_is_unknown() {
        let allowed = CpuSet::from_kernel("0-1");
        let seen = see(&[doing(0.0, 0.0, "1", false)], &BTreeMap::new(), &allowed);
        assert_eq!((seen[0].foreign, seen[0].waiting, seen[0].relief), (None, 0.0, 0.0));
    }
}
