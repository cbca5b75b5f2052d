//! The CPUs that loops and other threads run on, observed from outside: masks in /proc, and
//! decisions in the error log.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::Client;
use crate::site::Site;

/// The log level that shows decisions.
const TOLD: &str = "LogLevel warn mpm:debug";

/// The CPUs that the tests may use.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap()).collect()
}

/// Two CPUs, one for each of two loops, or `None` if there is only one.
fn two() -> Option<[usize; 2]> {
    match allowed()[..] {
        [one, other, ..] => Some([one, other]),
        _ => {
            println!("one CPU: nothing to be seen (1 skipped)");
            None
        }
    }
}

/// A line of a process's or thread's `status`.
fn status(of: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{of}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn mask(of: &str) -> String {
    status(of, "Cpus_allowed_list")
}

/// The threads of the serving processes with this prefix of their names, as `PID/task/TID`.
fn threads(site: &Site, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for child in site.children() {
        for entry in fs::read_dir(format!("/proc/{child}/task")).into_iter().flatten().flatten() {
            let thread = format!("{child}/task/{}", entry.file_name().to_string_lossy());
            if status(&thread, "Name").starts_with(name) {
                found.push(thread);
            }
        }
    }
    found
}

/// The masks of all threads of serving processes by name, except those in `without`.
fn all_masks(site: &Site, without: &[String]) -> Vec<(String, String)> {
    let all = threads(site, "").into_iter().filter(|thread| !without.contains(thread));
    all.map(|thread| (status(&thread, "Name"), mask(&thread))).collect()
}

/// Binds a thread like `taskset -p`.
fn bind(thread: i32, cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu).unwrap());
    sched_setaffinity(Pid::from_raw(thread), &set).unwrap();
}

/// The masks of all loops, sorted.
fn loops(site: &Site) -> Vec<String> {
    let mut masks: Vec<String> = threads(site, "loop-").iter().map(|of| mask(of)).collect();
    masks.sort();
    masks
}

/// Waits until the loops have exactly these masks.
fn wait_for_masks(site: &Site, masks: &[&str]) {
    site.wait_until("loops with their masks", || loops(site) == masks);
}

#[test]
fn loops_are_bound_and_nobody_else() {
    let Some([one, other]) = two() else { return };
    let whole = mask("self");
    let mut site = Site::new("bound");
    // If adaptation is on, a loop may migrate on a busy machine.
    site.configure(&format!(
        "CPUAffinity {one},{other}\nCPUAffinityAdapt Off\nCustomLog \"|/bin/cat\" common\n{TOLD}"
    ));
    site.start();
    wait_for_masks(&site, &[&one.to_string(), &other.to_string()]);
    let supervisor = site.supervisor().to_string();
    assert_eq!(mask(&supervisor), whole);
    for thread in threads(&site, "orders") {
        assert_eq!(mask(&thread), whole);
    }
    // The reader of the piped log is a child of the supervisor.
    let mut reader = None;
    site.wait_until("the reader", || {
        let children = site.children();
        reader = children.into_iter().find(|pid| status(&pid.to_string(), "Name") == "cat");
        reader.is_some()
    });
    assert_eq!(mask(&reader.unwrap().to_string()), whole);
    site.wait_for_line(&format!("is bound to CPU {other}"));

    // A restart without it needs no stop.
    site.configure("CPUAffinity Off");
    site.restart_gracefully();
    site.wait_until("loops are free", || {
        loops(&site) == [whole.clone(), whole.clone()]
            || loops(&site).iter().all(|mask| *mask == whole) && !loops(&site).is_empty()
    });
}

#[test]
fn a_mask_from_outside_is_kept_to() {
    let Some([_, other]) = two() else { return };
    let mut site = Site::new("outside");
    site.configure(TOLD);
    // A separate thread, since its mask is inherited by what it starts.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut set = CpuSet::new();
            set.set(other).unwrap();
            sched_setaffinity(Pid::from_raw(0), &set).unwrap();
            let said = site.run(&["-t", "-D", "DUMP_CPU"]);
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            let line = format!("Allowed: {other} (limited by an affinity mask or cpuset)");
            assert!(said.contains(&line), "{said}");
            assert!(said.contains("only one CPU is allowed"), "{said}");
            site.start();
        });
    });
    wait_for_masks(&site, &[&other.to_string()]);
}

#[test]
fn every_thread_follows_a_mask_that_changes_but_who_was_bound_by_others() {
    let Some([one, other]) = two() else { return };
    let (whole, all) = (mask("self"), allowed());
    let mut site = Site::new("follows");
    site.configure(&format!("StartServers 2\nCPUAffinity {one},{other}\n{TOLD}"));
    site.start();
    wait_for_masks(&site, &[&one.to_string(), &other.to_string()]);
    let at_home = |name: &str, mask: &str| match name.starts_with("loop-") {
        true => mask == one.to_string() || mask == other.to_string(),
        false => mask == whole,
    };
    let are_home = |without: &[String]| {
        all_masks(&site, without).iter().all(|(name, mask)| at_home(name, mask))
    };
    site.wait_until("threads at home", || are_home(&[]));
    // Another program binds a loop and the main thread of its process.
    let is_at_other = |thread: &String| mask(thread) == other.to_string();
    let serving = threads(&site, "loop-").into_iter().find(is_at_other).unwrap();
    let process = serving.split('/').next().unwrap();
    let bound = [serving.clone(), format!("{process}/task/{process}")];
    for thread in &bound {
        bind(thread.rsplit('/').next().unwrap().parse().unwrap(), &[one]);
    }
    let are_left = || bound.iter().all(|thread| mask(thread) == one.to_string());

    bind(site.supervisor().as_raw(), &[other]);
    site.wait_until("all on one CPU", || {
        let masks = all_masks(&site, &bound);
        // A loop, its process's two other threads, and one of the process that was bound.
        masks.len() >= 4 && masks.iter().all(|(_, mask)| *mask == other.to_string())
    });
    assert!(are_left(), "{:?}", all_masks(&site, &[]));
    site.wait_for_line("was bound to CPUs");
    assert_eq!(site.get("/index.html").status, 200);

    bind(site.supervisor().as_raw(), &all);
    site.wait_until("all at home again", || are_home(&bound));
    assert!(are_left(), "{:?}", all_masks(&site, &[]));
}

#[test]
fn every_thread_of_a_bound_process_follows() {
    let Some([one, other]) = two() else { return };
    let mut site = Site::new("follows-worker");
    site.configure(&format!(
        "LoadModule mpm_worker_module modules/mod_mpm_worker.so\nStartServers 2\n\
         ThreadsPerChild 2\nMinSpareThreads 1\nCPUAffinity {one},{other}"
    ));
    site.start();
    let supervisor = site.supervisor().as_raw();
    let masks = || {
        let all: BTreeSet<String> = all_masks(&site, &[]).into_iter().map(|(_, m)| m).collect();
        all.into_iter().collect::<Vec<_>>()
    };
    let both = [one.to_string(), other.to_string()];
    site.wait_until("two bound processes", || masks() == both && threads(&site, "").len() >= 8);
    bind(supervisor, &[other]);
    site.wait_until("all on one CPU", || masks() == both[1..]);
    bind(supervisor, &allowed());
    site.wait_until("two bound processes again", || masks() == both);
}

#[test]
fn prefork_and_worker_processes_are_bound_slot_by_slot() {
    let Some([one, other]) = two() else { return };
    for (shape, threads) in [("prefork", 1), ("worker", 3)] {
        let mut site = Site::new(&format!("slots-{shape}"));
        let load = format!("LoadModule mpm_{shape}_module modules/mod_mpm_{shape}.so");
        let modules = "LoadModule authz_core_module modules/mod_authz_core.so";
        site.configure(&format!(
            "{load}\n{modules}\nCPUAffinity {one},{other}\nCPUAffinityAdapt Off\nStartServers 2\n\
             <IfModule worker.c>\nThreadsPerChild {threads}\nMinSpareThreads 1\n</IfModule>\n\
             <IfModule prefork.c>\nMinSpareServers 1\n</IfModule>"
        ));
        site.start();
        let of_process = |pid: &Pid| {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
            let serving = tasks.map(|task| format!("{pid}/task/{}", task.file_name().display()));
            let mut masks: Vec<String> = serving
                .filter(|task| status(task, "Name").starts_with("thread-"))
                .map(|task| mask(&task))
                .collect();
            masks.dedup();
            masks.join(" ")
        };
        let masks = || {
            let mut masks: Vec<String> = site.children().iter().map(of_process).collect();
            masks.sort();
            masks
        };
        site.wait_until("two bound processes", || masks() == [one.to_string(), other.to_string()]);
        Client::connect(site.port).unwrap().get("/index.html").unwrap();
    }
}

#[test]
fn bound_loops_do_not_migrate() {
    let Some([one, other]) = two() else { return };
    let mut site = Site::new("migrate");
    site.configure(&format!("CPUAffinity {one},{other}\nCPUAffinityAdapt Off"));
    site.start();
    wait_for_masks(&site, &[&one.to_string(), &other.to_string()]);
    let migrations = || -> Option<u64> {
        let files = threads(&site, "loop-").into_iter().map(|of| {
            let text = fs::read_to_string(format!("/proc/{of}/sched")).ok()?;
            let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
            line.rsplit(':').next()?.trim().parse::<u64>().ok()
        });
        files.sum()
    };
    let Some(before) = migrations() else {
        println!("the kernel counts no migrations (1 skipped)");
        return;
    };
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(site.port).unwrap()).collect();
    for _ in 0..250 {
        for client in &mut clients {
            assert_eq!(client.get("/index.html").unwrap().status, 200);
        }
    }
    assert_eq!(migrations().unwrap() - before, 0, "in 2000 requests");
}

/// One of two children is stopped, so that it does not turn: the other gets all connections.
fn gets_nothing_new(site: &Site, stopped: Pid) {
    site.wait_for_line("is stalled; new connections are routed elsewhere");
    for _ in 0..20 {
        assert_eq!(site.get("/index.html").status, 200);
    }
    // It continues, unless it has been replaced.
    let _ = kill(stopped, Signal::SIGCONT);
    site.wait_for_line("turns again and gets new connections");
}

#[test]
fn a_loop_that_stands_still_gets_nothing_new() {
    let Some([one, other]) = two() else { return };
    let mut site = Site::new("still");
    site.configure(&format!("CPUAffinity {one},{other}\nStartServers 2\n{TOLD}"));
    site.start();
    let stopped = site.children()[0];
    crate::stall::stop(&site, stopped);
    gets_nothing_new(&site, stopped);
}

#[test]
fn a_loop_that_never_turned_gets_nothing_new() {
    let Some([one, other]) = two() else { return };
    let mut site = Site::new("newborn");
    site.configure(&format!("CPUAffinity {one},{other}\nStartServers 2\n{TOLD}"));
    site.start();
    let first = site.children();
    kill(first[0], Signal::SIGKILL).unwrap();
    // Its successor is stopped as soon as it exists, most likely before its first turn.
    let mut newborn = None;
    site.wait_until("a successor", || {
        newborn = site.children().into_iter().find(|child| !first.contains(child));
        newborn.is_some_and(|child| kill(child, Signal::SIGSTOP).is_ok())
    });
    gets_nothing_new(&site, newborn.unwrap());
}

/// A cgroup of version 1 or 2 with the CPU controller. Removed when dropped.
struct Group {
    path: PathBuf,
    is_unified: bool,
}

impl Group {
    /// Returns `None` if this process may not create one.
    fn new() -> Option<Group> {
        let name = format!("tamarack-test-{}", std::process::id());
        let root = PathBuf::from("/sys/fs/cgroup");
        let legacy = root.join("cpu").join(&name);
        if fs::create_dir(&legacy).is_ok() {
            return Some(Group { path: legacy, is_unified: false });
        }
        let path = root.join(name);
        fs::create_dir(&path).ok()?;
        let group = Group { path, is_unified: true };
        group.path.join("cpu.max").exists().then_some(group)
    }

    /// Periods in which its processes ran, and those in which they were throttled.
    fn periods(&self) -> [u64; 2] {
        let text = fs::read_to_string(self.path.join("cpu.stat")).unwrap();
        ["nr_periods", "nr_throttled"].map(|name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse().unwrap()
        })
    }

    /// Sets a quota, in ms per 100 ms.
    fn limit(&self, quota_ms: Option<u32>) {
        let us = quota_ms.map(|ms| (ms * 1000).to_string());
        let (file, text) = match self.is_unified {
            true => ("cpu.max", us.unwrap_or("max".to_owned())),
            false => ("cpu.cfs_quota_us", us.unwrap_or("-1".to_owned())),
        };
        fs::write(self.path.join(file), text).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended, or are ending.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Serves for a while without being throttled: bound to one of two CPUs it would have half of the
/// quota.
fn assert_not_throttled(site: &Site, group: &Group) {
    const PERIODS: u64 = 10;
    let [before, throttled_before] = group.periods();
    let mut client = site.client();
    site.wait_until("periods", || {
        assert_eq!(client.get("/index.html").unwrap().status, 200);
        group.periods()[0] >= before + PERIODS
    });
    let [periods, throttled] = group.periods();
    // Starting takes more time than a loop has; this client does not.
    let (periods, throttled) = (periods - before, throttled - throttled_before);
    assert!(throttled <= 1 + periods / 100, "{throttled} of {periods}");
}

#[test]
fn under_a_quota_nobody_is_bound_and_its_end_is_noticed() {
    let Some([one, other]) = two() else { return };
    let Some(group) = Group::new() else {
        println!("no cgroup can be made here (1 skipped)");
        return;
    };
    group.limit(Some(100));
    let whole = mask("self");
    let mut site = Site::new("quota");
    site.configure(&format!("StartServers 2\n{TOLD}"));
    let mut within = site.as_program("/bin/sh");
    let script = "echo $$ >\"$0\"/cgroup.procs && exec \"$@\"";
    let arguments: Vec<_> = within.get_args().map(ToOwned::to_owned).collect();
    within = Command::new("/bin/sh");
    within.arg("-c").arg(script).arg(&group.path).arg(crate::site::PROGRAM).args(arguments);
    site.start_by(within);
    // One CPU's worth of time means one loop, in any number of processes, on any CPU.
    let children = site.children().len();
    site.wait_until("loops", || children > 0 && children == loops(&site).len());
    assert!(loops(&site).iter().all(|mask| *mask == whole), "{:?}", loops(&site));
    assert_not_throttled(&site, &group);
    site.configure(&format!("CPUAffinity {one},{other}\n{TOLD}"));
    site.restart_gracefully();
    let both = if other == one + 1 { format!("{one}-{other}") } else { format!("{one},{other}") };
    site.wait_until("all of the list", || loops(&site) == [both.clone()]);
    group.limit(None);
    site.wait_for_line("with no quota are now allowed");
    site.wait_until("the loop has a CPU", || loops(&site) == [one.to_string()]);
    group.limit(Some(100));
    site.wait_until("the loop is free", || loops(&site) == [both.clone()]);
    drop(site);
}

#[test]
fn a_list_of_no_cpu_that_is_there_is_told() {
    let mut site = Site::new("nowhere");
    site.configure("CPUAffinity 1000-1001");
    site.start();
    site.wait_for_line("AH20112: CPUAffinity 1000-1001: none of these CPUs is allowed");
    assert_eq!(Client::connect(site.port).unwrap().get("/index.html").unwrap().status, 200);
}
