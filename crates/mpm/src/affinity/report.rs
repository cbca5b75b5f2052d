//! `-t -D DUMP_CPU`: the machine, the allowed CPUs, and the plan with its reasons.

use std::fmt::Write as _;

use super::cpus::Cpus;
use super::plan::{Plan, Unit};
use super::setting::{Affinity, Setting};
use super::topology::Topology;
use crate::shape::Shape;

/// The report, in lines.
pub fn report(topology: &Topology, cpus: &Cpus, shape: Shape, affinity: &Affinity) -> String {
    let mut out = String::from("CPUs:\n");
    machine(&mut out, topology, cpus);
    limits(&mut out, topology, cpus);
    let adapt = if affinity.adapt { "On" } else { "Off" };
    let _ = writeln!(out, "CPUAffinity: {}\nCPUAffinityAdapt: {adapt}", affinity.setting);
    let plan = Plan::new(topology, cpus, shape, &affinity.setting);
    let _ = writeln!(out, "Plan: {}", plan.rule);
    places(&mut out, &plan, shape);
    notes(&mut out, &plan, cpus, shape, affinity);
    out
}

fn machine(out: &mut String, topology: &Topology, cpus: &Cpus) {
    let has_speeds = topology.cpus.windows(2).any(|two| two[0].capacity != two[1].capacity);
    for cpu in &topology.cpus {
        let (number, core, cache, node) = (cpu.number, cpu.core, cpu.cache, cpu.node);
        let speed =
            if has_speeds { format!(" capacity {:>4}", cpu.capacity) } else { String::new() };
        let allowed = if cpus.allowed.contains(number) { "" } else { " not allowed" };
        let _ = writeln!(
            out,
            "  CPU {number:>3}: core {core:>3} cache {cache:>3} node {node}{speed}{allowed}"
        );
    }
    if topology.cpus.is_empty() {
        out.push_str("  sysfs has no topology: each allowed CPU counts as a core\n");
    }
}

fn limits(out: &mut String, topology: &Topology, cpus: &Cpus) {
    let online = topology.online();
    let _ = writeln!(out, "Online: {online}");
    let narrow = if !online.is_empty() && cpus.allowed != online {
        " (limited by an affinity mask or cpuset)"
    } else {
        ""
    };
    let _ = writeln!(out, "Allowed: {}{narrow}", cpus.allowed);
    match cpus.quota_thousandths {
        None => out.push_str("Quota: none\n"),
        Some(quota) => {
            let binds = if cpus.quota_binds() { "" } else { ", not less than the allowed CPUs" };
            let _ = writeln!(out, "Quota: {}.{:03} CPUs{binds}", quota / 1000, quota % 1000);
        }
    }
}

fn places(out: &mut String, plan: &Plan, shape: Shape) {
    let where_to = |slot: usize, number: usize| match plan.place(slot, number) {
        None => "any allowed CPU".to_owned(),
        Some(place) => {
            let plural = if place.cpus.len() == 1 { "CPU" } else { "CPUs" };
            let (core, cache, node) = (place.core, place.cache, place.node);
            let core = match plan.places.iter().all(|place| place.cpus.len() == 1) {
                true => format!("core {core}, "),
                false => String::new(),
            };
            format!("{plural} {} ({core}cache {cache}, node {node})", place.cpus)
        }
    };
    for slot in 0..shape.processes() {
        if plan.unit == Unit::Process {
            let _ = writeln!(out, "  process {slot}: {}", where_to(slot, slot));
            continue;
        }
        for index in 0..shape.loops_of(slot) {
            let number = shape.first_loop_of(slot) + index;
            let _ = writeln!(out, "  process {slot} loop {number}: {}", where_to(slot, number));
        }
    }
}

fn notes(out: &mut String, plan: &Plan, cpus: &Cpus, shape: Shape, affinity: &Affinity) {
    let places = plan.places.len();
    if let Setting::List(list) = &affinity.setting
        && !list.is_within(&cpus.allowed)
    {
        let _ = writeln!(out, "Note: only the allowed CPUs of CPUAffinity {list} are used");
    }
    if plan.unit == Unit::Process && places > 0 {
        let _ = writeln!(out, "Note: process {places} has the place of process 0, and so on");
    }
    if plan.unit == Unit::Loop && places > 0 && places < shape.total_loops() {
        let _ = writeln!(out, "Note: there are more loops than places, so some share a place");
    }
    if affinity.adapt && affinity.setting != Setting::Off {
        let _ = writeln!(
            out,
            "Note: CPUAffinityAdapt lets a loop leave a CPU that other programs need, and follows \
             changes of the mask, the quota and the online CPUs"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::{CpuSet, tests::Tree};

    #[test]
    fn the_report_says_what_is_where_and_why() {
        let tree = Tree::new("report", &[]);
        tree.machine(4, |cpu| (cpu % 2, 0, 0, 1024));
        let topology = Topology::read(&tree.roots());
        let cpus = Cpus { allowed: CpuSet::from_kernel("0-2"), quota_thousandths: Some(3000) };
        let shape = Shape::Event { processes: 2, loops: 3 };
        let text = report(&topology, &cpus, shape, &Affinity::default());
        for line in [
            "  CPU   2: core   0 cache   0 node 0",
            "  CPU   3: core   1 cache   0 node 0 not allowed",
            "Allowed: 0-2 (limited by an affinity mask or cpuset)",
            "Quota: 3.000 CPUs, not less than the allowed CPUs",
            "CPUAffinity: Auto",
            "  process 0 loop 1: CPU 2 (core 0, cache 0, node 0)",
            "  process 1 loop 2: CPU 1 (core 1, cache 0, node 0)",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.contains("Plan: a CPU each, first one per physical core"), "{text}");
    }

    #[test]
    fn a_quota_and_an_off_are_told() {
        let cpus = Cpus { allowed: CpuSet::from_kernel("0-1"), quota_thousandths: Some(1500) };
        let topology = Topology::default();
        let shape = Shape::Prefork { processes: 1 };
        let text = report(&topology, &cpus, shape, &Affinity::default());
        assert!(text.contains("Quota: 1.500 CPUs\n"), "{text}");
        assert!(text.contains("Plan: not pinned: the quota is less than"), "{text}");
        assert!(text.contains("  process 0: any allowed CPU\n"), "{text}");
        let text = report(&topology, &cpus, shape, &Affinity::off());
        assert!(text.contains("Plan: not pinned: CPUAffinity is Off\n"), "{text}");
        assert!(!text.contains("Note:"), "{text}");
    }
}
