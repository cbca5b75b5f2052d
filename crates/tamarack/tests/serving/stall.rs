//! Stalled processes in every shape: one that is stopped, one in an endless loop, and those that
//! only appear stalled.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::Client;
#[cfg(target_arch = "x86_64")]
use crate::load::wait_for_their_end;
use crate::site::Site;
#[cfg(target_arch = "x86_64")]
use crate::spin::spin_on_request;

const LINE: &str = "AH20020";
/// The limit for threads that only wait, instead of two seconds, so that a busy machine alone does
/// not exceed it.
const WAITS_STALL: Duration = Duration::from_secs(4);

/// Stops a process, and waits until none of its threads runs: on a busy machine it takes a moment
/// until a thread sees the signal, and a loop accepts connections meanwhile.
pub fn stop(site: &Site, pid: Pid) {
    kill(pid, Signal::SIGSTOP).unwrap();
    site.wait_until("every thread is stopped", || {
        // The watchdog may have been quicker: a dead process is stopped, too.
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 'Z', 'X']))
        })
    });
}

/// Starts a server of this shape whose processes may stall for two seconds. It has room for
/// `clients` in prefork and worker, and one process in every other shape.
fn start_with(name: &str, mpm: &str, clients: usize, more: &str) -> (Site, Pid) {
    let mut site = Site::new(&format!("{name}-{mpm}"));
    let limits = match mpm {
        "prefork" => format!("StartServers {clients}\nServerLimit {clients}\n"),
        "worker" => format!("StartServers 1\nServerLimit 1\nThreadsPerChild {clients}\n"),
        "event" => "StartServers 1\nServerLimit 1\n".to_owned(),
        _ => String::new(),
    };
    let limits = match mpm {
        "prefork" | "worker" => format!("{limits}MaxRequestWorkers {clients}\n"),
        _ => limits,
    };
    let modules = ["dir", "setenvif", "authz_core", "authn_core"];
    let modules = modules.iter().chain(&["authn_file", "authz_user", "auth_basic"]);
    let modules: String = modules
        .map(|module| format!("LoadModule {module}_module modules/mod_{module}.so\n"))
        .collect();
    site.configure(&format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n{modules}{limits}\
         LoopStallTimeout 2\n{more}"
    ));
    site.start();
    let first = site.children()[0];
    (site, first)
}

/// Likewise with a single process, which only a successor can replace.
fn start(name: &str, mpm: &str, more: &str) -> (Site, Pid) {
    let clients = if mpm == "prefork" { 1 } else { 2 };
    let (site, child) = start_with(name, mpm, clients, more);
    assert_eq!(site.children(), [child]);
    (site, child)
}

/// The process stops; its replacement serves the clients that came meanwhile.
fn a_stopped_child_is_replaced(mpm: &str) {
    let (mut site, still) = start("still", mpm, "");
    let supervisor = site.supervisor();
    stop(&site, still);
    let mut clients: Vec<Client> = (0..8).map(|_| site.client()).collect();
    clients.iter_mut().for_each(|client| client.ask("/").unwrap());
    for mut client in clients {
        let answer = client.answer();
        assert!(answer.is_ok_and(|answer| answer.status == 200), "{}", site.error_log());
    }
    site.wait_for_line(LINE);
    let said = format!("{LINE}: child pid {still}: ");
    assert_eq!(site.count_lines(&said), 1, "{}", site.error_log());
    assert!(site.error_log().contains("(it is stopped); replacing it"), "{}", site.error_log());
    site.wait_until("its end", || !site.children().contains(&still));
    assert_eq!(site.supervisor(), supervisor);
    site.assert_serves();
}

/// A request that never ends: its process is replaced.
#[cfg(target_arch = "x86_64")]
fn a_spinning_child_is_replaced(mpm: &str) {
    let (mut site, spins) = start("spins", mpm, "");
    let mut spinning = site.client();
    spin_on_request(&site, spins, || spinning.ask("/").unwrap());
    site.wait_for_line(LINE);
    let said = format!("{LINE}: child pid {spins}: ");
    assert_eq!(site.count_lines(&said), 1, "{}", site.error_log());
    assert!(site.error_log().contains(" s of CPU meanwhile); replacing it"));
    // Another loop of the process, which had just accepted a connection, is ended as well.
    site.wait_until("a response", || {
        site.client().get("/").is_ok_and(|response| response.status == 200)
    });
    wait_for_their_end(&site, &[spins]);
    assert!(spinning.answer().is_err());
    site.assert_serves();
}

#[test]
fn a_stopped_process_of_event_is_replaced() {
    a_stopped_child_is_replaced("event");
}

#[test]
fn a_stopped_process_of_loop_is_replaced() {
    a_stopped_child_is_replaced("loop");
}

#[test]
fn a_stopped_process_of_worker_is_replaced() {
    a_stopped_child_is_replaced("worker");
}

#[test]
fn a_stopped_process_of_prefork_is_replaced() {
    a_stopped_child_is_replaced("prefork");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_spinning_loop_of_event_is_replaced() {
    a_spinning_child_is_replaced("event");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_spinning_loop_of_loop_is_replaced() {
    a_spinning_child_is_replaced("loop");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_spinning_thread_of_worker_is_replaced() {
    a_spinning_child_is_replaced("worker");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_spinning_process_of_prefork_is_replaced() {
    a_spinning_child_is_replaced("prefork");
}

/// The cost of a password that is checked at once.
const QUICK_COST: u32 = 8;

/// A line with a bcrypt password that takes as long as its cost, and is always wrong.
fn slow_password(cost: u32) -> String {
    format!("slow:$2y${cost:02}${}{}\n", "abcdefghijklmnopqrstuu", "a".repeat(31))
}

/// Threads with one connection each: one that reads its request byte by byte, one whose client
/// reads slowly, one that is idle, one whose password takes seconds to check.
fn who_waits_or_does_a_long_job_does_not_hang(mpm: &str) {
    let secret = "<Location /secret>\nAuthType Basic\nAuthName x\nAuthUserFile passwords\n\
                  Require valid-user\n</Location>\nSendBufferSize 4096\n";
    let stall = format!("LoopStallTimeout {}\n", WAITS_STALL.as_secs());
    let (mut site, child) = start_with("waits", mpm, 4, &(stall + secret));
    site.write("passwords", &slow_password(QUICK_COST));
    site.write("htdocs/large", &"x".repeat(16 << 20));
    let credentials = "Authorization: Basic c2xvdzpzZWNyZXQ=";
    let request = format!("GET /secret HTTP/1.1\r\nHost: localhost\r\n{credentials}\r\n\r\n");
    let began = Instant::now();
    let mut asker = site.client();
    asker.send(request.as_bytes()).unwrap();
    assert_eq!(asker.answer().unwrap().status, 401);
    // Each step of the cost doubles the time.
    let times = (3 * WAITS_STALL).as_secs_f64() / began.elapsed().as_secs_f64();
    site.write("passwords", &slow_password(QUICK_COST + times.log2().ceil().max(0.0) as u32));
    let [mut idle, mut sender, mut reader] = [0; 3].map(|_| site.client());
    assert_eq!(idle.get("/").unwrap().status, 200);
    reader.ask("/large").unwrap();
    reader.wait_for_bytes(1).unwrap();
    asker.send(request.as_bytes()).unwrap();
    sender.send(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let end = Instant::now() + 2 * WAITS_STALL;
    let mut read = 1;
    while Instant::now() < end {
        sender.send(b"x").unwrap();
        read += 16 << 10;
        reader.wait_for_bytes(read).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(idle.get("/").unwrap().status, 200);
    sender.send(b"\r\n\r\n").unwrap();
    assert_eq!(sender.answer().unwrap().status, 200);
    assert_eq!(asker.answer().unwrap().status, 401);
    assert!(site.children().contains(&child), "{}", site.error_log());
    assert_eq!(site.count_lines(LINE), 0, "{}", site.error_log());
    drop((idle, sender, reader, asker));
    site.assert_serves();
}

#[test]
fn a_thread_of_worker_may_wait() {
    who_waits_or_does_a_long_job_does_not_hang("worker");
}

#[test]
fn a_process_of_prefork_may_wait() {
    who_waits_or_does_a_long_job_does_not_hang("prefork");
}

#[test]
fn a_server_that_was_suspended_goes_on() {
    let mut site = Site::new("suspended");
    site.configure("LoopStallTimeout 2\n");
    site.start();
    let (supervisor, children) = (site.supervisor(), site.children());
    // The supervisor stops first and continues last: it never sees the others stopped.
    let all = || children.iter().copied().chain([supervisor]);
    all().rev().for_each(|pid| kill(pid, Signal::SIGSTOP).unwrap());
    std::thread::sleep(Duration::from_secs(4));
    all().for_each(|pid| kill(pid, Signal::SIGCONT).unwrap());
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(site.children(), children);
    assert_eq!(site.count_lines(LINE), 0, "{}", site.error_log());
    site.assert_serves();
}
