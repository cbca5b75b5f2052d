//! How many CPUs the server may use: affinity mask, cpuset and quota.

use std::fs;
use std::path::{Path, PathBuf};

use super::cpu_set::CpuSet;
use super::mask;

/// The CPUs that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Numbers of the CPUs that it may run on, ascending; at least one. The kernel has already
    /// applied the cpuset to the affinity mask.
    pub allowed: CpuSet,
    /// The cgroups' quota in thousandths of a CPU, if there is one.
    pub quota_thousandths: Option<u64>,
}

/// Where the kernel's file systems are mounted; tests use a directory instead.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/proc`
    pub proc: PathBuf,
    /// `/sys/fs/cgroup`
    pub cgroup: PathBuf,
    /// `/sys/devices/system/cpu`
    pub cpu: PathBuf,
    /// `/sys/class/net`
    pub net: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            cgroup: "/sys/fs/cgroup".into(),
            cpu: "/sys/devices/system/cpu".into(),
            net: "/sys/class/net".into(),
        }
    }
}

impl Cpus {
    /// Detects what the running process may use. One CPU if nothing can be read.
    pub fn detect() -> Self {
        Self::from_roots(&Roots::default(), mask::current().unwrap_or_default())
    }

    /// As [`Cpus::detect`], from another tree and for another affinity mask.
    pub fn from_roots(roots: &Roots, affinity: CpuSet) -> Self {
        let groups = Groups::read(roots);
        let mut allowed = affinity;
        // The kernel applies the cpuset to the mask, but a mask taken before the process was moved
        // into its cgroup can be wider.
        if let Some(cpuset) = groups.cpuset() {
            let both = allowed.and(&cpuset);
            if !both.is_empty() {
                allowed = both;
            }
        }
        if allowed.is_empty() {
            allowed = CpuSet::from_iter([0]);
        }
        Self { allowed, quota_thousandths: groups.quota() }
    }

    /// The useful number of loops: the allowed CPUs, or the quota rounded up if that is less. At
    /// least 1.
    pub fn count(&self) -> usize {
        let quota = self.quota_thousandths.map_or(usize::MAX, |quota| {
            usize::try_from(quota.div_ceil(1000)).unwrap_or(usize::MAX)
        });
        self.allowed.len().min(quota).max(1)
    }

    /// Whether the quota is less than the allowed CPUs.
    pub fn quota_binds(&self) -> bool {
        let all = u64::try_from(self.allowed.len()).unwrap_or(u64::MAX).saturating_mul(1000);
        self.quota_thousandths.is_some_and(|quota| quota < all)
    }
}

/// The directories of the process's cgroups, innermost first.
struct Groups {
    unified: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
    cpuset: Vec<PathBuf>,
}

impl Groups {
    fn read(roots: &Roots) -> Self {
        let table = fs::read_to_string(roots.proc.join("self/cgroup")).unwrap_or_default();
        let mut groups = Self { unified: Vec::new(), cpu: Vec::new(), cpuset: Vec::new() };
        for line in table.lines() {
            // hierarchy-id:controllers:path (cgroups(7)); version 2 has id 0 and no controllers.
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if controllers.is_empty() {
                let mount = if roots.cgroup.join("unified").is_dir() {
                    roots.cgroup.join("unified")
                } else {
                    roots.cgroup.clone()
                };
                groups.unified = ancestors(&mount, path);
            }
            for controller in controllers.split(',') {
                let mounts = [controllers, controller];
                let mount = mounts.iter().map(|name| roots.cgroup.join(name)).find(|p| p.is_dir());
                let Some(mount) = mount else { continue };
                match controller {
                    "cpu" => groups.cpu = ancestors(&mount, path),
                    "cpuset" => groups.cpuset = ancestors(&mount, path),
                    _ => {}
                }
            }
        }
        groups
    }

    /// The innermost cpuset that is set.
    fn cpuset(&self) -> Option<CpuSet> {
        let unified = self.unified.iter().map(|group| group.join("cpuset.cpus.effective"));
        let legacy = self.cpuset.iter().flat_map(|group| {
            ["cpuset.effective_cpus", "cpuset.cpus"].map(|name| group.join(name))
        });
        unified
            .chain(legacy)
            .filter_map(|file| fs::read_to_string(file).ok())
            .map(|text| CpuSet::from_kernel(&text))
            .find(|set| !set.is_empty())
    }

    /// The smallest quota up to the root, in thousandths of a CPU.
    fn quota(&self) -> Option<u64> {
        let unified = self.unified.iter().filter_map(|group| {
            let text = fs::read_to_string(group.join("cpu.max")).ok()?;
            let mut words = text.split_whitespace();
            thousandths(words.next()?, words.next()?)
        });
        let legacy = self.cpu.iter().filter_map(|group| {
            let quota = fs::read_to_string(group.join("cpu.cfs_quota_us")).ok()?;
            let period = fs::read_to_string(group.join("cpu.cfs_period_us")).ok()?;
            thousandths(quota.trim(), period.trim())
        });
        unified.chain(legacy).min()
    }
}

/// Parses a quota; `max` and `-1` mean none.
fn thousandths(quota: &str, period: &str) -> Option<u64> {
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
    (quota > 0).then_some(())?;
    quota.checked_mul(1000)?.checked_div(period)
}

/// The group's directory and its ancestors up to the mount. In a container the path is often the
/// host's and does not exist: the mount itself is then the container's group.
fn ancestors(mount: &Path, path: &str) -> Vec<PathBuf> {
    let relative = Path::new(path.trim_start_matches('/'));
    let plain =
        relative.components().all(|component| matches!(component, std::path::Component::Normal(_)));
    let relative = if plain { relative } else { Path::new("") };
    relative.ancestors().map(|part| mount.join(part)).filter(|dir| dir.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::tests::Tree;

    fn cpus(tree: &Tree, affinity: &[usize]) -> Cpus {
        Cpus::from_roots(&tree.roots(), affinity.iter().copied().collect())
    }

    #[test]
    fn version_2_quota_of_any_ancestor_counts_and_rounds_up() {
        let tree = Tree::new(
            "v2",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("cg/a/cpu.max", "150000 100000\n"),
                ("cg/a/b/cpu.max", "max 100000\n"),
                ("cg/a/b/cpuset.cpus.effective", "0-2,7\n"),
            ],
        );
        let cpus = cpus(&tree, &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(cpus.allowed.to_string(), "0-2,7");
        assert_eq!(cpus.quota_thousandths, Some(1500));
        assert_eq!(cpus.count(), 2);
    }

    #[test]
    fn version_1_with_joint_controllers() {
        let tree = Tree::new(
            "v1",
            &[
                ("proc/self/cgroup", "4:cpu,cpuacct:/x\n3:cpuset:/\n"),
                ("cg/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n"),
                ("cg/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
                ("cg/cpuset/cpuset.cpus", "0-3\n"),
            ],
        );
        assert_eq!(cpus(&tree, &[1, 2]).count(), 1);
        assert_eq!(cpus(&tree, &[1, 2, 9]).allowed.to_string(), "1-2");
    }

    #[test]
    fn without_limits_the_mask_counts() {
        let tree = Tree::new(
            "free",
            &[
                ("proc/self/cgroup", "1:cpu:/\n0::/gone/../x\n"),
                ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
                ("cg/cpu/cpu.cfs_period_us", "100000\n"),
            ],
        );
        assert_eq!(cpus(&tree, &[0, 1, 2, 3]).count(), 4);
        assert_eq!(cpus(&tree, &[]).count(), 1);
        assert_eq!(cpus(&Tree::new("none", &[]), &[5]).allowed.to_string(), "5");
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(Cpus::detect().count() >= 1);
    }
}
