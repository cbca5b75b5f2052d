//! From times to what [`Grip`](super::grip::Grip) decides by: a pure function of one turn's
//! measurements.

use std::collections::BTreeMap;

use super::cpu_set::CpuSet;
use super::grip::Seen;
use super::meter::CpuTime;

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

/// What is seen of each in `doing`, when that became of the CPUs' time which `times` says.
pub(crate) fn see(
    doing: &[Doing],
    times: &BTreeMap<usize, CpuTime>,
    allowed: &CpuSet,
) -> Vec<Seen> {
    // Who is loose may have run anywhere: counted where it hides most, so that what is called
    // foreign surely is.
    let loose: f64 = doing.iter().filter(|one| one.is_wide).map(|one| one.run).sum();
    let mut held = BTreeMap::<usize, f64>::new();
    for one in doing.iter().filter(|one| !one.is_wide) {
        let share = one.run / one.home.len().max(1) as f64;
        one.home.iter().for_each(|cpu| *held.entry(cpu).or_default() += share);
    }
    let foreign = |cpu: usize| {
        let own = held.get(&cpu).copied().unwrap_or(0.0);
        Some((times.get(&cpu)?.busy - own - loose).max(0.0))
    };
    let total = doing.iter().map(|one| one.run).sum();
    let seen = |one: &Doing| {
        let wanted = one.run + one.wait;
        let at_home: Vec<f64> = one.home.iter().filter_map(foreign).collect();
        let elsewhere = allowed.iter().filter(|cpu| !one.home.contains(*cpu));
        let idle = elsewhere.filter_map(|cpu| Some(times.get(&cpu)?.idle));
        Seen {
            wanted,
            waiting: if wanted > 0.0 { one.wait / wanted } else { 0.0 },
            foreign: (!at_home.is_empty())
                .then(|| at_home.iter().sum::<f64>() / at_home.len() as f64),
            room: idle.reduce(f64::max),
            total,
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

    fn times(busy: [f64; 2]) -> BTreeMap<usize, CpuTime> {
        let of = |(cpu, busy): (usize, f64)| (cpu, CpuTime { busy, idle: 1.0 - busy });
        busy.into_iter().enumerate().map(of).collect()
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_foreign_process_presses_one_of_two() {
        let allowed = CpuSet::from_kernel("0-1");
        let loops = [doing(0.6, 0.0, "0", false), doing(0.5, 0.5, "1", false)];
        let seen = see(&loops, &times([0.6, 1.0]), &allowed);
        assert!(close(seen[1].foreign.unwrap(), 0.5) && close(seen[1].waiting, 0.5));
        assert!(close(seen[1].room.unwrap(), 0.4), "{seen:?}");
        assert!(close(seen[0].foreign.unwrap(), 0.0) && close(seen[0].room.unwrap(), 0.0));
    }

    #[test]
    fn loops_alone_are_nobody_foreign() {
        let allowed = CpuSet::from_kernel("0-3");
        let time = |busy: f64| CpuTime { busy, idle: 1.0 - busy };
        let times =
            BTreeMap::from([(0, time(1.0)), (1, time(0.1)), (2, time(1.0)), (3, time(1.0))]);
        let loops = [
            doing(0.5, 0.5, "0", false),
            doing(0.5, 0.5, "0", false),
            doing(2.0, 0.0, "2-3", false),
        ];
        let seen = see(&loops, &times, &allowed);
        assert!(seen.iter().all(|seen| close(seen.foreign.unwrap(), 0.0)), "{seen:?}");
    }

    #[test]
    fn who_is_loose_is_not_taken_for_foreign() {
        let allowed = CpuSet::from_kernel("0-1");
        let loops = [doing(0.6, 0.0, "0", false), doing(0.7, 0.1, "1", true)];
        // It ran on its own CPU, and nobody else did.
        let alone = see(&loops, &times([0.6, 0.7]), &allowed);
        assert!(close(alone[1].foreign.unwrap(), 0.0));
        // CPU 1 is busy with more than it can have done.
        let pressed = see(&loops, &times([0.9, 1.0]), &allowed);
        assert!(close(pressed[1].foreign.unwrap(), 0.3), "{pressed:?}");
    }

    #[test]
    fn what_nobody_measured_is_unknown() {
        let allowed = CpuSet::from_kernel("0-1");
        let seen = see(&[doing(0.0, 0.0, "1", false)], &BTreeMap::new(), &allowed);
        assert_eq!((seen[0].foreign, seen[0].waiting, seen[0].room), (None, 0.0, None));
    }
}
