//! What the supervisor asks of the program it runs.

use std::os::fd::OwnedFd;

use crate::child::Child;
use crate::logfile::LogOpener;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::shared::Shared;

/// The program under supervision. The supervisor calls every method from its one thread, as root
/// when it was started as root; [`Program::child`] alone runs elsewhere, in the forked child.
///
/// A program holds at most two configurations: the one that serves and the one that was loaded
/// for the next generation. The order of calls of one start or restart is `load`, `open_logs`,
/// `child` (in children of the new generation) and then either `commit` or `discard`. A child
/// of the old generation can be forked between `load` and `commit`, to replace one that died:
/// [`Child::generation`] says which configuration it is to serve.
///
/// No method but `child` may start a thread.
pub trait Program {
    /// Reads and checks the whole configuration for `generation` (1 at start). A failure at
    /// start ends the program, a failure at a restart leaves the old generation serving.
    fn load(&mut self, generation: u32, shared: &Shared) -> Result<Settings, LoadFailure>;

    /// Opens (at a restart: reopens) the logs of the configuration that was loaded last. Called
    /// after the listeners are bound and before the children are forked; children inherit what
    /// is opened here. The descriptors of the generation before stay open until `commit`.
    fn open_logs(&mut self, opener: &mut LogOpener<'_>) -> Result<Logs, LoadFailure>;

    /// All children of `generation` are ready: its configuration is now the one that serves, and
    /// what belonged to the one before may be dropped.
    fn commit(&mut self, generation: u32);

    /// The generation came to nothing after `load` succeeded: the configuration loaded last is
    /// dropped, the old one goes on serving.
    fn discard(&mut self, generation: u32);

    /// Runs in the child, after its signals were reset and its privileges dropped; makes its
    /// runtime itself. Returns the process's exit status.
    ///
    /// In [`Mode::OneProcess`](crate::Mode::OneProcess) it runs in the process itself.
    fn child(&mut self, child: Child) -> i32;

    /// Writes a line to the server's error log. `number` is the message's number, Apache's where
    /// the event is the same (52 is `AH00052`), 0 for none. Before the first `open_logs`
    /// it goes to standard error.
    fn log(&mut self, level: Level, number: u32, text: &str);

    /// The text of the server's version line for "… configured -- resuming normal operations".
    fn banner(&self) -> String;

    /// The last child is gone and the server ends: drop every
    /// [`PipeWriter`](crate::pipes::PipeWriter). Otherwise the readers of piped logs never see
    /// their end of file, and are sent SIGTERM after
    /// [`READER_END_DEADLINE`](crate::pipes::READER_END_DEADLINE). `log` may still be called.
    fn close_logs(&mut self) {}

    /// What another executable is to know that takes over (`-k upgrade`), and can read nowhere.
    fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    /// What [`secrets`](Self::secrets) said in the image before. Called before the first `load`,
    /// if there is anything.
    fn take_secrets(&mut self, _secrets: Secrets) {}

    /// Called about once a minute from the supervisor: rotate TLS ticket keys and the like.
    fn maintain(&mut self, _shared: &Shared) {}
}

/// What [`Program::open_logs`] gives the supervisor.
#[derive(Debug, Default)]
pub struct Logs {
    /// The main error log, which becomes the standard error of the supervisor and of its
    /// children, as Apache does. `None` leaves standard error alone (a log to syslog, or
    /// [`Mode::Foreground`](crate::Mode::Foreground) with the log on standard error).
    pub standard_error: Option<OwnedFd>,
}

/// Severity of a log line, Apache's words.
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

/// Why a start or restart can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LoadFailure {
    /// Lines to show: on standard error at start, in the error log at a restart.
    pub text: String,
    /// Exit status of the program when this happens at start. Apache's is 1.
    pub status: i32,
}

impl LoadFailure {
    /// A failure with Apache's exit status, 1.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: 1 }
    }
}
