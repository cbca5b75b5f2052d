//! The memory of the serving processes.

use std::collections::HashMap;
use std::fs;

use nix::unistd::Pid;

use crate::site::Site;

/// The resident memory of each at the beginning, in KiB.
#[derive(Debug)]
pub struct Memory(HashMap<Pid, u64>);

impl Memory {
    pub fn of(site: &Site) -> Memory {
        let start = |pid| {
            // The peak is that from now on.
            fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
            (pid, of_child_kb(pid, "VmRSS:"))
        };
        Memory(children(site).into_iter().map(start).collect())
    }

    /// Asserts that the sum of what each has at its peak above that is at most `max_kb`. Processes
    /// that have started since are compared with the largest of the first ones.
    pub fn assert_peak_below(&self, site: &Site, max_kb: u64) {
        let largest = *self.0.values().max().unwrap();
        let grown = |pid| {
            let start = *self.0.get(&pid).unwrap_or(&largest);
            (pid, of_child_kb(pid, "VmHWM:").saturating_sub(start))
        };
        let grown: Vec<(Pid, u64)> = children(site).into_iter().map(grown).collect();
        let sum: u64 = grown.iter().map(|(_, kb)| kb).sum();
        assert!(sum < max_kb, "{sum} KiB above {self:?}: {grown:?}");
    }
}

/// Asserts that the peak of each process is at most `max_kb`. In prefork other processes than
/// before may be asked, so that the sum of all says little.
pub fn assert_each_peak_below(site: &Site, max_kb: u64) {
    for pid in site.children() {
        let peak = of_child_kb(pid, "VmHWM:");
        println!("peak {peak} KiB");
        assert!(peak < max_kb, "{peak} KiB in {pid}");
    }
}

/// Their present resident memory in KiB.
pub fn resident_kb(site: &Site) -> u64 {
    children(site).into_iter().map(|pid| of_child_kb(pid, "VmRSS:")).sum()
}

fn children(site: &Site) -> Vec<Pid> {
    let children = site.children();
    assert!(!children.is_empty(), "{}", site.error_log());
    children
}

fn of_child_kb(pid: Pid, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
