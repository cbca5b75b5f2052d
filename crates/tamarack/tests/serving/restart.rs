//! Graceful restarts, and rotated logs.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::load::{under_load, wait_for_their_end};
use crate::site::Site;

/// Consecutive restarts, one a second.
const RESTARTS: usize = 20;
const PAUSE: Duration = Duration::from_secs(1);
/// The interval of restarts whose configuration is invalid.
const BROKEN_EVERY: usize = 5;
/// Simultaneous keep-alive connections.
const CONNECTIONS: usize = 50;

/// The configuration of a restart, counted from 1: the shape changes with the eighth and the
/// fifteenth.
fn configuration(number: usize) -> String {
    let mpm = match number {
        ..=7 => "event",
        8..=14 => "worker",
        _ => "prefork",
    };
    let modules = ["dir", "mime", "authz_core"];
    let modules = modules.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let broken = if number.is_multiple_of(BROKEN_EVERY) { "Frobnicate On\n" } else { "" };
    format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n{}MaxRequestWorkers 150\n{broken}",
        modules.concat()
    )
}

#[test]
fn no_request_fails_when_restarted_under_load() {
    let mut site = Site::new("restarts");
    site.configure(&configuration(1));
    site.start();
    let seen = under_load(&site, CONNECTIONS, || {
        let began = Instant::now();
        for (number, due) in (1..=RESTARTS).zip((0..).map(|second| began + second * PAUSE)) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            site.configure(&configuration(number));
            site.restart_gracefully();
        }
    });
    seen.assert_all_answered(&site);
    assert!(seen.answers.into_inner() > CONNECTIONS as u64);
    let broken = RESTARTS / BROKEN_EVERY;
    assert_eq!(site.count_lines("Invalid command 'Frobnicate'"), broken);
    assert_eq!(site.count_lines("still serving the old one"), broken);
    assert_eq!(site.count_lines("resuming normal operations"), 1 + RESTARTS - broken);
    // Every shape has served, and logged its own number.
    let served = ["AH00489", "AH00292", "AH00163"].map(|number| site.count_lines(number));
    let valid = |numbers: std::ops::RangeInclusive<usize>| {
        numbers.filter(|number| !number.is_multiple_of(BROKEN_EVERY)).count()
    };
    assert_eq!(served, [1 + valid(1..=7), valid(8..=14), valid(15..=RESTARTS)]);
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
    // The line is written before the old children are notified.
    site.wait_until("an answer that is the last", || {
        let answer = client.get("/").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.closes()
    });
    assert!(client.is_closed());
    // The old generation ends with its last connection.
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
    let old = site.children();
    site.signal(Signal::SIGHUP);
    let is_back = || site.count_lines("resuming normal operations") == 3;
    site.wait_until("a restart", is_back);
    // Connections that they accept before the notification end with them.
    wait_for_their_end(&site, &old);
    assert_eq!(site.get("/").text(), "other\n");
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

#[test]
fn remarks_at_a_restart_are_lines_of_the_log() {
    let mut site = Site::new("remarks");
    site.configure("StartServers 0");
    site.start();
    // At startup verbatim as in Apache, and not as a log line.
    assert_eq!(site.count_lines("AH00517: WARNING: StartServers of 0 not allowed"), 1);
    site.restart_gracefully();
    site.wait_for_line("AH00518: StartServers of 0 not allowed, increasing to 1");
    let log = site.error_log();
    let line = log.lines().find(|line| line.contains("AH00518")).unwrap();
    assert!(line.contains("] [mpm_event:warn] [pid "), "{line}");
    assert_eq!(site.count_lines("AH00517"), 1);
}
