//! What can only be seen while nobody else uses the CPUs: cargo runs this after (or before) the
//! other tests, not beside them.
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

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use client::{Client, PATIENCE};
use site::Site;

/// Busy threads on the CPU of one loop.
const HOGS: usize = 3;
/// Clients, and what each waits between two requests: the other CPU has time left over.
const CLIENTS: usize = 16;
const PAUSE: Duration = Duration::from_millis(8);

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

/// The masks of all loops' threads.
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

/// Serves clients that are in no hurry until it `is_so`; whether it came to that.
fn serve_until(site: &Site, mut is_so: impl FnMut() -> bool) -> bool {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::connect(site.port).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/index.html").unwrap().status, 200);
                    std::thread::sleep(PAUSE);
                }
            });
        }
        let end = Instant::now() + PATIENCE;
        let mut has_come = is_so();
        while !has_come && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
            has_come = is_so();
        }
        is_over.store(true, Ordering::Relaxed);
        has_come
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
    let has_left = serve_until(&site, || masks(&site).iter().any(|mask| !bound.contains(mask)));
    assert!(has_left, "{:?}\n{}", masks(&site), site.error_log());
    site.wait_for_line("of the time it could run, others use");
    drop(hogs);
    let has_returned = serve_until(&site, || masks(&site) == bound);
    assert!(has_returned, "{:?}\n{}", masks(&site), site.error_log());
    site.wait_for_line("is bound to CPU");
}
