//! Prefork, worker, loop: processes that come and go, changes of the shape, and configured numbers.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::client::{Client, PATIENCE};
use crate::load::{at_once, under_load, wait_for_their_end};
use crate::site::{PROGRAM, Site, is_root};

/// The longest time for a shape to shrink: one more process each second, then twice as many.
const SHRINK_PATIENCE: Duration = Duration::from_secs(90);
/// The lines for an MPM.
pub fn shape(mpm: &str, more: &str) -> String {
    format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n\
         LoadModule dir_module modules/mod_dir.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n{more}"
    )
}

pub fn start(name: &str, mpm: &str, more: &str) -> Site {
    started(Site::new(name), mpm, more)
}

pub fn started(mut site: Site, mpm: &str, more: &str) -> Site {
    site.configure(&shape(mpm, more));
    site.start();
    site
}

/// `count` clients send a request at the same time, on connections that stay open.
pub fn ask_at_once(site: &Site, count: usize) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| site.client()).collect();
    for client in &mut clients {
        client.ask("/").unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().status, 200);
    }
    clients
}

#[test]
fn prefork_has_a_process_for_everybody_who_comes_at_once() {
    let limits = "StartServers 6\nMinSpareServers 5\nMaxSpareServers 10\n";
    let site = start("prefork-grows", "prefork", limits);
    assert_eq!(site.children().len(), 6);
    let mut clients = ask_at_once(&site, 32);
    for client in &mut clients {
        assert_eq!(client.get("/").unwrap().status, 200);
    }
    site.wait_until("a reserve", || site.children().len() >= 32 + 5);
    let most = site.children().len();
    assert!(most <= 32 + 10, "{most} processes for 32 connections");
    drop(clients);
    let end = Instant::now() + SHRINK_PATIENCE;
    while site.children().len() > 10 && Instant::now() < end {
        sleep(Duration::from_millis(50));
    }
    let left = site.children().len();
    assert!((5..=10).contains(&left), "{left} processes without clients");
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn worker_starts_processes_when_threads_run_short() {
    let limits = "StartServers 1\nThreadsPerChild 4\nMinSpareThreads 2\nMaxSpareThreads 4\n\
                  MaxRequestWorkers 16\n";
    let site = start("worker-grows", "worker", limits);
    assert_eq!(site.children().len(), 1);
    let started = cpu_ticks(site.supervisor());
    let clients = ask_at_once(&site, 12);
    site.wait_until("a reserve", || site.children().len() == 4);
    drop(clients);
    let end = Instant::now() + SHRINK_PATIENCE;
    while site.children().len() > 2 && Instant::now() < end {
        sleep(Duration::from_millis(50));
    }
    assert!(site.children().len() <= 2);
    assert_eq!(site.get("/").status, 200);
    // The supervisor has slept all the time: it wakes once a second, and for signals.
    assert!(cpu_ticks(site.supervisor()) - started < 100);
}

/// The CPU time of a process in hundredths of a second (proc_pid_stat(5): utime and stime).
fn cpu_ticks(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = text.rsplit_once(") ").unwrap().1;
    fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// The number of listening sockets on the site's port.
fn listening(site: &Site) -> usize {
    let shown = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let address = format!(" 0100007F:{:04X} 00000000:0000 0A ", site.port);
    shown.lines().filter(|line| line.contains(&address)).count()
}

#[test]
fn an_address_has_as_many_sockets_as_there_are_buckets() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    for (mpm, ratio) in [("prefork", 1), ("worker", 1), ("prefork", cpus), ("worker", 2 * cpus)] {
        let limits = format!("ListenCoresBucketsRatio {ratio}\nStartServers 1\n");
        let mut site = start("buckets", mpm, &limits);
        let buckets = (cpus / ratio).max(1);
        let has_all = || listening(&site) == buckets;
        site.wait_until(&format!("{buckets} sockets, {mpm}, {ratio}"), has_all);
        // Each has a process that accepts from it, whichever the kernel chooses.
        assert!(site.children().len() >= if mpm == "prefork" { buckets } else { 1 });
        for _ in 0..20 {
            assert_eq!(site.get("/").status, 200);
        }
        site.restart_gracefully();
        let has_all = || listening(&site) == buckets;
        site.wait_until(&format!("{buckets} sockets after a restart, {mpm}, {ratio}"), has_all);
        site.assert_serves();
    }
}

#[test]
fn no_bucket_is_left_alone_when_processes_end() {
    let limits = "ListenCoresBucketsRatio 1\nThreadsPerChild 25\nStartServers 2\n\
                  MinSpareThreads 5\nMaxSpareThreads 10\n";
    let site = start("buckets-shrink", "worker", limits);
    site.wait_until("one process", || site.children().len() == 1);
    drop(ask_at_once(&site, 20));
}

#[test]
fn no_request_fails_when_the_shape_changes() {
    let mut site = start("shape-changes", "event", "");
    let seen = under_load(&site, 20, || {
        for mpm in ["prefork", "worker", "loop", "prefork", "event", "worker", "event"] {
            site.configure(&shape(mpm, ""));
            site.restart_gracefully();
            sleep(Duration::from_millis(100));
        }
    });
    seen.assert_all_answered(&site);
    for number in ["AH00163", "AH00292", "AH00489"] {
        assert!(site.count_lines(number) > 0, "{number}\n{}", site.error_log());
    }
    site.assert_serves();
}

#[test]
fn loop_is_one_process_with_one_loop() {
    // Whatever the numbers for event.
    let site = start("one-loop", "loop", "StartServers 4\nThreadsPerChild 8\n");
    let children = site.children();
    assert_eq!(children.len(), 1);
    let loops = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", children[0])).unwrap().flatten();
        let name = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm"));
        let is_loop = |name: String| name.starts_with("loop-");
        threads.filter(|task| name(task.path()).is_ok_and(is_loop)).count()
    };
    // A thread gets its name a moment after it has started.
    site.wait_until("a loop", || loops() > 0);
    // Nevertheless it handles many connections.
    let mut clients = ask_at_once(&site, 200);
    for client in &mut clients {
        assert_eq!(client.get("/").unwrap().status, 200);
    }
    assert_eq!(loops(), 1);
}

#[test]
fn a_killed_process_is_replaced_in_every_shape() {
    for (mpm, spare) in
        [("worker", "MinSpareThreads 1\n"), ("prefork", "MinSpareServers 1\n"), ("loop", "")]
    {
        let site = start("killed", mpm, &format!("StartServers 2\n{spare}"));
        let children = site.children();
        let victim = children[0];
        nix::sys::signal::kill(victim, Signal::SIGKILL).unwrap();
        let failures = at_once(site.port, 32);
        // A connection that was being accepted at that moment may have been lost.
        assert!(failures.len() <= 1, "{mpm}: {failures:#?}");
        site.wait_until("its end", || !site.children().contains(&victim));
        site.wait_until("a successor", || site.children().len() >= children.len());
        assert_eq!(site.count_lines("exit signal Killed"), 1, "{mpm}: {}", site.error_log());
        assert!(at_once(site.port, 32).is_empty(), "{mpm}");
    }
}

#[test]
fn a_process_that_has_served_enough_is_replaced() {
    let limits = "StartServers 2\nMinSpareServers 1\nMaxConnectionsPerChild 3\n";
    let site = start("served-enough", "prefork", limits);
    let first = site.children();
    // The first process to wake gets all connections until its successor exists, however many come.
    site.wait_until("those that began have gone", || {
        assert_eq!(site.get("/").status, 200);
        site.children().iter().all(|child| !first.contains(child))
    });
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn a_stop_waits_for_no_connection() {
    for (name, mpm) in [("stop-prefork", "prefork"), ("stop-worker", "worker")] {
        let site = start(name, mpm, "");
        let mut client = site.client();
        assert_eq!(client.get("/").unwrap().status, 200);
        let begun = Instant::now();
        site.signal(Signal::SIGTERM);
        site.wait_until("the end", || !site.path("run.pid").exists());
        // KeepAliveTimeout is five times as long.
        assert!(begun.elapsed() < Duration::from_secs(60), "{mpm}: {:?}", begun.elapsed());
        assert!(client.get("/").is_err());
    }
}

#[test]
fn sockets_come_from_systemd() {
    for (name, mpm) in [("activated-event", "event"), ("activated-prefork", "prefork")] {
        let mut site = Site::new(name);
        site.configure(&shape(mpm, ""));
        let listener = TcpListener::bind(("127.0.0.1", site.port)).unwrap();
        // A connection that precedes the server.
        let mut early = site.client();
        early.ask("/").unwrap();
        let start = |site: &mut Site| {
            let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";
            let mut command = Command::new("sh");
            command.args(["-c", script, "sh", PROGRAM, "-f", "httpd.conf", "-d"]).arg(&site.root);
            let socket = OwnedFd::from(listener.try_clone().unwrap());
            command.stdin(Stdio::from(socket)).env_remove("NOTIFY_SOCKET");
            site.start_by(command);
        };
        start(&mut site);
        assert_eq!(early.answer().unwrap().status, 200, "{mpm}");
        drop(early);
        site.restart_gracefully();
        site.assert_serves();
        // Systemd continues to listen, for the next start.
        site.signal(Signal::SIGWINCH);
        assert!(site.ended_within(PATIENCE), "{mpm}: {}", site.error_log());
        let mut early = site.client();
        early.ask("/").unwrap();
        start(&mut site);
        assert_eq!(early.answer().unwrap().status, 200, "{mpm}");
    }
}

#[test]
fn children_live_in_their_own_root() {
    if !is_root() {
        return;
    }
    for (name, mpm) in [("chroot-event", "event"), ("chroot-prefork", "prefork")] {
        let mut site = Site::new(name);
        let root = site.root.display().to_string();
        let more = format!(
            "User www-data\nGroup www-data\nChrootDir {root}\nDocumentRoot /htdocs\n\
             <Directory />\nAllowOverride None\n</Directory>\n"
        );
        // Inside the root, the documents have other names than outside.
        site.configure(&shape(mpm, &more));
        site.start_by({
            let mut command = site.command();
            command.arg("-T");
            command
        });
        assert_eq!(site.get("/index.html").text(), "hello\n", "{mpm}: {}", site.error_log());
        // A spare child that was forked a moment ago may not be ready yet.
        site.wait_until("children in their root", || {
            let seen = |child| std::fs::read_link(format!("/proc/{child}/root"));
            site.children().into_iter().all(|c| seen(c).is_ok_and(|at| at.as_os_str() == &*root))
        });
    }
}

#[test]
fn buffers_have_the_sizes_that_were_asked_for() {
    let sizes = "SendBufferSize 65536\nReceiveBufferSize 32768\n";
    let site = start("buffers", "event", sizes);
    let mut client = site.client();
    assert_eq!(client.get("/").unwrap().status, 200);
    let port = site.port.to_string();
    let filter = ["-tnmH", "state", "established", "sport", "=", &port];
    let Ok(shown) = Command::new("ss").args(filter).output() else { return };
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    // The kernel doubles the requested size, for its own needs.
    assert!(shown.contains("rb65536") && shown.contains("tb131072"), "{shown}");
}

/// Sizes of the stacks of a process: mappings right above a guard (proc_pid_maps(5)).
fn stacks(pid: Pid) -> Vec<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mappings: Vec<(u64, u64, &str)> = text
        .lines()
        .filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let address = |text| u64::from_str_radix(text, 16).ok();
            Some((address(from)?, address(to)?, rest.split(' ').next()?))
        })
        .collect();
    let is_stack = |two: &&[(u64, u64, &str)]| {
        two[0].1 == two[1].0 && two[0].2 == "---p" && two[1].2 == "rw-p"
    };
    mappings.windows(2).filter(is_stack).map(|two| two[1].1 - two[1].0).collect()
}

#[test]
fn threads_have_stacks_of_the_size_that_was_asked_for() {
    // A unique size, and a multiple of any machine's page size.
    const SIZE: u64 = 21 * 64 * 1024;
    // A guard of at most a page may be a part of it.
    const LEAST: u64 = SIZE - 64 * 1024;
    const THREADS: usize = 8;
    let limits = format!("StartServers 1\nThreadsPerChild {THREADS}\nMinSpareThreads 1\n");
    for (mpm, least) in [("worker", THREADS), ("loop", 1)] {
        let site = start("stacks", mpm, &limits);
        let seen = |site: &Site| {
            assert_eq!(site.get("/").status, 200);
            let all: Vec<u64> = site.children().into_iter().flat_map(stacks).collect();
            let of_size = all.iter().filter(|size| (LEAST..=SIZE).contains(size)).count();
            (of_size, all.len() - of_size)
        };
        let (of_size, others) = seen(&site);
        assert_eq!(of_size, 0, "{mpm}: that is no default");
        assert!(others >= least, "{mpm}: {others} stacks are seen");
        site.configure(&shape(mpm, &format!("{limits}ThreadStackSize {SIZE}\n")));
        let old = site.children();
        site.restart_gracefully();
        wait_for_their_end(&site, &old);
        let (of_size, others) = seen(&site);
        assert!(of_size >= least, "{mpm}: {of_size} have it, {others} not");
    }
}
