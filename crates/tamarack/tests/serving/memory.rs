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

/// Their present resident memory in KiB.
pub fn resident_kb(site: &Site) -> u64 {
    sum_kb(site, "VmRSS:")
}

fn sum_kb(site: &Site, field: &str) -> u64 {
    let of_child = |pid: &Pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let children = site.children();
    assert!(!children.is_empty(), "{}", site.error_log());
    children.iter().map(of_child).sum()
}
