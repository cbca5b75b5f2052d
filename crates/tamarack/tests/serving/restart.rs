//! Graceful restarts, logs that are moved away, children that are killed.

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::load::{under_load, wait_for_their_end};
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
        }
    });
    assert_eq!(seen.failures.into_inner(), 0, "\n{}", site.error_log());
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

#[test]
fn a_killed_child_is_replaced() {
    const KILLED: usize = 5;
    let mut site = Site::new("killed");
    site.start();
    let seen = under_load(&site, CONNECTIONS / 5, || {
        for _ in 0..KILLED {
            let children = site.children();
            let victim = *children.first().unwrap();
            kill(victim, Signal::SIGKILL).unwrap();
            site.wait_until("a new child", || {
                let now = site.children();
                now.len() == children.len() && !now.contains(&victim)
            });
            thread::sleep(Duration::from_millis(50));
        }
    });
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
