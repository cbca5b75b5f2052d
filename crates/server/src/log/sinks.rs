//! Targets of log lines: files, pipes, syslog, standard error.
//!
//! Directives register targets while the configuration is read; the supervisor opens each distinct
//! one once, as root; children inherit the descriptors and write. If a write fails (a full disk, a
//! broken pipe), the line is dropped and counted: serving continues.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use mpm::logfile::LogOpener;
use mpm::pipes::{PipeSpec, PipeWriter};
use rustix::io::Errno;

/// A configured log target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A file, absolute.
    File(PathBuf),
    /// A program that reads lines.
    Pipe(PipeSpec),
    /// `syslog[:facility[:tag]]`: facility number, tag.
    Syslog(u8, String),
    /// Standard error.
    StandardError,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File(path) => write!(f, "{}", path.display()),
            Target::Pipe(pipe) => write!(f, "|{}", pipe.display()),
            Target::Syslog(_, tag) => write!(f, "syslog:{tag}"),
            Target::StandardError => f.write_str("standard error"),
        }
    }
}

/// A target's index in [`Sinks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SinkId(u32);

impl SinkId {
    /// The index of the target.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Targets in their order. Each virtual host can have its own.
#[derive(Default)]
struct Targets {
    all: Vec<Target>,
    ids: HashMap<Target, SinkId>,
}

/// All targets of a configuration, which the supervisor opens.
#[derive(Default)]
pub struct Sinks {
    targets: Mutex<Targets>,
    open: OnceLock<Vec<Sink>>,
}

impl Sinks {
    /// Registers a target; equal targets are registered once.
    pub fn register(&self, target: Target) -> SinkId {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let Targets { all, ids } = &mut *targets;
        *ids.entry(target).or_insert_with_key(|target| {
            all.push(target.clone());
            SinkId(u32::try_from(all.len() - 1).unwrap_or(u32::MAX))
        })
    }

    /// Opens all of them, in the supervisor.
    ///
    /// The error is the target that can't be opened, and why.
    pub fn open(&self, opener: &mut LogOpener<'_>) -> Result<(), (Target, io::Error)> {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner).all.clone();
        let mut sinks = Vec::with_capacity(targets.len());
        for target in targets {
            let sink = Sink::open(&target, opener).map_err(|error| (target.clone(), error))?;
            sinks.push(sink);
        }
        let _ = self.open.set(sinks);
        Ok(())
    }

    /// An open sink; `None` before they are opened.
    pub fn get(&self, id: SinkId) -> Option<&Sink> {
        self.open.get()?.get(id.index())
    }

    /// Writes a line to a sink, or to the standard error if it is not open.
    pub(crate) fn write(&self, id: Option<SinkId>, line: &[u8], severity: u8) {
        id.and_then(|id| self.get(id)).unwrap_or(&Sink::StandardError).write(line, severity);
    }

    /// The target of a sink.
    pub fn target(&self, id: SinkId) -> Option<Target> {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.all.get(id.index()).cloned()
    }
}

/// An open target.
pub enum Sink {
    /// A file opened for appending.
    File(OwnedFd),
    /// A pipe.
    Pipe(PipeWriter),
    /// The system's log.
    Syslog(Syslog),
    /// Standard error.
    StandardError,
}

thread_local! {
    static DROPPED: Cell<u64> = const { Cell::new(0) };
}

/// The number of lines that this thread has dropped since the last call.
pub fn take_dropped() -> u64 {
    DROPPED.replace(0)
}

impl Sink {
    fn open(target: &Target, opener: &mut LogOpener<'_>) -> io::Result<Sink> {
        Ok(match target {
            Target::File(path) => Sink::File(opener.file(path)?),
            Target::Pipe(spec) => Sink::Pipe(opener.pipe(spec)?),
            Target::Syslog(facility, tag) => Sink::Syslog(Syslog::new(*facility, tag)),
            Target::StandardError => Sink::StandardError,
        })
    }

    /// The descriptor of a file or pipe, for a process's standard error.
    pub fn try_clone_fd(&self) -> Option<OwnedFd> {
        match self {
            Sink::File(fd) => fd.try_clone().ok(),
            Sink::Pipe(pipe) => pipe.try_clone().ok().map(OwnedFd::from),
            Sink::Syslog(_) | Sink::StandardError => None,
        }
    }

    /// Most bytes that do not mix with another process's: PIPE_BUF for a pipe.
    pub fn atomic_bytes(&self) -> usize {
        match self {
            Sink::Pipe(_) => 4096,
            Sink::File(_) | Sink::Syslog(_) | Sink::StandardError => usize::MAX,
        }
    }

    /// Writes whole lines, in one call if possible. `severity` is for syslog.
    pub fn write(&self, lines: &[u8], severity: u8) {
        let written = match self {
            Sink::File(fd) => write_all(fd, lines),
            Sink::Pipe(pipe) => pipe.write(lines),
            Sink::Syslog(syslog) => syslog.write(lines, severity),
            Sink::StandardError => write_all(rustix::stdio::stderr(), lines),
        };
        if !written {
            let lost = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
            DROPPED.set(DROPPED.get() + lost.max(1));
        }
    }
}

fn write_all(fd: impl std::os::fd::AsFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(&fd, bytes) {
            Ok(0) => return false,
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

/// The local syslog socket (RFC 3164, as understood by `/dev/log`).
pub struct Syslog {
    facility: u8,
    tag: String,
    socket: OnceLock<Option<std::os::unix::net::UnixDatagram>>,
}

impl Syslog {
    fn new(facility: u8, tag: &str) -> Syslog {
        Syslog { facility, tag: tag.to_owned(), socket: OnceLock::new() }
    }

    fn write(&self, lines: &[u8], severity: u8) -> bool {
        let socket = self.socket.get_or_init(|| {
            let socket = std::os::unix::net::UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            socket.connect("/dev/log").ok()?;
            Some(socket)
        });
        let Some(socket) = socket else { return false };
        let priority = u32::from(self.facility) * 8 + u32::from(severity.min(7));
        let pid = std::process::id();
        lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).all(|line| {
            let mut message = format!("<{priority}>{}[{pid}]: ", self.tag).into_bytes();
            message.extend_from_slice(line);
            socket.send(&message).is_ok()
        })
    }
}
