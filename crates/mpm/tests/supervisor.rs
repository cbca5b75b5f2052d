//! The supervisor, observed from outside: starts the example `supervised`, queries it, signals it
//! and kills it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mpm::order::{Sent, ServerOrder, send_to_running, wait_until_stopped};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[path = "support/free_port.rs"]
mod free_port;

use free_port::free_port;

/// Far longer than any step takes: the machine may stall for a while.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server with its own directory and port. Killed on drop.
struct Server {
    directory: PathBuf,
    port: u16,
    pid: Option<i32>,
}

impl Server {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("mpm-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        Self { directory, port: free_port(), pid: None }
    }

    fn configure(&self, more: &str) {
        let directory = self.directory.display();
        let text = format!(
            "listen 127.0.0.1:{}\npid {directory}/pid\nlog {directory}/log\n{more}\n",
            self.port
        );
        let new = self.directory.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.directory.join("conf")).unwrap();
    }

    fn command(&self, mode: &str) -> Command {
        let mut examples = std::env::current_exe().unwrap();
        examples.pop();
        examples.pop();
        let mut command = Command::new(examples.join("examples/supervised"));
        command.arg(self.directory.join("conf")).arg(mode).stdin(Stdio::null());
        command
    }

    fn run(&self) -> Output {
        self.command("detach").output().unwrap()
    }

    fn start(&mut self, more: &str) {
        self.configure(more);
        let output = self.run();
        assert!(output.status.success(), "{output:?}\n{}", self.log());
        assert!(output.stderr.is_empty(), "{output:?}");
        let pid = fs::read_to_string(self.pid_file()).unwrap();
        self.pid = Some(pid.trim().parse().unwrap());
    }

    fn pid_file(&self) -> PathBuf {
        self.directory.join("pid")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    fn ask(&self, request: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Sends a request that occupies a child until [`Slow::finish`].
    fn ask_slowly(&self) -> Slow {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"slow").unwrap();
        let mut begun = [0];
        stream.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b".");
        Slow(stream)
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid.unwrap()), signal).unwrap();
    }

    fn children(&self) -> Vec<i32> {
        let pid = self.pid.unwrap();
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < deadline, "{what} did not happen\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_for_log(&self, text: &str) {
        self.wait_for(text, || self.log().contains(text));
    }

    fn stop(&mut self) {
        assert_eq!(
            send_to_running(&self.pid_file(), ServerOrder::Stop),
            Sent::Done(self.pid.unwrap())
        );
        assert!(wait_until_stopped(&self.pid_file(), PATIENCE), "{}", self.log());
        assert!(!self.pid_file().exists());
        self.pid = None;
    }
}

/// See [`Server::ask_slowly`].
struct Slow(TcpStream);

impl Slow {
    fn finish(mut self) -> String {
        self.0.write_all(b"x").unwrap();
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            let children = self.children_quietly();
            for pid in children.into_iter().chain([pid]) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Server {
    fn children_quietly(&self) -> Vec<i32> {
        let Some(pid) = self.pid else { return Vec::new() };
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        text.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }
}

fn is_alive(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z")
}

#[test]
fn it_detaches_when_it_is_ready_and_stops() {
    let mut server = Server::new("detach");
    server.start("answer one\nloops 3");
    assert!(server.ask("x").unwrap().starts_with("one "));
    assert_eq!(server.children().len(), 2);
    server.wait_for_log("AH00489: Answering/1 configured -- resuming normal operations");
    // The lock identifies the running server: a second one with this pid file is refused.
    let second = server.run();
    assert_eq!(second.status.code(), Some(1));
    let children = server.children();
    server.stop();
    assert!(children.into_iter().all(|pid| !is_alive(pid)));
    assert!(server.ask("x").is_err());
    assert!(server.log().contains("AH00491: caught SIGTERM, shutting down"));
}

#[test]
fn one_process_serves_alone_and_obeys() {
    for (signal, shape) in [(Signal::SIGTERM, "loops 3"), (Signal::SIGWINCH, "processes 1")] {
        let mut server = Server::new(&format!("single{}", signal as i32));
        server.configure(&format!("answer one\n{shape}"));
        let mut process = server.command("single").spawn().unwrap();
        server.pid = i32::try_from(process.id()).ok();
        server.wait_for_log("AH00489");
        for _ in 0..10 {
            assert!(server.ask("x").unwrap().starts_with("one"));
        }
        assert!(server.children().is_empty());
        server.signal(signal);
        assert!(process.wait().unwrap().success());
        server.pid = None;
        assert!(!server.pid_file().exists());
    }
}

#[test]
fn in_the_foreground_it_stays_and_its_children_outlive_an_interrupt_to_the_group() {
    let mut server = Server::new("foreground");
    server.configure("answer one");
    let mut process = server.command("foreground").spawn().unwrap();
    server.pid = i32::try_from(process.id()).ok();
    server.wait_for_log("AH00489");
    let children = server.children();
    for child in &children {
        kill(Pid::from_raw(*child), Signal::SIGINT).unwrap();
        kill(Pid::from_raw(*child), Signal::SIGHUP).unwrap();
    }
    assert!(server.ask("x").unwrap().starts_with("one"));
    assert_eq!(server.children(), children);
    server.signal(Signal::SIGINT);
    assert!(process.wait().unwrap().success());
    server.pid = None;
}

#[test]
fn a_port_in_use_is_told_to_the_terminal() {
    let server = Server::new("inuse");
    let _taken = TcpListener::bind(("127.0.0.1", server.port)).unwrap();
    server.configure("answer one");
    let output = server.run();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let line = format!("AH00072: make_sock: could not bind to address 127.0.0.1:{}", server.port);
    assert!(text.contains(&line), "{text}");
    assert!(text.contains("no listening sockets available, shutting down"), "{text}");
    assert!(!server.pid_file().exists());
}

#[test]
fn a_program_whose_children_can_not_start_fails_to_start() {
    for fault in ["fatal 1", "crash 1"] {
        let server = Server::new(&fault[..5]);
        server.configure(fault);
        let output = server.run();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("could not start"), "{output:?}");
        assert!(!server.pid_file().exists());
    }
}

/// Restarts the server, and waits until the new generation serves.
fn take_over(server: &Server, order: Signal) {
    let logged = || server.log().matches("AH00489").count();
    let before = logged();
    server.signal(order);
    server.wait_for("takeover", || logged() > before);
}

#[test]
fn graceful_restarts_lose_no_connection() {
    let mut server = Server::new("graceful");
    server.start("answer gen1\nloops 4");
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let server = &server;
    thread::scope(|scope| {
        let client = || {
            while !is_over.load(Ordering::Relaxed) {
                let answer = server.ask("x").unwrap();
                assert!(answer.starts_with("gen"), "{answer:?}");
                answered.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
        };
        let clients = [(); 4].map(|()| scope.spawn(client));
        for generation in 2..=7 {
            // Shrinks and grows: sockets are handed over and opened under load.
            let loops = 1 + generation % 4;
            server.configure(&format!("answer gen{generation}\nloops {loops}"));
            let enough = answered.load(Ordering::Relaxed) + 10;
            server.wait_for("load", || answered.load(Ordering::Relaxed) >= enough);
            take_over(server, Signal::SIGUSR1);
            let want = format!("gen{generation} ");
            server.wait_for("new answer", || server.ask("x").unwrap().starts_with(&want));
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap();
        }
    });
    // Without load: SIGHUP cuts connections, as it does in httpd.
    server.configure("answer gen8\nloops 1");
    take_over(server, Signal::SIGHUP);
    let is_new = |answer: String| answer.starts_with("gen8 ");
    server.wait_for("new answer", || server.ask("x").is_ok_and(is_new));
    server.wait_for("the old children's end", || server.children().len() == 2);
}

#[test]
fn restarts_in_quick_succession_end_with_the_last_configuration() {
    let mut server = Server::new("quick");
    server.start("answer first");
    for _ in 0..5 {
        server.signal(Signal::SIGUSR1);
    }
    server.configure("answer last");
    server.signal(Signal::SIGUSR1);
    server.wait_for("the last answer", || server.ask("x").unwrap().starts_with("last"));
    server.wait_for("the old children's end", || server.children().len() == 2);
}

#[test]
fn a_slow_old_child_does_not_hold_up_the_new_generation() {
    let mut server = Server::new("slow");
    server.start("answer old");
    let slow = server.ask_slowly();
    server.configure("answer new");
    server.signal(Signal::SIGUSR1);
    server.wait_for("the new answer", || server.ask("x").unwrap().starts_with("new"));
    assert!(slow.finish().starts_with("old"));
}

#[test]
fn a_dead_child_is_replaced_and_its_death_logged() {
    let mut server = Server::new("replace");
    server.start("answer one\nprocesses 1\nloops 1");
    let replaced = || {
        let victim = server.children()[0];
        let begun = Instant::now();
        kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
        // The supervisor holds the socket, so the connection waits for the successor.
        assert!(server.ask("x").unwrap().starts_with("one"));
        let took = begun.elapsed();
        server.wait_for_log(&format!("AH00052: child pid {victim} exit signal Killed (9)"));
        took
    };
    // A machine that stalls makes one of them late. A child that dies right after its start is
    // replaced after a pause, which gives the next one time.
    let is_prompt = (0..10).any(|_| {
        let is_prompt = replaced() < Duration::from_millis(500);
        thread::sleep(Duration::from_secs(1));
        is_prompt
    });
    assert!(is_prompt, "{}", server.log());
    let _ = server.ask("abort");
    server.wait_for_log("exit signal Abort (6)");
    assert!(server.ask("x").unwrap().starts_with("one"));
}

#[test]
fn a_child_with_a_loop_that_waits_for_ever_is_replaced() {
    let mut server = Server::new("deadlock");
    server.start("answer one\nprocesses 1\nloops 2\nstall_s 2");
    let stuck = server.children()[0];
    let mut client = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"deadlock").unwrap();
    // The process lives and otherwise works: its other loop turns, and its main thread waits for
    // orders.
    server.wait_for_log(&format!("AH20020: child pid {stuck}: loop "));
    server.wait_for_log(" s of CPU meanwhile); replacing it");
    server.wait_for("a successor", || server.children().iter().any(|pid| *pid != stuck));
    server.wait_for("its end", || !is_alive(stuck));
    assert!(server.ask("x").unwrap().starts_with("one"));
    let told = format!("AH20020: child pid {stuck}: ");
    assert_eq!(server.log().matches(&told).count(), 1, "{}", server.log());
    let mut answer = Vec::new();
    assert!(client.read_to_end(&mut answer).is_err() || answer.is_empty());
}

#[test]
fn children_finish_and_go_when_the_supervisor_is_killed() {
    let mut server = Server::new("orphan");
    server.start("answer one");
    let (pid, children) = (server.pid.unwrap(), server.children());
    let alive = || children.iter().filter(|pid| is_alive(**pid)).count();
    let slow = server.ask_slowly();
    server.signal(Signal::SIGKILL);
    server.wait_for("the end of the one that is idle", || alive() == 1);
    assert!(slow.finish().starts_with("one"));
    server.wait_for("the children's end", || alive() == 0);
    server.wait_for("the supervisor's end", || !is_alive(pid));
    // The pid file is left behind, and a new server takes it over.
    let order = send_to_running(&server.pid_file(), ServerOrder::Stop);
    assert!(matches!(order, Sent::NotRunning(_)), "{order:?}");
    server.start("answer two");
    assert!(server.ask("x").unwrap().starts_with("two"));
    server.wait_for_log("AH00098");
    server.stop();
}

#[test]
fn a_bad_configuration_leaves_the_old_one_serving() {
    let mut server = Server::new("bad");
    server.start("answer good");
    let children = server.children();
    server.configure("bogus 1");
    server.signal(Signal::SIGUSR1);
    server.wait_for_log("Invalid command 'bogus'");
    assert_eq!(server.children(), children);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    server.configure(&format!("listen {}\nanswer bad", taken.local_addr().unwrap()));
    server.signal(Signal::SIGHUP);
    server.wait_for_log("AH00072");
    assert_eq!(server.children(), children);
    // The sockets opened for its loops must be closed again: nothing would accept from them.
    server.configure("fatal 1\nloops 12");
    server.signal(Signal::SIGUSR1);
    server.wait_for_log("of the new configuration could not start");
    server.wait_for("the new children's end", || server.children() == children);
    assert!(server.ask("x").unwrap().starts_with("good"));
    // A dead child of the old generation is still replaced by one of the old generation.
    kill(Pid::from_raw(children[0]), Signal::SIGKILL).unwrap();
    server.wait_for("the replacement", || {
        let now = server.children();
        now.len() == 2 && now != children
    });
    for _ in 0..20 {
        assert!(server.ask("x").unwrap().starts_with("good"));
    }
    server.configure("answer better");
    server.signal(Signal::SIGUSR1);
    server.wait_for("the new answer", || server.ask("x").unwrap().starts_with("better"));
}

#[test]
fn listeners_are_added_and_removed_at_a_restart() {
    let mut server = Server::new("listen");
    let other = SocketAddr::from(([127, 0, 0, 1], free_port()));
    server.start(&format!("answer one\nlisten {other}"));
    TcpStream::connect(other).unwrap().shutdown(Shutdown::Both).unwrap();
    server.configure("answer two");
    server.signal(Signal::SIGUSR1);
    server.wait_for("the new answer", || server.ask("x").unwrap().starts_with("two"));
    let is_refused = |address: SocketAddr| {
        TcpStream::connect_timeout(&address, Duration::from_millis(100))
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    server.wait_for("the end of the removed listener", || is_refused(other));
    server.configure(&format!("answer three\nlisten {other}"));
    server.signal(Signal::SIGUSR1);
    server.wait_for("the listener's return", || TcpStream::connect(other).is_ok());
}

#[test]
fn a_graceful_stop_finishes_what_is_in_flight() {
    let mut server = Server::new("winch");
    server.start("answer one");
    let pid = server.pid.unwrap();
    let slow = server.ask_slowly();
    assert_eq!(send_to_running(&server.pid_file(), ServerOrder::GracefulStop), Sent::Done(pid));
    server.wait_for("the removal of the pid file", || !server.pid_file().exists());
    server.wait_for("the end of the child that is idle", || server.children().len() == 1);
    assert!(slow.finish().starts_with("one"));
    server.wait_for("the end", || !is_alive(pid));
    assert!(server.ask("x").is_err());
}

#[test]
fn a_graceful_stop_has_its_timeout_and_a_stubborn_child_is_killed() {
    let mut server = Server::new("stubborn");
    server.start("stubborn 1\ngraceful_ms 200\nprocesses 1\nloops 1");
    let pid = server.pid.unwrap();
    let begun = Instant::now();
    server.signal(Signal::SIGWINCH);
    server.wait_for("the end", || !is_alive(pid));
    assert!(begun.elapsed() >= mpm::supervisor::STOP_DEADLINE, "{:?}", begun.elapsed());
    server.wait_for_log("AH00046");
}

#[test]
fn exhausted_children_are_succeeded_without_loss() {
    let mut server = Server::new("exhausted");
    server.start("answer one\nconnections 5\nprocesses 1\nloops 1");
    let first = server.children();
    for _ in 0..40 {
        assert!(server.ask("x").unwrap().starts_with("one"));
    }
    server.wait_for("the end of the first child", || !is_alive(first[0]));
    assert!(server.ask("x").unwrap().starts_with("one"));
    assert!(!server.log().contains("AH00052"), "{}", server.log());
}

#[test]
fn a_piped_log_gets_every_line_even_when_its_reader_dies() {
    let mut server = Server::new("pipe");
    let out = server.directory.join("piped");
    // It may read to the end however long that takes: SIGTERM is sent after two seconds.
    server.start(&format!("answer one\npipe |$trap '' TERM; exec cat >> {}", out.display()));
    for _ in 0..10 {
        server.ask("x").unwrap();
    }
    let lines = || fs::read_to_string(&out).unwrap_or_default().lines().count();
    server.wait_for("ten lines", || lines() == 10);
    let reader = server.children().into_iter().find(|pid| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "cat")
    });
    kill(Pid::from_raw(reader.unwrap()), Signal::SIGKILL).unwrap();
    // A dying reader can still take a line with it.
    server.wait_for("the reader's death", || !is_alive(reader.unwrap()));
    for _ in 0..10 {
        server.ask("x").unwrap();
    }
    server.wait_for_log("AH00106: piped log program");
    server.signal(Signal::SIGUSR1);
    for _ in 0..10 {
        server.ask("x").unwrap();
    }
    server.stop();
    server.wait_for("thirty lines", || lines() >= 30);
    assert_eq!(lines(), 30, "{}", server.log());
}

#[test]
fn logs_are_reopened_under_their_names() {
    let mut server = Server::new("rotate");
    server.start("answer one");
    fs::rename(server.directory.join("log"), server.directory.join("log.1")).unwrap();
    server.signal(Signal::SIGUSR1);
    server.wait_for_log("AH00489");
    let old = fs::read_to_string(server.directory.join("log.1")).unwrap();
    assert!(old.contains("AH00493: SIGUSR1 received.  Doing graceful restart"), "{old}");
}

#[test]
fn children_drop_their_privileges() {
    if !nix::unistd::Uid::effective().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let mut server = Server::new("user");
    server.start("answer one\nuser 33\ngroup 33\nprocesses 1\nloops 1");
    assert!(server.ask("x").unwrap().ends_with("gid=33"), "{:?}", server.ask("x"));
    let status = fs::read_to_string(format!("/proc/{}/status", server.children()[0])).unwrap();
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("Uid:"), ["33"; 4]);
    assert_eq!(line("Gid:"), ["33"; 4]);
    assert_eq!(line("Groups:"), ["33"]);
    assert_eq!(line("CapEff:"), ["0000000000000000"]);
    // Signals are as in a fresh process: none blocked.
    assert_eq!(line("SigBlk:"), ["0000000000000000"]);
}
