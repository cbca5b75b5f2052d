//! The smallest supervised program: it responds to every connection with a fixed line. The tests of
//! this crate run it, because a test's own process has threads and must not fork.
//!
//! Usage: `supervised CONFIGURATION detach|foreground|single`. The configuration has one `key
//! value` per line; see where it is read for the meaning of the keys.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mpm::pipes::{PipeSpec, PipeWriter};
use mpm::{
    AcceptFilter, Child, Control, Identity, Level, ListenAddress, Listener, LoadFailure, LoopSpec,
    Mode, Order, Program, Settings, Shape, Shared,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long to wait for a client to send something.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mode = match arguments.get(2).map(String::as_str) {
        Some("detach") => Mode::Detach,
        Some("single") => Mode::OneProcess,
        _ => Mode::Foreground,
    };
    let Some(path) = arguments.get(1) else { std::process::exit(2) };
    let mut program = Answering { path: path.into(), log: None, configurations: BTreeMap::new() };
    std::process::exit(mpm::run(&mut program, mode));
}

struct Answering {
    path: PathBuf,
    log: Option<OwnedFd>,
    configurations: BTreeMap<u32, Configuration>,
}

#[derive(Default)]
struct Configuration {
    keys: Vec<(String, String)>,
    pipe: Option<PipeWriter>,
}

impl Configuration {
    fn value(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.parse().ok()
    }

    fn settings(&self) -> Result<Settings, LoadFailure> {
        let listeners = self
            .keys
            .iter()
            .filter(|(name, _)| name == "listen")
            .map(|(_, value)| {
                let address: SocketAddr =
                    value.parse().map_err(|_| LoadFailure::new("bad address"))?;
                Ok(Listener {
                    address: ListenAddress::Socket(address),
                    protocol: "http".into(),
                    backlog: 511,
                    accept_filter: AcceptFilter::None,
                    send_buffer_bytes: 0,
                    receive_buffer_bytes: 0,
                })
            })
            .collect::<Result<_, LoadFailure>>()?;
        let id = |key| self.number(key).and_then(|id| u32::try_from(id).ok());
        Ok(Settings {
            listeners,
            identity: id("user").zip(id("group")).map(|(user, group)| Identity {
                user,
                group,
                groups: vec![group],
            }),
            chroot: None,
            core_dump_directory: None,
            pid_file: self.value("pid").unwrap_or("/nonexistent").into(),
            shape: Shape::Event {
                processes: self.number("processes").unwrap_or(2) as usize,
                loops: self.number("loops").unwrap_or(2) as usize,
            },
            server_limit: 8,
            graceful_shutdown_timeout: self.number("graceful_ms").map(Duration::from_millis),
            stall_limit: self.number("stall_s").map(Duration::from_secs),
            max_connections_per_child: self.number("connections").unwrap_or(0),
            counted_hosts: Vec::new(),
            extended_status: false,
            spare: None,
            listener_buckets: 1,
            admitted: usize::MAX,
            nearly_admitted: usize::MAX,
            blocking_threads: 1,
            thread_stack_bytes: None,
            affinity: Default::default(),
            companions: Vec::new(),
        })
    }
}

impl Program for Answering {
    fn load(&mut self, generation: u32, _: &Shared) -> Result<Settings, LoadFailure> {
        let text = fs::read_to_string(&self.path)
            .map_err(|error| LoadFailure::new(format!("no configuration: {error}")))?;
        let keys: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        if keys.iter().any(|(key, _)| key == "bogus") {
            return Err(LoadFailure::new("Invalid command 'bogus'"));
        }
        let configuration = Configuration { keys, pipe: None };
        let settings = configuration.settings()?;
        self.configurations.insert(generation, configuration);
        Ok(settings)
    }

    fn open_logs(
        &mut self,
        opener: &mut mpm::logfile::LogOpener<'_>,
    ) -> Result<mpm::Logs, LoadFailure> {
        let failed = |error: std::io::Error| LoadFailure::new(error.to_string());
        let Some(entry) = self.configurations.last_entry() else { return Ok(Default::default()) };
        let configuration = entry.into_mut();
        if let Some(spec) = configuration.value("pipe").and_then(|t| PipeSpec::parse(t.as_bytes()))
        {
            configuration.pipe = Some(opener.pipe(&spec).map_err(failed)?);
        }
        if let Some(path) = configuration.value("log") {
            self.log = Some(opener.file(Path::new(path)).map_err(failed)?);
        }
        Ok(mpm::Logs { standard_error: self.log.as_ref().and_then(|log| log.try_clone().ok()) })
    }

    fn commit(&mut self, generation: u32) {
        self.configurations.retain(|number, _| *number == generation);
    }

    fn discard(&mut self, generation: u32) {
        self.configurations.remove(&generation);
    }

    fn child(&mut self, child: Child) -> i32 {
        let mut configurations = std::mem::take(&mut self.configurations);
        let configuration = configurations.remove(&child.generation).unwrap_or_default();
        drop(configurations);
        serve(child, configuration)
    }

    fn log(&mut self, level: Level, number: u32, text: &str) {
        let line = format!("[{level:?}] AH{number:05}: {text}\n");
        match &self.log {
            Some(log) => drop(rustix::io::write(log, line.as_bytes())),
            None => eprint!("{line}"),
        }
    }

    fn close_logs(&mut self) {
        self.configurations.clear();
    }

    fn banner(&self) -> String {
        "Answering/1".to_owned()
    }
}

/// The state shared by the loops of a process.
struct Process {
    answer: String,
    pipe: Option<PipeWriter>,
    is_draining: AtomicBool,
    accepted: AtomicU64,
    limit: u64,
    control: Control,
}

fn serve(child: Child, configuration: Configuration) -> i32 {
    if configuration.value("fatal").is_some() {
        return mpm::CHILD_FATAL;
    }
    if configuration.value("crash").is_some() {
        std::process::abort();
    }
    let answer = configuration.value("answer").unwrap_or("none");
    let is_stubborn = configuration.value("stubborn").is_some();
    let process = Arc::new(Process {
        answer: format!("{answer} pid={} gid={}", std::process::id(), rustix::process::getegid()),
        pipe: configuration.pipe,
        is_draining: AtomicBool::new(false),
        accepted: AtomicU64::new(0),
        limit: child.settings.max_connections_per_child,
        control: child.control.clone(),
    });
    let mut threads = Vec::new();
    for spec in child.loops {
        let process = Arc::clone(&process);
        threads.push(std::thread::spawn(move || run_loop(spec, &process)));
    }
    child.control.report_ready();
    if is_stubborn {
        std::thread::sleep(Duration::from_secs(600));
    }
    loop {
        match child.control.wait_order(Some(Duration::from_millis(20))) {
            Some(Order::Stop) => return 0,
            Some(Order::Graceful | Order::Leave) => {
                process.is_draining.store(true, Ordering::Relaxed)
            }
            None => {}
        }
        if threads.iter().all(std::thread::JoinHandle::is_finished) {
            return 0;
        }
        if child.control.is_orphan() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn run_loop(spec: LoopSpec, process: &Process) {
    loop {
        // Read before the queue is emptied: connections that arrive in between must be accepted.
        let is_draining = process.is_draining.load(Ordering::Relaxed);
        for socket in &spec.sockets {
            while let Ok((connection, _)) = socket.socket.accept() {
                spec.slot.add_accepted(1);
                answer(connection, process);
                spec.slot.request_end(1, 1);
                if process.accepted.fetch_add(1, Ordering::Relaxed) + 1 == process.limit {
                    process.control.exhausted();
                }
            }
        }
        if is_draining {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        spec.slot.heartbeat(now.as_micros() as u64);
        let mut polled: Vec<PollFd<'_>> = spec
            .sockets
            .iter()
            .map(|socket| PollFd::from_borrowed_fd(socket.socket.as_fd(), PollFlags::IN))
            .collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = poll(&mut polled, Some(&timeout));
    }
}

fn answer(mut connection: TcpStream, process: &Process) {
    let mut request = [0u8; 256];
    let _ = connection.set_nonblocking(false);
    // A slow client may be heard late; a silent one must be let go.
    let _ = connection.set_read_timeout(Some(PATIENCE));
    let count = match connection.read(&mut request) {
        Ok(count) => count,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(_) => return,
    };
    if request[..count].starts_with(b"slow") {
        // Signals that it has begun, and ends when the client says so.
        let _ = connection.write_all(b".");
        let _ = connection.read(&mut request);
    }
    if request[..count].starts_with(b"abort") {
        std::process::abort();
    }
    if request[..count].starts_with(b"deadlock") {
        // Blocks forever: there is no second thread.
        Barrier::new(2).wait();
    }
    let _ = connection.write_all(process.answer.as_bytes());
    if let Some(pipe) = &process.pipe {
        pipe.write(b"answered\n");
    }
}
