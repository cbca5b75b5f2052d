//! Signals without an effect end system calls of a process early.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::PATIENCE;
use crate::site::Site;

const FILE_BYTES: usize = 24 * 1024 * 1024;
/// More than it takes until an answer is kept and its head is known.
const TIMES: usize = 12;

fn site(name: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    let modules = ["mpm_prefork", "mime", "authz_core"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    site.configure(&format!("{modules}StartServers 1\nMaxRequestWorkers 1\n{more}"));
    site.start();
    site
}

/// Sends a serving thread a signal repeatedly while `run` runs.
fn under_signals<R>(site: &Site, pause: Duration, run: impl FnOnce() -> R) -> R {
    let threads: Vec<Pid> = site.children().into_iter().flat_map(serving_threads).collect();
    assert_eq!(threads.len(), 1);
    let is_over = AtomicBool::new(false);
    scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + PATIENCE;
            while !is_over.load(Ordering::Relaxed) && Instant::now() < end {
                for thread in &threads {
                    let _ = kill(*thread, Signal::SIGUSR2);
                }
                sleep(pause);
            }
        });
        let outcome = run();
        is_over.store(true, Ordering::Relaxed);
        outcome
    })
}

fn serving_threads(process: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let serving = tasks.filter(|task| {
        fs::read_to_string(task.path().join("comm")).unwrap_or_default().starts_with("thread-")
    });
    serving.filter_map(|task| task.file_name().to_str()?.parse().ok()).map(Pid::from_raw).collect()
}

#[test]
fn a_file_on_its_way_to_a_slow_client_arrives_as_a_whole() {
    let site = site("interrupted-file", "");
    fs::write(site.path("htdocs/large.bin"), vec![b'x'; FILE_BYTES]).unwrap();
    let mut client = site.client();
    assert_eq!(client.get("/index.html").unwrap().status, 200);
    client.ask("/large.bin").unwrap();
    let answer = under_signals(&site, Duration::from_millis(5), || {
        for read in 1..40 {
            client.wait_for_bytes(read * 64 * 1024).unwrap();
            sleep(Duration::from_millis(20));
        }
        client.answer().unwrap()
    });
    assert_eq!((answer.status, answer.body.len()), (200, FILE_BYTES));
}

#[test]
fn an_idle_connection_is_closed_in_time() {
    let site = site("interrupted-idle", "KeepAliveTimeout 2\n");
    let mut client = site.client();
    for _ in 0..TIMES {
        assert_eq!(client.get("/index.html").unwrap().status, 200);
    }
    let closed = under_signals(&site, Duration::from_millis(50), || {
        let asked = Instant::now();
        assert!(client.is_closed());
        asked.elapsed()
    });
    assert!(closed < PATIENCE / 2, "{closed:?}");
}
