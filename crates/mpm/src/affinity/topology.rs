//! The machine's CPUs, as sysfs describes them.
//!
//! Source: Documentation/admin-guide/cputopology.rst and Documentation/ABI/testing/sysfs-devices-
//! system-cpu of the kernel.

use std::fs;
use std::path::Path;

use super::cpu_set::CpuSet;
use super::cpus::Roots;

/// Caches per CPU at most.
const CACHES_MAX: usize = 16;
/// `cpu_capacity` if all CPUs are equal.
const CAPACITY_DEFAULT: u32 = 1024;

/// An online CPU: a hardware thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: usize,
    /// Its physical core: the lowest CPU number of the core's threads.
    pub core: usize,
    /// Its last-level cache: the lowest CPU number of those that share it.
    pub cache: usize,
    /// Its NUMA node.
    pub node: usize,
    /// Its speed relative to the fastest, which has 1024 (big.LITTLE, hybrid processors).
    pub capacity: u32,
}

/// The online CPUs, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// All of them.
    pub cpus: Vec<Cpu>,
}

impl Topology {
    /// Reads the tree at `roots.cpu`, with assumptions about what is missing: a CPU without
    /// siblings is a core, and without caches all CPUs of a package share one. Empty if it can't be
    /// read.
    pub fn read(roots: &Roots) -> Self {
        let root = &roots.cpu;
        let online = list(&root.join("online")).unwrap_or_default();
        Self { cpus: online.iter().map(|number| cpu(root, number, &online)).collect() }
    }

    /// The numbers of the online CPUs.
    pub fn online(&self) -> CpuSet {
        self.cpus.iter().map(|cpu| cpu.number).collect()
    }

    /// The CPU with this number; one that sysfs does not know counts as a core of its own.
    pub fn cpu(&self, number: usize) -> Cpu {
        let known = self.cpus.iter().find(|cpu| cpu.number == number).cloned();
        known.unwrap_or(Cpu { number, core: number, cache: 0, node: 0, capacity: CAPACITY_DEFAULT })
    }
}

fn cpu(root: &Path, number: usize, online: &CpuSet) -> Cpu {
    let own = root.join(format!("cpu{number}"));
    let topology = own.join("topology");
    let lowest = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| list(&topology.join(name)))?;
        found.and(online).first()
    };
    // Kernels before 5.3 have the old names.
    let core = lowest(["core_cpus_list", "thread_siblings_list"]);
    let package = lowest(["package_cpus_list", "core_siblings_list"]);
    Cpu {
        number,
        core: core.unwrap_or(number),
        cache: last_level_cache(&own, online).or(package).unwrap_or(0),
        node: node(&own),
        capacity: number_in(&own.join("cpu_capacity")).unwrap_or(CAPACITY_DEFAULT),
    }
}

/// The lowest CPU that shares the largest cache.
fn last_level_cache(own: &Path, online: &CpuSet) -> Option<usize> {
    let caches = (0..CACHES_MAX).map(|index| own.join(format!("cache/index{index}")));
    let of_data = caches.filter(|cache| {
        let kind = fs::read_to_string(cache.join("type"));
        kind.is_ok_and(|kind| kind.trim() != "Instruction")
    });
    let last = of_data.max_by_key(|cache| number_in(&cache.join("level")).unwrap_or(0))?;
    list(&last.join("shared_cpu_list"))?.and(online).first()
}

/// A CPU's directory has a link to its node: `node0`.
fn node(own: &Path) -> usize {
    let entries = fs::read_dir(own).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        entry.file_name().to_str()?.strip_prefix("node")?.parse::<usize>().ok()
    });
    numbers.min().unwrap_or(0)
}

fn list(file: &Path) -> Option<CpuSet> {
    let set = CpuSet::from_kernel(&fs::read_to_string(file).ok()?);
    (!set.is_empty()).then_some(set)
}

fn number_in(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::tests::Tree;

    #[test]
    fn cores_caches_nodes_and_capacities_are_read() {
        let tree = Tree::new("topology", &[]);
        // Two caches of two cores of two threads each, numbered as Linux does on x86: CPU 4 is the
        // second thread of CPU 0's core.
        tree.machine(8, |cpu| (cpu % 4, cpu % 4 / 2 * 2, cpu % 4 / 2, 1024 - 512 * (cpu % 2)));
        let topology = Topology::read(&tree.roots());
        assert_eq!(topology.online().to_string(), "0-7");
        let seen = topology.cpu(7);
        assert_eq!((seen.core, seen.cache, seen.node, seen.capacity), (3, 2, 1, 512));
        assert_eq!(topology.cpu(4).core, 0);
    }

    #[test]
    fn an_offline_cpu_is_no_sibling() {
        let tree = Tree::new("offline", &[]);
        tree.machine(4, |cpu| (cpu / 2 * 2, 0, 0, 1024));
        tree.write("cpu/online", "1-3\n");
        let topology = Topology::read(&tree.roots());
        assert_eq!(topology.online().to_string(), "1-3");
        assert_eq!((topology.cpu(1).core, topology.cpu(1).cache), (1, 1));
        assert_eq!(topology.cpu(3).core, 2);
    }

    #[test]
    fn without_caches_the_package_counts_and_without_sysfs_nothing_is_known() {
        let tree = Tree::new(
            "bare",
            &[
                ("cpu/online", "0-1\n"),
                ("cpu/cpu1/topology/thread_siblings_list", "1\n"),
                ("cpu/cpu1/topology/core_siblings_list", "0-1\n"),
            ],
        );
        assert_eq!(
            Topology::read(&tree.roots()).cpu(1),
            Cpu { number: 1, core: 1, cache: 0, node: 0, capacity: 1024 }
        );
        let empty = Topology::read(&Tree::new("nothing", &[]).roots());
        assert!(empty.cpus.is_empty());
        assert_eq!(empty.cpu(5).core, 5);
    }
}
