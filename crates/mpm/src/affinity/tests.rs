//! Trees of files in the kernel's formats, for the tests of this folder.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::cpus::Roots;

pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("mpm-cpus-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let tree = Self { root };
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots {
            proc: self.root.join("proc"),
            cgroup: self.root.join("cg"),
            cpu: self.root.join("cpu"),
            net: self.root.join("net"),
        }
    }

    /// Creates CPUs below `count`, with core, cache, node and capacity as given by `of`.
    pub(crate) fn machine(&self, count: usize, of: impl Fn(usize) -> (usize, usize, usize, usize)) {
        let alike = |same: &dyn Fn(usize) -> bool| {
            let mut list = String::new();
            for cpu in (0..count).filter(|cpu| same(*cpu)) {
                let comma = if list.is_empty() { "" } else { "," };
                write!(list, "{comma}{cpu}").unwrap();
            }
            list
        };
        self.write("cpu/online", &alike(&|_| true));
        for cpu in 0..count {
            let (core, cache, node, capacity) = of(cpu);
            let own = format!("cpu/cpu{cpu}");
            let cores = alike(&|other| of(other).0 == core);
            self.write(&format!("{own}/topology/core_cpus_list"), &cores);
            for (index, kind, level, shared) in [
                (0, "Data", 1, cores.clone()),
                (1, "Instruction", 1, cores),
                (2, "Unified", 3, alike(&|other| of(other).1 == cache)),
            ] {
                let folder = format!("{own}/cache/index{index}");
                self.write(&format!("{folder}/type"), kind);
                self.write(&format!("{folder}/level"), &level.to_string());
                self.write(&format!("{folder}/shared_cpu_list"), &shared);
            }
            self.write(&format!("{own}/node{node}/cpulist"), "");
            self.write(&format!("{own}/cpu_capacity"), &capacity.to_string());
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
