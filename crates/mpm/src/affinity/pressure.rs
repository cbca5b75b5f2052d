//! Turns one turn's measurements into what [`PinPolicy`](super::pin_policy::PinPolicy) decides by:
//! a pure function.

use std::collections::BTreeMap;

use super::cpu_set::CpuSet;
use super::meter::CpuTime;
use super::pin_policy::Sample;

/// The activity of one loop (or process) in a turn, as shares of a CPU.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// Time on a CPU.
    pub run: f64,
    /// Time ready to run, but not running.
    pub wait: f64,
    /// The planned CPUs.
    pub home: CpuSet,
    /// It may also run elsewhere.
    pub is_wide: bool,
}

/// One sample per entry of `activities`, given the CPUs' times.
pub(crate) fn sample(
    activities: &[Activity],
    times: &BTreeMap<usize, CpuTime>,
    allowed: &CpuSet,
) -> Vec<Sample> {
    // An unpinned loop may have run anywhere. Its time is subtracted from every CPU, so that the
    // foreign share is never overestimated.
    let loose: f64 = activities.iter().filter(|one| one.is_wide).map(|one| one.run).sum();
    let mut held = BTreeMap::<usize, f64>::new();
    for one in activities.iter().filter(|one| !one.is_wide) {
        let share = one.run / one.home.len().max(1) as f64;
        one.home.iter().for_each(|cpu| *held.entry(cpu).or_default() += share);
    }
    let foreign = |cpu: usize| {
        let own = held.get(&cpu).copied().unwrap_or(0.0);
        Some((times.get(&cpu)?.busy - own - loose).max(0.0))
    };
    let total = activities.iter().map(|one| one.run).sum();
    let sample = |one: &Activity| {
        let wanted = one.run + one.wait;
        let at_home: Vec<f64> = one.home.iter().filter_map(foreign).collect();
        let elsewhere = allowed.iter().filter(|cpu| !one.home.contains(*cpu));
        let idle = elsewhere.filter_map(|cpu| Some(times.get(&cpu)?.idle));
        Sample {
            wanted,
            waiting: if wanted > 0.0 { one.wait / wanted } else { 0.0 },
            foreign: (!at_home.is_empty())
                .then(|| at_home.iter().sum::<f64>() / at_home.len() as f64),
            room: idle.reduce(f64::max),
            total,
        }
    };
    activities.iter().map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(run: f64, wait: f64, home: &str, is_wide: bool) -> Activity {
        Activity { run, wait, home: CpuSet::from_kernel(home), is_wide }
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
        let loops = [activity(0.6, 0.0, "0", false), activity(0.5, 0.5, "1", false)];
        let samples = sample(&loops, &times([0.6, 1.0]), &allowed);
        assert!(close(samples[1].foreign.unwrap(), 0.5) && close(samples[1].waiting, 0.5));
        assert!(close(samples[1].room.unwrap(), 0.4), "{samples:?}");
        assert!(close(samples[0].foreign.unwrap(), 0.0) && close(samples[0].room.unwrap(), 0.0));
    }

    #[test]
    fn a_server_alone_sees_no_foreign_load() {
        let allowed = CpuSet::from_kernel("0-3");
        let time = |busy: f64| CpuTime { busy, idle: 1.0 - busy };
        let times =
            BTreeMap::from([(0, time(1.0)), (1, time(0.1)), (2, time(1.0)), (3, time(1.0))]);
        let loops = [
            activity(0.5, 0.5, "0", false),
            activity(0.5, 0.5, "0", false),
            activity(2.0, 0.0, "2-3", false),
        ];
        let samples = sample(&loops, &times, &allowed);
        assert!(samples.iter().all(|sample| close(sample.foreign.unwrap(), 0.0)), "{samples:?}");
    }

    #[test]
    fn an_unpinned_loop_is_not_foreign_load() {
        let allowed = CpuSet::from_kernel("0-1");
        let loops = [activity(0.6, 0.0, "0", false), activity(0.7, 0.1, "1", true)];
        // It ran on its own CPU, alone.
        let alone = sample(&loops, &times([0.6, 0.7]), &allowed);
        assert!(close(alone[1].foreign.unwrap(), 0.0));
        // CPU 1 is busier than the loop can account for.
        let pressed = sample(&loops, &times([0.9, 1.0]), &allowed);
        assert!(close(pressed[1].foreign.unwrap(), 0.3), "{pressed:?}");
    }

    #[test]
    fn what_was_not_measured_is_unknown() {
        let allowed = CpuSet::from_kernel("0-1");
        let samples = sample(&[activity(0.0, 0.0, "1", false)], &BTreeMap::new(), &allowed);
        assert_eq!((samples[0].foreign, samples[0].waiting, samples[0].room), (None, 0.0, None));
    }
}
