//! Tests that need idle CPUs. Cargo runs them before or after the other tests, not at the same
//! time.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../serving/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../../../mpm/tests/support/free_port.rs"]
mod free_port;
#[path = "../serving/site.rs"]
#[allow(dead_code)]
mod site;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use client::{Client, PATIENCE};
use site::Site;

/// Busy threads on the CPU of one loop.
const HOGS: usize = 3;
/// Clients while a CPU is busy, and their pause between requests: the other CPU has time left.
const CLIENTS: usize = 16;
const PAUSE: Duration = Duration::from_millis(8);
/// Clients while it is quiet. They make a loop use a few hundredths of a CPU, so that an idle CPU
/// is one that a loop returns to, wherever the loop runs meanwhile.
const CLIENTS_FEW: usize = 2;
/// The idle share of a CPU that other programs have left: they and the loop use the rest, and a
/// loop returns if other programs use less than 0.08.
const QUIET: f64 = 0.93;
/// The interval of checks.
const LOOK: Duration = Duration::from_millis(250);
/// Consecutive checks with a reason to adapt after which the test fails.
const ENOUGH: u32 = 40;

/// Programs that keep a CPU busy until they are dropped.
struct Hogs(Vec<Child>);

impl Hogs {
    fn new(cpu: usize, count: usize) -> Hogs {
        let spin = || {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).spawn()
        };
        Hogs((0..count).filter_map(|_| spin().ok()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// The affinity masks of all loops' threads.
fn masks(site: &Site) -> Vec<String> {
    let mut masks = Vec::new();
    for child in site.children() {
        for entry in fs::read_dir(format!("/proc/{child}/task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim().to_owned()
            };
            if field("Name:").starts_with("loop") {
                masks.push(field("Cpus_allowed_list:"));
            }
        }
    }
    masks
}

/// The idle share of a CPU since the last call.
struct Idle {
    cpu: String,
    last: (u64, u64),
}

impl Idle {
    fn of(cpu: usize) -> Idle {
        Idle { cpu: format!("cpu{cpu}"), last: (0, 0) }
    }

    fn share(&mut self) -> f64 {
        let text = fs::read_to_string("/proc/stat").unwrap();
        let mut lines = text.lines().map(str::split_whitespace);
        let line = lines.find_map(|mut words| (words.next()? == self.cpu).then_some(words));
        let ticks: Vec<u64> = line.unwrap().map(|word| word.parse().unwrap()).collect();
        let now = (ticks[3], ticks.iter().take(8).sum::<u64>());
        let (idle, all) = (now.0 - self.last.0, now.1 - self.last.1);
        self.last = now;
        idle as f64 / all.max(1) as f64
    }
}

/// The outcome of serving for a while.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    It,
    /// Nothing happened, although there was reason for long enough.
    Nothing,
    /// Other programs use the machine, so there was no reason.
    NoReason,
}

/// Serves `clients` slow clients, which run on CPU `cpu` (to the server, they are other programs),
/// until `is_so`, or until there was reason for [`ENOUGH`] checks.
fn serve_until(
    site: &Site,
    (clients, cpu): (usize, usize),
    is_so: impl Fn() -> bool,
    mut has_reason: impl FnMut() -> bool,
) -> Came {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut mask = CpuSet::new();
                mask.set(cpu).unwrap();
                sched_setaffinity(Pid::from_raw(0), &mask).unwrap();
                let mut client = Client::connect(site.port).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/index.html").unwrap().status, 200);
                    std::thread::sleep(PAUSE);
                }
            });
        }
        let (end, mut reasons) = (Instant::now() + 2 * PATIENCE, 0);
        let came = loop {
            if is_so() {
                break Came::It;
            }
            if reasons >= ENOUGH {
                break Came::Nothing;
            }
            if Instant::now() > end {
                break Came::NoReason;
            }
            std::thread::sleep(LOOK);
            reasons = if has_reason() { reasons + 1 } else { 0 };
        };
        is_over.store(true, Ordering::Relaxed);
        came
    })
}

#[test]
fn a_loop_leaves_a_cpu_that_others_keep_busy_and_returns() {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let allowed: Vec<usize> =
        (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap()).collect();
    let [one, other, ..] = allowed[..] else {
        println!("one CPU: nothing to be seen (1 skipped)");
        return;
    };
    let mut site = Site::new("leave");
    site.configure(&format!("StartServers 2\nCPUAffinity {one},{other}\nLogLevel warn mpm:debug"));
    site.start();
    let bound = [one.to_string(), other.to_string()];
    site.wait_until("both are bound", || masks(&site) == bound);
    let hogs = Hogs::new(other, HOGS);
    assert_eq!(hogs.0.len(), HOGS, "taskset is there");
    let mut idle = Idle::of(one);
    let has_left = || masks(&site).iter().any(|mask| !bound.contains(mask));
    match serve_until(&site, (CLIENTS, one), has_left, || idle.share() >= 0.3) {
        Came::It => site.wait_for_line("of its runnable time, other programs use"),
        Came::NoReason => return println!("the machine is busy: nothing to be seen (1 skipped)"),
        Came::Nothing => panic!("{:?}\n{}", masks(&site), site.error_log()),
    }
    drop(hogs);
    let mut idle = Idle::of(other);
    let is_bound = || masks(&site) == bound;
    match serve_until(&site, (CLIENTS_FEW, one), is_bound, || idle.share() >= QUIET) {
        Came::It => site.wait_for_line("is bound to CPU"),
        Came::NoReason => println!("the machine is busy: nothing to be seen (1 skipped)"),
        Came::Nothing => panic!("{:?}\n{}", masks(&site), site.error_log()),
    }
}
