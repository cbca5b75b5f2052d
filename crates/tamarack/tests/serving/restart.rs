//! Graceful restarts, logs that are moved away, children that are killed.

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::is_long;
use crate::load::{at_once, under_load, wait_for_their_end};
use crate::site::Site;

/// Restarts in a row.
const RESTARTS: usize = 20;
/// Keep-alive connections at the same time.
const CONNECTIONS: usize = 50;

#[test]
fn no_request_fails_when_restarted_under_load() {
    let mut site = Site::new("restarts");
    site.start();
    let seen = under_load(&site, CONNECTIONS, || {
        for number in 1..=RESTARTS {
            let is_broken = number % 5 == 0;
            site.configure(if is_broken { "Frobnicate On" } else { "" });
            site.restart_gracefully();
            thread::sleep(Duration::from_millis(if is_long() { 1000 } else { 0 }));
        }
    });
    seen.assert_all_answered(&site);
    assert!(seen.answers.into_inner() > RESTARTS as u64);
    assert_eq!(site.count_lines("Invalid command 'Frobnicate'"), RESTARTS / 5);
    assert_eq!(site.count_lines("the old one goes on serving"), RESTARTS / 5);
    assert_eq!(site.count_lines("resuming normal operations"), 1 + RESTARTS - RESTARTS / 5);
    site.assert_serves();
}

#[test]
fn an_idle_connection_is_answered_after_a_restart() {
    let mut site = Site::new("idle-restart");
    site.start();
    let mut client = site.client();
    assert!(!client.get("/").unwrap().closes());
    let old = site.children();
    site.restart_gracefully();
    // The line is written before the old children are told.
    thread::sleep(Duration::from_millis(300));
    let answer = client.get("/").unwrap();
    assert_eq!((answer.status, answer.closes()), (200, true), "{answer:?}");
    assert!(client.is_closed());
    // With its last connection the old generation goes.
    drop(client);
    wait_for_their_end(&site, &old);
}

#[test]
fn a_new_configuration_serves_after_a_restart() {
    let mut site = Site::new("new-configuration");
    site.start();
    fs::create_dir(site.path("other")).unwrap();
    site.write("other/index.html", "other\n");
    let root = site.path("other");
    site.configure(&format!("DocumentRoot {}\n", root.display()));
    let old = site.children();
    site.restart_gracefully();
    wait_for_their_end(&site, &old);
    assert_eq!(site.get("/").text(), "other\n");
    site.signal(Signal::SIGHUP);
    let is_back = || site.count_lines("resuming normal operations") == 3;
    site.wait_until("a restart", is_back);
    assert_eq!(site.get("/").text(), "other\n");
}

/// The lines of a configuration that chooses a shape.
fn shape(name: &str) -> String {
    ["dir", "mime", "authz_core"].iter().fold(
        format!("LoadModule mpm_{name}_module modules/mod_mpm_{name}.so\n"),
        |lines, module| lines + &format!("LoadModule {module}_module modules/mod_{module}.so\n"),
    )
}

#[test]
fn no_request_fails_when_the_shape_changes() {
    let mut site = Site::new("shapes");
    site.configure(&shape("event"));
    site.start();
    let (rounds, pause) = if is_long() { (5, 1000) } else { (1, 0) };
    let seen = under_load(&site, CONNECTIONS / 2, || {
        for shape_name in ["worker", "prefork", "loop", "event"].repeat(rounds) {
            site.configure(&format!("{}MaxRequestWorkers 150\n", shape(shape_name)));
            let old = site.children();
            site.restart_gracefully();
            wait_for_their_end(&site, &old);
            thread::sleep(Duration::from_millis(pause));
        }
    });
    seen.assert_all_answered(&site);
    site.assert_serves();
}

/// How long the machine has run, in ms.
fn uptime_ms() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap();
    (text.split(' ').next().unwrap().parse::<f64>().unwrap() * 1000.0) as u64
}

/// When a process was started, by the same clock; in steps of 10 ms.
fn started_ms(pid: nix::unistd::Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = text.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(19).unwrap().parse::<u64>().unwrap() * 10
}

#[test]
fn a_killed_child_is_replaced() {
    const KILLED: usize = 5;
    let mut site = Site::new("killed");
    site.start();
    let mut took = Vec::new();
    let seen = under_load(&site, CONNECTIONS / 5, || {
        for _ in 0..KILLED {
            let children = site.children();
            let victim = *children.first().unwrap();
            let killed_ms = uptime_ms();
            kill(victim, Signal::SIGKILL).unwrap();
            site.wait_until("its end", || !site.children().contains(&victim));
            // Who comes when it is dead waits in its queue, and is served by the next.
            let failures = at_once(site.port, 32);
            assert!(failures.is_empty(), "{failures:#?}");
            site.wait_until("a new child", || site.children().len() == children.len());
            let now = site.children();
            let new = now.iter().find(|child| !children.contains(child)).unwrap();
            took.push(started_ms(*new).saturating_sub(killed_ms));
            // Children that die as soon as they were started get a pause.
            thread::sleep(Duration::from_millis(if is_long() { 1000 } else { 550 }));
        }
    });
    // All of them, on a machine that has nothing else to do; here the best is looked at.
    assert!(*took.iter().min().unwrap() < 100, "ms until a new one was forked: {took:?}");
    // Whoever was on its way to the child that died lost a request; all others were answered.
    let failures = seen.failures.into_inner();
    assert!(failures <= (KILLED * CONNECTIONS / 5) as u64, "{failures} failures");
    assert!(seen.answers.into_inner() > failures);
    assert_eq!(site.count_lines("exit signal Killed"), KILLED, "{}", site.error_log());
    site.assert_serves();
}

#[test]
fn logs_that_were_moved_away_are_opened_anew() {
    let mut site = Site::new("rotate");
    site.configure("CustomLog logs/access.log \"%r\"\n");
    site.start();
    site.get("/?before");
    for log in ["error.log", "access.log"] {
        let (from, to) =
            (site.path("logs").join(log), site.path("logs").join(log).with_extension("1"));
        site.wait_until("a log", || from.exists());
        fs::rename(from, to).unwrap();
    }
    let old = site.children();
    site.signal(Signal::SIGUSR1);
    site.wait_for_line("resuming normal operations");
    wait_for_their_end(&site, &old);
    assert_eq!(site.get("/index.html").status, 200);
    let new = || fs::read_to_string(site.path("logs/access.log")).unwrap();
    site.wait_until("a line", || new().contains("GET /index.html "));
    let old = fs::read_to_string(site.path("logs/access.1")).unwrap();
    assert!(!old.contains("/index.html"), "{old}");
}
