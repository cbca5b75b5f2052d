//! Logs that can't be written, and programs that read logs and die.

use std::fs;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::load::{under_load, wait_for_their_end};
use crate::metrics::metrics;
use crate::site::{Site, is_root};

/// Requests while the log is unwritable.
const REQUESTS: usize = 500;

#[test]
fn a_full_device_stops_the_log_and_not_the_serving() {
    let mut site = Site::new("full-device");
    let shown = "<Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n";
    site.configure(&format!("CustomLog /dev/full \"%h %U\"\n{shown}"));
    site.start();
    let mut client = site.client();
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/").unwrap().status, 200);
    }
    site.wait_for_line("lines could not be written");
    site.wait_until("all are counted", || {
        metrics(&site)["tamarack_log_lines_dropped_total"] >= REQUESTS as f64
    });
    site.assert_serves();
}

/// As in Apache the size is that of the body that was to be sent; `%O` has the rest of the truth.
#[test]
fn a_download_that_its_client_breaks_off_is_logged_with_its_size() {
    const BYTES: usize = 24 << 20;
    let mut site = Site::new("broken-off");
    site.configure("CustomLog logs/access.log \"%U %X %b\"\n");
    let big = fs::File::create(site.path("htdocs/big")).unwrap();
    big.set_len(BYTES as u64).unwrap();
    site.start();
    let lines = |count: usize| {
        let log = || fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
        site.wait_until("a line", || log().lines().count() == count);
        log().lines().last().unwrap().to_owned()
    };
    // The first is made by the phases, the others come from the cache.
    for count in 1..=3 {
        let mut client = site.client();
        client.ask("/big").unwrap();
        client.wait_for_bytes(1000).unwrap();
        drop(client);
        assert_eq!(lines(count), format!("/big X {BYTES}"));
    }
}

/// A small tmpfs, unmounted when dropped.
struct Mount(std::path::PathBuf);

impl Mount {
    /// Returns `None` if mounting is not allowed.
    fn new(at: std::path::PathBuf) -> Option<Mount> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&at);
        let is_mounted = is_root() && command.output().is_ok_and(|output| output.status.success());
        is_mounted.then_some(Mount(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_stops_the_logs_until_there_is_room() {
    let mut site = Site::new("full-disk");
    let Some(_mount) = Mount::new(site.path("logs")) else {
        eprintln!("skipped: mounting needs root");
        return;
    };
    site.configure("CustomLog logs/access.log \"%h %U\"\n");
    site.start();
    let filler = site.path("logs/filler");
    let _ = fs::write(&filler, vec![b'x'; 128 * 1024]);
    let mut client = site.client();
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/").unwrap().status, 200);
    }
    // A restart reopens the logs, and can't log the failure.
    let before = site.children();
    site.signal(Signal::SIGUSR1);
    site.wait_until("a new child", || site.children().iter().any(|new| !before.contains(new)));
    site.assert_serves();
    fs::remove_file(&filler).unwrap();
    assert_eq!(site.get("/?after").status, 200);
    site.wait_for_line("lines could not be written");
    let log = || fs::read_to_string(site.path("logs/access.log")).unwrap();
    let before = log().len();
    assert_eq!(site.get("/").status, 200);
    site.wait_until("a line", || log().len() > before);
}

/// The child of `parent` whose command line contains `text`.
fn child_with(parent: Pid, text: &str) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().find_map(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let is_it = String::from_utf8_lossy(&command).contains(text);
        is_it.then(|| Pid::from_raw(pid.parse().unwrap()))
    })
}

#[test]
fn a_reader_that_dies_is_started_again() {
    let mut site = Site::new("reader");
    let file = site.path("logs/piped");
    let reader = site.path("reader.sh");
    // Run by the shell: the script itself could not be executed while a program that another test
    // starts holds it open for writing.
    site.write("reader.sh", &format!("exec cat >> {}\n", file.display()));
    site.configure(&format!("CustomLog \"|/bin/sh {}\" \"%U\"\n", reader.display()));
    site.start();
    let supervisor = site.supervisor();
    let log = || fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(site.get("/index.html").status, 200);
    site.wait_until("a line", || log().contains("/index.html\n"));
    for number in 0..3 {
        let reader = child_with(supervisor, "cat").unwrap();
        kill(reader, Signal::SIGKILL).unwrap();
        let is_new = || child_with(supervisor, "cat").is_some_and(|new| new != reader);
        site.wait_until("a new reader", is_new);
        let path = format!("/nothing-{number}");
        assert_eq!(site.get(&path).status, 404);
        site.wait_until("a line", || log().contains(&path));
    }
    assert_eq!(site.count_lines("AH00106"), 3, "{}", site.error_log());
    site.assert_serves();
}

#[test]
fn no_line_is_lost_when_readers_are_started_anew() {
    let mut site = Site::new("reader-restart");
    let file = site.path("logs/piped");
    let log = format!("CustomLog \"|$cat >> {}\" \"%s\"\n", file.display());
    site.configure(&log);
    site.start();
    let seen = under_load(&site, 8, || {
        for _ in 0..5 {
            let old = site.children();
            site.restart_gracefully();
            wait_for_their_end(&site, &old);
        }
    });
    seen.assert_all_answered(&site);
    let answers = seen.answers.into_inner();
    let lines = || fs::read_to_string(&file).unwrap_or_default().lines().count() as u64;
    site.wait_until("all lines", || lines() >= answers);
    assert_eq!(lines(), answers);
}

#[test]
fn readers_end_with_the_server() {
    let site = Site::new("readers-end");
    let file = site.path("logs/piped");
    // A reader that has not read to the end after two seconds gets SIGTERM.
    let tell = format!("/bin/sh -c 'trap : TERM; cat; echo over' >> {}", file.display());
    let error = site.path("logs/errors");
    let keep = format!("/bin/sh -c 'trap : TERM; cat; echo over' >> {}", error.display());
    site.configure(&format!("CustomLog \"|${tell}\" \"%U\"\nErrorLog \"|${keep}\"\n"));
    assert!(site.run(&["-k", "start"]).status.success());
    assert_eq!(site.get("/").status, 200);
    for _ in 0..3 {
        assert!(site.run(&["-k", "graceful"]).status.success());
        let read = || fs::read_to_string(&error).unwrap_or_default();
        let before = read().matches("resuming normal operations").count();
        site.wait_until("a restart", || {
            read().matches("resuming normal operations").count() > before || before >= 2
        });
    }
    assert!(site.run(&["-k", "stop"]).status.success());
    site.wait_until("its end", || !site.path("run.pid").exists());
    let said = |file: &std::path::Path| fs::read_to_string(file).unwrap_or_default();
    site.wait_until("the readers' ends", || {
        said(&file).ends_with("over\n") && said(&error).ends_with("over\n")
    });
}

/// Buffered lines of many hosts, each with a log of its own, are all there in the end, in order.
#[test]
fn buffered_logs_of_many_hosts_are_complete() {
    const HOSTS: usize = 40;
    const ROUNDS: usize = 50;
    let mut site = Site::new("buffered");
    let hosts = (0..HOSTS).map(|host| {
        format!(
            "<VirtualHost *>\nServerName h{host}.test\nCustomLog logs/h{host} \"%U %{{X}}i\"\n\
             </VirtualHost>\n"
        )
    });
    site.configure(&format!("BufferedLogs On\n{}", hosts.collect::<String>()));
    site.start();
    let mut client = site.client();
    let padding = "x".repeat(2000);
    for round in 0..ROUNDS {
        for host in 0..HOSTS {
            let head =
                format!("GET /{round} HTTP/1.1\r\nHost: h{host}.test\r\nX: {padding}\r\n\r\n");
            client.send(head.as_bytes()).unwrap();
            assert_eq!(client.answer().unwrap().status, 404);
        }
    }
    let wanted: String = (0..ROUNDS).map(|round| format!("/{round} {padding}\n")).collect();
    for host in 0..HOSTS {
        let log = site.path(&format!("logs/h{host}"));
        site.wait_until("all lines", || fs::read_to_string(&log).is_ok_and(|text| text == wanted));
    }
}

/// What is buffered for a pipe leaves in pieces that a pipe takes as a whole: lines of several
/// processes do not mix.
#[test]
fn buffered_lines_for_a_pipe_stay_whole() {
    const CLIENTS: usize = 4;
    const REQUESTS: usize = 200;
    let mut site = Site::new("buffered-pipe");
    let file = site.path("logs/piped");
    site.configure(&format!(
        "LoadModule mpm_prefork_module modules/mod_mpm_prefork.so\nStartServers {CLIENTS}\n\
         LoadModule dir_module modules/mod_dir.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         BufferedLogs On\nCustomLog \"|$cat >> {}\" \"%{{X}}i\"\n",
        file.display()
    ));
    site.start();
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c", "d"] {
            let mut client = site.client();
            scope.spawn(move || {
                let line = letter.repeat(700);
                for _ in 0..REQUESTS {
                    let head = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {line}\r\n\r\n");
                    client.send(head.as_bytes()).unwrap();
                    assert_eq!(client.answer().unwrap().status, 200);
                }
            });
        }
    });
    let text = || fs::read_to_string(&file).unwrap_or_default();
    site.wait_until("all lines", || text().lines().count() >= CLIENTS * REQUESTS);
    for line in text().lines() {
        let first = line.get(..1).unwrap_or_default();
        assert_eq!(line, first.repeat(700));
    }
}
