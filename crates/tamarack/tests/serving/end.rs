//! The end of a server: with downloads in progress, and without its supervisor.

use std::fs;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};

use crate::client::{Client, PATIENCE};
use crate::load::under_load;
use crate::site::Site;

/// Bytes of a file that does not fit into the sockets' buffers.
const LARGE: usize = 48 << 20;

#[test]
fn a_signal_to_the_whole_group_is_no_death_to_report() {
    let mut site = Site::new("group");
    let mut command = site.command();
    command.process_group(0);
    site.start_by(command);
    killpg(site.supervisor(), Signal::SIGTERM).unwrap();
    assert!(site.ended_within(PATIENCE), "{}", site.error_log());
    assert_eq!(site.count_lines("AH00491"), 1, "{}", site.error_log());
    assert_eq!(site.count_lines("exit signal"), 0, "{}", site.error_log());
}

fn site_with_large_file(name: &str) -> Site {
    let site = Site::new(name);
    site.write("htdocs/large", &"x".repeat(LARGE));
    site
}

/// A client whose response has begun, and which has stopped reading.
fn downloading(site: &Site) -> Client {
    let mut client = site.client();
    client.ask("/large").unwrap();
    client.wait_for_bytes(1).unwrap();
    client
}

#[test]
fn a_graceful_stop_lets_downloads_finish_in_time() {
    let mut limits = [8, 30, 90].map(Duration::from_secs).into_iter();
    assert!(limits.any(finishes_within), "this machine is too slow for this test");
}

/// Whether a download finishes before a graceful stop times out; false if this machine is too slow.
fn finishes_within(limit: Duration) -> bool {
    let mut site = site_with_large_file("graceful-stop");
    site.configure(&format!("GracefulShutdownTimeout {}\n", limit.as_secs()));
    site.start();
    let mut deaf = downloading(&site);
    let mut slow = downloading(&site);
    let mut began = Instant::now();
    // Clients that connect meanwhile may be refused in the end.
    let seen = under_load(&site, 5, || {
        site.wait_until("load", || site.get("/").status == 200);
        began = Instant::now();
        site.signal(Signal::SIGWINCH);
        site.wait_until("the port is closed", || Client::connect(site.port).is_err());
    });
    assert!(seen.answers.into_inner() > 0);
    let is_half = slow.wait_for_bytes(LARGE / 2);
    if began.elapsed() >= limit {
        return false;
    }
    is_half.unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let finished = slow.answer();
    if began.elapsed() >= limit {
        return false;
    }
    assert_eq!(finished.unwrap().body.len(), LARGE, "it finished in time");
    drop(slow);
    assert!(site.ended_within(limit + 2 * PATIENCE), "{}", site.error_log());
    assert!(began.elapsed() >= limit, "not before its time");
    assert!(deaf.answer().is_err(), "who was not ready was cut");
    true
}

#[test]
fn a_process_alone_ends_gracefully_too() {
    for mpm in ["event", "loop"] {
        let mut site = site_with_large_file("alone");
        let modules = ["authz_core", &format!("mpm_{mpm}")]
            .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
        site.configure(&modules.concat());
        let mut command = site.command();
        command.arg("-X");
        site.start_by(command);
        let mut slow = downloading(&site);
        site.signal(Signal::SIGWINCH);
        // Clients need not wait for a server that accepts no connections.
        site.wait_until("the port is closed", || Client::connect(site.port).is_err());
        assert_eq!(slow.answer().unwrap().body.len(), LARGE, "{mpm}");
        drop(slow);
        assert!(site.ended_within(PATIENCE), "{mpm}: {}", site.error_log());
    }
}

#[test]
fn a_process_alone_has_its_time_to_end() {
    let mut site = site_with_large_file("alone-in-time");
    site.configure("GracefulShutdownTimeout 1");
    let mut command = site.command();
    command.arg("-X");
    site.start_by(command);
    let mut deaf = downloading(&site);
    site.signal(Signal::SIGWINCH);
    assert!(site.ended_within(PATIENCE), "{}", site.error_log());
    assert!(deaf.answer().is_err(), "who was not ready was cut");
}

#[test]
fn a_busy_process_takes_what_is_queued_before_it_lets_the_port_go() {
    let mut site = site_with_large_file("queued-orphan");
    let modules = ["dir", "authz_core", "mpm_prefork"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let one = "StartServers 1\nServerLimit 1\nMaxRequestWorkers 1\n";
    site.configure(&(modules.concat() + one));
    site.start();
    let mut slow = downloading(&site);
    let mut queued = site.client();
    queued.ask("/").unwrap();
    kill(site.supervisor(), Signal::SIGKILL).unwrap();
    site.wait_until("the port is free", || Client::connect(site.port).is_err());
    assert_eq!(slow.answer().unwrap().body.len(), LARGE);
    drop(slow);
    let answer = queued.answer().unwrap();
    assert_eq!((answer.status, answer.closes()), (200, true));
}

#[test]
fn processes_of_event_finish_without_their_supervisor() {
    children_finish_without_their_supervisor("event");
}

#[test]
fn the_process_of_loop_finishes_without_its_supervisor() {
    children_finish_without_their_supervisor("loop");
}

#[test]
fn processes_of_worker_finish_without_their_supervisor() {
    children_finish_without_their_supervisor("worker");
}

#[test]
fn processes_of_prefork_finish_without_their_supervisor() {
    children_finish_without_their_supervisor("prefork");
}

fn children_finish_without_their_supervisor(mpm: &str) {
    let mut site = site_with_large_file(&format!("orphans-{mpm}"));
    let modules = ["dir", "authz_core", &format!("mpm_{mpm}")]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    site.configure(&modules.concat());
    site.start();
    let (supervisor, children) = (site.supervisor(), site.children());
    let mut idle = site.client();
    assert!(!idle.get("/").unwrap().closes());
    let mut slow = downloading(&site);
    kill(supervisor, Signal::SIGKILL).unwrap();
    // Until the process is dead, even if not reaped, another start finds it running.
    site.wait_until("its death", || {
        let stat = fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    });
    // Another start can bind the port at once, while the download continues.
    site.wait_until("another start", || site.run(&["-k", "start"]).status.success());
    site.wait_for_line("AH00098");
    assert_eq!(site.get("/").status, 200);
    assert_ne!(site.supervisor(), supervisor);
    let answer = idle.get("/").unwrap();
    assert_eq!((answer.status, answer.closes()), (200, true));
    assert_eq!(slow.answer().unwrap().body.len(), LARGE);
    drop((idle, slow));
    let are_gone = || children.iter().all(|pid| !fs::exists(format!("/proc/{pid}/exe")).unwrap());
    site.wait_until("the children's end", are_gone);
}

#[test]
fn a_single_process_does_not_wait_for_a_companion_that_has_ended() {
    const RUNS: u32 = 10;
    // As long as a companion may take before it is killed.
    const DEADLINE: Duration = Duration::from_secs(4);
    let mut site = Site::new("single-companion");
    site.configure("LoadModule cgid_module modules/mod_cgid.so\n");
    let mut slow = 0;
    for _ in 0..RUNS {
        let mut command = site.command();
        command.arg("-X");
        site.start_by(command);
        let began = Instant::now();
        site.signal(Signal::SIGTERM);
        assert!(site.ended_within(PATIENCE), "{}", site.error_log());
        slow += u32::from(began.elapsed() >= DEADLINE);
        fs::remove_file(site.path("logs/error.log")).unwrap();
    }
    // A stall of the machine may be as long, but not each time.
    assert!(slow <= 1, "{slow} of {RUNS}");
}
