//! The memory of the serving processes.

use std::fs;

use nix::unistd::Pid;

use crate::site::Site;

/// Their resident memory at the beginning, in KiB.
pub struct Memory(u64);

impl Memory {
    pub fn of(site: &Site) -> Memory {
        Memory(resident_kb(site))
    }

    /// Asserts that their peak is at most `max_kb` above that.
    pub fn assert_peak_below(&self, site: &Site, max_kb: u64) {
        let grown = sum_kb(site, "VmHWM:").saturating_sub(self.0);
        assert!(grown < max_kb, "{grown} KiB");
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
    sum_kb(site, "VmRSS:")
}

fn sum_kb(site: &Site, field: &str) -> u64 {
    let children = site.children();
    assert!(!children.is_empty(), "{}", site.error_log());
    children.into_iter().map(|pid| of_child_kb(pid, field)).sum()
}

fn of_child_kb(pid: Pid, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
