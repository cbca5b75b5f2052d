//! The error log: levels, and who writes to it.

use std::fmt;

use conf::{Diagnostic, Severity};

use crate::host::Server;
use crate::module::Module;
use crate::request::Request;

/// `LogLevel`'s words, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// The system can't be used.
    Emerg,
    /// Act at once.
    Alert,
    /// Critical.
    Crit,
    /// An error.
    Error,
    /// A warning.
    Warn,
    /// Normal but worth knowing.
    Notice,
    /// For information.
    Info,
    /// For debugging.
    Debug,
    /// `trace1`
    Trace1,
    /// `trace2`
    Trace2,
    /// `trace3`
    Trace3,
    /// `trace4`
    Trace4,
    /// `trace5`
    Trace5,
    /// `trace6`
    Trace6,
    /// `trace7`
    Trace7,
    /// `trace8`
    Trace8,
}

impl Level {
    /// The word in the log and in `LogLevel`.
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; 16] = [
            "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug", "trace1",
            "trace2", "trace3", "trace4", "trace5", "trace6", "trace7", "trace8",
        ];
        NAMES[self as usize]
    }
}

impl Request {
    /// Writes a line to the error log of the request's host, if the module's level lets it.
    /// `number` is Apache's (`AH00128` is 128) where the event is the same; ours begin at 20000.
    pub fn log<M: Module>(&self, level: Level, number: u32, message: fmt::Arguments<'_>) {
        self.log_as(M::FILE, level, number, message);
    }

    /// Whether [`Request::log`] at this level would write.
    pub fn logs<M: Module>(&self, level: Level) -> bool {
        self.logs_as(M::FILE, level)
    }

    /// A line of the core's, about a path where there is one.
    pub fn log_core(&self, level: Level, number: u32, message: &str, path: Option<&[u8]>) {
        match path {
            Some(path) => {
                let path = bstr::BStr::new(path);
                self.log_as("core.c", level, number, format_args!("{message}: {path}"));
            }
            None => self.log_as("core.c", level, number, format_args!("{message}")),
        }
    }

    /// What is wrong with an `.htaccess` file.
    pub fn log_htaccess(&self, file: &[u8], found: &Diagnostic) {
        let level = match found.severity {
            Severity::Error => Level::Alert,
            Severity::Warning => Level::Warn,
        };
        let line = found.span.map_or(0, |span| span.line);
        let file = bstr::BStr::new(file);
        let message = &found.message;
        self.log_as("core.c", level, 526, format_args!("{file}: line {line}: {message}"));
    }

    fn logs_as(&self, _module: &str, level: Level) -> bool {
        level <= Level::Warn
    }

    fn log_as(&self, module: &str, level: Level, number: u32, message: fmt::Arguments<'_>) {
        if self.logs_as(module, level) {
            let peer = self.client.peer;
            eprintln!("[{module}:{}] [client {peer}] AH{number:05}: {message}", level.name());
        }
    }
}

/// A line in the main server's error log, about no request.
pub fn of_server(_server: &Server, level: Level, number: u32, message: fmt::Arguments<'_>) {
    if level <= Level::Warn {
        eprintln!("[core:{}] AH{number:05}: {message}", level.name());
    }
}

/// A line of the supervisor's; `server` is the configuration that serves, if there is one yet.
pub fn of_process(server: Option<&Server>, level: Level, number: u32, text: &str) {
    match server {
        Some(server) => of_server(server, level, number, format_args!("{text}")),
        None => eprintln!("[core:{}] AH{number:05}: {text}", level.name()),
    }
}
