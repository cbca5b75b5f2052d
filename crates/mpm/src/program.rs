//! What the supervisor requires of the program it runs.

use std::os::fd::OwnedFd;

use crate::child::Child;
use crate::logfile::LogOpener;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::shared::Shared;

/// The supervised program. The supervisor calls every method from its only thread, as root if it
/// was started as root; only [`Program::child`] runs elsewhere, in the forked child.
///
/// A program holds at most two configurations: the serving one and the one loaded for the next
/// generation. A start or restart calls `load`, `open_logs`, `child` (in children of the new
/// generation) and then either `commit` or `discard`. Between `load` and `commit` a child of the
/// old generation can be forked, to replace one that died: [`Child::generation`] says which
/// configuration to serve.
///
/// Only `child` may start threads.
pub trait Program {
    /// Reads and checks the whole configuration for `generation` (1 at start). A failure at start
    /// ends the program; a failure at a restart leaves the old generation serving.
    fn load(&mut self, generation: u32, shared: &Shared) -> Result<Settings, LoadFailure>;

    /// Opens (at a restart: reopens) the logs of the configuration loaded last. Called after the
    /// listeners are bound and before children are forked; children inherit the descriptors. Those
    /// of the previous generation stay open until `commit`.
    fn open_logs(&mut self, opener: &mut LogOpener<'_>) -> Result<Logs, LoadFailure>;

    /// All children of `generation` are ready: its configuration is now the serving one, and the
    /// state of the previous one may be dropped.
    fn commit(&mut self, generation: u32);

    /// The generation failed after `load` succeeded: drop the configuration loaded last; the old
    /// one continues to serve.
    fn discard(&mut self, generation: u32);

    /// Runs in the child, after its signals were reset and its privileges dropped; creates its own
    /// runtime. Returns the process's exit status.
    ///
    /// In [`Mode::OneProcess`](crate::Mode::OneProcess) it runs in the process itself.
    fn child(&mut self, child: Child) -> i32;

    /// Prepares a forked companion of `generation`: drops the other configuration, and logs to that
    /// generation's error log.
    fn companion(&mut self, _generation: u32) {}

    /// Writes a line to the server's error log. `number` is the message's number, Apache's where
    /// the event is the same (52 is `AH00052`), 0 for none. Before the first `open_logs` the line
    /// goes to standard error.
    fn log(&mut self, level: Level, number: u32, text: &str);

    /// The text of the server's version line for "… configured -- resuming normal operations".
    fn banner(&self) -> String;

    /// The last child is gone and the server ends: drop every
    /// [`PipeWriter`](crate::pipes::PipeWriter). Otherwise the readers of piped logs never see end
    /// of file, and are sent SIGTERM after
    /// [`READER_END_DEADLINE`](crate::pipes::READER_END_DEADLINE). `log` may still be called.
    fn close_logs(&mut self) {}

    /// What a successor (`-k upgrade`) must know but can read nowhere.
    fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    /// Receives the predecessor's [`secrets`](Self::secrets). Called before the first `load`, if
    /// there are any.
    fn take_secrets(&mut self, _secrets: Secrets) {}

    /// A child has ended, however it did. What it shared with others may need its mark removed.
    fn child_ended(&mut self, _pid: u32) {}

    /// The last child is gone and the server ends: what is to outlive it can be kept in files.
    fn ended(&mut self) {}

    /// Called about once a minute by the supervisor, for work such as rotating TLS ticket keys.
    fn maintain(&mut self, _shared: &Shared) {}
}

/// The result of [`Program::open_logs`].
#[derive(Debug, Default)]
pub struct Logs {
    /// The main error log, which becomes the standard error of the supervisor and its children, as
    /// in Apache. `None` leaves standard error alone (a log to syslog, or
    /// [`Mode::Foreground`](crate::Mode::Foreground) with the log on standard error).
    pub standard_error: Option<OwnedFd>,
}

/// Severity of a log line, in Apache's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The server can't be used.
    Emergency,
    /// Action must be taken at once.
    Alert,
    /// Critical condition.
    Critical,
    /// Error.
    Error,
    /// Warning.
    Warning,
    /// Normal, but worth a line.
    Notice,
    /// For information.
    Info,
    /// For debugging.
    Debug,
}

/// Why a start or restart failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LoadFailure {
    /// Lines for standard error at start, and for the error log at a restart.
    pub text: String,
    /// Exit status of the program if this happens at start. Apache's is 1.
    pub status: i32,
}

impl LoadFailure {
    /// A failure with Apache's exit status, 1.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: 1 }
    }
}

/// A system error in the format of `ap_log_error`: `(2)No such file or directory`.
pub fn cause(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("({number}){}", nix::errno::Errno::from_raw(number).desc()),
        None => error.to_string(),
    }
}
