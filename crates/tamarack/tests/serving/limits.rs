//! Lack of processes, descriptors, and memory.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::client::Client;
use crate::site::{PROGRAM, Site, copy_program, is_root};
use crate::tls::Tls;

/// Attempts, since a busy machine may be slow at times.
const TRIES: usize = 5;
/// A user without other processes: the limit on processes counts all of a user's.
const USER: u32 = 54_321;

/// Sets a soft limit of the running supervisor, which requires the same user.
fn limit(site: &Site, user: Option<u32>, which: &str) {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &site.supervisor().to_string(), which]);
    if let Some(user) = user.filter(|_| is_root()) {
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Starts the server as an ordinary user, to whom limits on processes apply.
fn start_as_user(site: &mut Site) {
    let mut command = site.command();
    if is_root() {
        let copy = site.path("tamarack");
        copy_program(&copy);
        command = site.as_program(&copy);
        command.uid(USER).gid(USER);
        for path in ["", "logs", "htdocs"] {
            std::os::unix::fs::chown(site.path(path), Some(USER), Some(USER)).unwrap();
        }
    }
    site.start_by(command);
}

#[test]
fn it_serves_when_no_process_can_be_started() {
    const LINE: &str = "Unable to fork new process";
    let mut site = Site::new("no-process");
    start_as_user(&mut site);
    limit(&site, Some(USER), "--nproc=1:");
    let children = site.children();
    kill(children[0], Signal::SIGKILL).unwrap();
    site.wait_for_line(LINE);
    // The remaining processes serve, if there are any.
    if children.len() > 1 {
        site.restart_gracefully();
        assert_eq!(site.count_lines("still serving the old one"), 1, "{}", site.error_log());
    }
    // It is retried repeatedly, and logged once a minute.
    assert!(site.count_lines(LINE) <= 3, "{}", site.error_log());
    limit(&site, Some(USER), "--nproc=1000:");
    site.wait_until("a new child", || site.children().len() == children.len());
    site.assert_serves();
    site.restart_gracefully();
    site.assert_serves();
}

#[test]
fn a_child_that_could_take_no_orders_does_not_serve() {
    assert!((0..TRIES).any(|_| children_without_orders_end()), "they had to be killed");
}

/// Starts children that can't create the thread for orders: whether they end before they are
/// killed.
fn children_without_orders_end() -> bool {
    let site = Site::new("no-orders");
    // Serving threads have a size of their own; there is no memory for other threads.
    let shape = "LoadModule mpm_prefork_module modules/mod_mpm_prefork.so\nThreadStackSize 1048576";
    site.configure(shape);
    let mut command = site.command();
    command.env("RUST_MIN_STACK", (1u64 << 46).to_string());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}\n{}", site.error_log());
    assert!(site.count_lines("child can't start a thread") > 0, "{}", site.error_log());
    site.count_lines("sending a SIGKILL") == 0
}

#[test]
fn prefork_serves_with_those_that_there_are() {
    let mut site = Site::new("no-more-processes");
    let modules = ["mpm_prefork", "dir", "authz_core"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let limits = "StartServers 2\nMinSpareServers 1\nMaxSpareServers 2\n";
    site.configure(&(modules.concat() + limits));
    start_as_user(&mut site);
    limit(&site, Some(USER), "--nproc=1:");
    let supervisor = site.supervisor();
    let mut clients: Vec<Client> = (0..6).map(|_| site.client()).collect();
    clients.iter_mut().for_each(|client| client.ask("/").unwrap());
    site.wait_for_line("Unable to fork new process");
    clients.iter().for_each(|client| client.give_up_after(Duration::from_millis(100)));
    let mut served = 0;
    let mut answered = || {
        let answers = clients.iter_mut().filter_map(|client| client.answer().ok());
        served += answers.filter(|answer| answer.status == 200).count();
        served
    };
    site.wait_until("one of them has a process", || answered() > 0);
    assert!(answered() < 6, "all have a process");
    // Waiting clients are served as soon as there are processes again, or others have disconnected.
    limit(&site, Some(USER), "--nproc=1000:");
    site.wait_until("processes for all", || site.children().len() >= 6);
    drop(clients);
    site.assert_serves();
    assert_eq!(site.supervisor(), supervisor);
}

#[test]
fn it_serves_when_the_supervisor_has_no_descriptors() {
    let mut site = Site::new("no-descriptors");
    site.start();
    let children = site.children();
    limit(&site, None, "--nofile=3:");
    site.restart_gracefully();
    assert_eq!(site.count_lines("still serving the old one"), 1, "{}", site.error_log());
    site.assert_serves();
    kill(children[0], Signal::SIGKILL).unwrap();
    site.wait_for_line("Unable to fork new process");
    limit(&site, None, "--nofile=1000:");
    site.wait_until("a new child", || site.children().len() == children.len());
    site.restart_gracefully();
    site.assert_serves();
}

#[test]
fn a_start_without_shared_memory_is_an_error() {
    let large = Tls::configuration("server.key").replace("(512000)", "(900000000)");
    let many = "LoadModule mpm_prefork_module modules/mod_mpm_prefork.so\nServerLimit 20000\n\
                MaxRequestWorkers 20000\n";
    let board = "no shared memory for a scoreboard of 20000 processes (ServerLimit): Cannot \
                 allocate memory";
    for (more, limit_kb, said) in [
        (large.as_str(), 700_000, "mod_ssl: no shared memory: Cannot allocate memory"),
        (many, 400_000, board),
    ] {
        let site = Site::new("no-memory");
        site.configure(more);
        let limited = format!("ulimit -v {limit_kb}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, PROGRAM]).arg("-d").arg(&site.root);
        let output = command.args(["-f", "httpd.conf"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(said), "{text}");
        assert!(!site.path("run.pid").exists());
    }
}

#[test]
fn a_restart_without_shared_memory_changes_nothing() {
    let mut site = Site::new("no-memory-restart");
    site.start();
    let used = fs::read_to_string(format!("/proc/{}/statm", site.supervisor())).unwrap();
    let pages: u64 = used.split(' ').next().unwrap().parse().unwrap();
    limit(&site, None, &format!("--as={}:", pages * 4096 + (200 << 20)));
    site.configure(&Tls::configuration("server.key").replace("(512000)", "(900000000)"));
    site.restart_gracefully();
    assert_eq!(site.count_lines("mod_ssl: no shared memory"), 1, "{}", site.error_log());
    site.configure("");
    site.restart_gracefully();
    site.assert_serves();
}
