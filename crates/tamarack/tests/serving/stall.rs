//! Processes that hang: one that does nothing any more, one that does not come to an end.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::load::at_once;
use crate::site::Site;

const LINE: &str = "AH20020";

/// Stops a process, and waits until none of its threads runs: on a busy machine it takes a moment
/// until one of them sees the signal, and a loop accepts what it can meanwhile.
pub fn stop(site: &Site, pid: Pid) {
    kill(pid, Signal::SIGSTOP).unwrap();
    site.wait_until("every thread stands still", || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    });
}

#[test]
fn a_child_that_stands_still_is_replaced() {
    let mut site = Site::new("still");
    site.configure("LoopStallTimeout 2\n");
    site.start();
    let (supervisor, children) = (site.supervisor(), site.children());
    let still = children[0];
    stop(&site, still);
    // Those who come to its sockets meanwhile are served by the next.
    let failures = at_once(site.port, 32);
    assert!(failures.is_empty(), "{failures:#?}\n{}", site.error_log());
    site.wait_for_line(LINE);
    assert!(site.error_log().contains("(it is stopped): it is replaced"), "{}", site.error_log());
    site.wait_until("its end", || !site.children().contains(&still));
    site.wait_until("its successor", || site.children().len() == children.len());
    assert_eq!(site.supervisor(), supervisor);
    site.assert_serves();
}

#[test]
fn a_loop_that_spins_is_replaced() {
    let mut site = Site::new("spins");
    // Each of these expressions goes through all the ways to split the name, until the library's
    // own limit ends it; many of them keep the loop for long.
    let lines = "SetEnvIf Spin \"^(a+|a+b?)+(a+|c)+(a+)+$\" spins\n".repeat(2000);
    site.configure(&format!("LoopStallTimeout 2\n{lines}"));
    site.start();
    let children = site.children();
    let mut spinning = site.client();
    let name = "a".repeat(60);
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nSpin: {name}!\r\n\r\n");
    spinning.send(request.as_bytes()).unwrap();
    site.wait_for_line(LINE);
    assert!(site.error_log().contains(" s of CPU meanwhile): it is replaced"));
    site.wait_until("its end", || {
        site.children().iter().filter(|c| children.contains(c)).count() < children.len()
    });
    site.wait_until("its successor", || site.children().len() == children.len());
    assert!(spinning.answer().is_err());
    site.assert_serves();
}

#[test]
fn a_server_that_was_suspended_goes_on() {
    let mut site = Site::new("suspended");
    site.configure("LoopStallTimeout 2\n");
    site.start();
    let (supervisor, children) = (site.supervisor(), site.children());
    let all = || children.iter().copied().chain([supervisor]);
    all().for_each(|pid| kill(pid, Signal::SIGSTOP).unwrap());
    std::thread::sleep(Duration::from_secs(4));
    all().for_each(|pid| kill(pid, Signal::SIGCONT).unwrap());
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(site.children(), children);
    assert_eq!(site.count_lines(LINE), 0, "{}", site.error_log());
    site.assert_serves();
}
