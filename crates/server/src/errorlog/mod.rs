//! The error log: how requests, connections and the server write a line.
//!
//! Manual: core, `ErrorLog` and `ErrorLogFormat`. Source: server/log.c.

mod cause;
mod facts;
mod htaccess;
mod item;
mod line;
mod verbatim;

use std::fmt;
use std::io::Write;
use std::ops::RangeInclusive;

use messages::Message;

use crate::api::module::Module;
use crate::config::host::{Host, Server};
use crate::explain::{Event, Kind};
use crate::log::{Level, MPM, fresh_log_id};
use crate::request::Request;
use crate::request::connection_info::ConnectionInfo;
use crate::request::variant_key::Inputs;

use line::{About, Entry};

pub use cause::Cause;
pub use facts::Facts;
pub use verbatim::Verbatim;

impl Request {
    /// Writes a line to the error log of the request's host, if the module's level lets it.
    /// `number` is Apache's (`AH00128` is 128) where the event is the same, else a [`Message`]'s.
    #[track_caller]
    pub fn log<M: Module>(&self, level: Level, number: u32, message: fmt::Arguments<'_>) {
        self.log_as(M::FILE, level, number, message);
    }

    /// The same for a message that may not be UTF-8.
    #[track_caller]
    pub fn log_bytes<M: Module>(&self, level: Level, number: u32, message: &[u8]) {
        self.write_log(M::FILE, level, number, None, || message.to_vec());
    }

    /// [`Request::log`] for a failed system call.
    #[track_caller]
    pub fn log_error<M: Module>(
        &self,
        level: Level,
        number: u32,
        error: impl Into<Cause>,
        message: fmt::Arguments<'_>,
    ) {
        self.write_log(M::FILE, level, number, Some(error.into()), || composed(message));
    }

    /// Whether [`Request::log`] would write at this level.
    pub fn logs<M: Module>(&self, level: Level) -> bool {
        self.logs_as(M::FILE, level)
    }

    /// Logs a line of the core's, with a path if there is one.
    #[track_caller]
    pub fn log_core(&self, level: Level, number: u32, message: &str, path: Option<&[u8]>) {
        match path {
            Some(path) => {
                let path = Verbatim::new(path);
                self.log_as("core.c", level, number, format_args!("{message}: {path}"));
            }
            None => self.log_as("core.c", level, number, format_args!("{message}")),
        }
    }

    /// The same for a failed operation.
    #[track_caller]
    pub fn log_core_error(
        &self,
        level: Level,
        number: u32,
        error: rustix::io::Errno,
        message: fmt::Arguments<'_>,
    ) {
        self.write_log("core.c", level, number, Some(error.into()), || composed(message));
    }

    /// The identifier in log lines (`%L`), created by the first line that describes the request.
    pub fn log_id(&self) -> Option<&[u8]> {
        self.log_mark.get().map(|id| &**id)
    }

    /// Has the module that makes identifiers, if there is one, give the request its own
    /// (`ap_run_generate_log_id`).
    pub fn generate_log_id(&self) {
        if self.engine.server.registry.hooks.log_id.is_some() {
            self.mark_log_id();
        }
    }

    /// Gives the request an identifier for log lines; returns false if it has one.
    pub(crate) fn mark_log_id(&self) -> bool {
        if self.log_mark.get().is_some() {
            return false;
        }
        let make = self.engine.server.registry.hooks.log_id;
        let id = make.map_or_else(|| fresh_log_id().to_vec(), |make| make(self));
        self.log_mark.set(id.into()).is_ok()
    }

    fn logs_as(&self, module: &str, level: Level) -> bool {
        level <= self.plan.core.log.of(module)
    }

    /// Like [`Request::log`], for a module by its `FILE`.
    #[track_caller]
    pub fn log_as(&self, module: &str, level: Level, number: u32, message: fmt::Arguments<'_>) {
        self.write_log(module, level, number, None, || composed(message));
    }

    /// [`Request::log_as`] for a failed operation.
    #[track_caller]
    pub fn log_error_as(
        &self,
        module: &str,
        level: Level,
        number: u32,
        error: &std::io::Error,
        message: fmt::Arguments<'_>,
    ) {
        let error = rustix::io::Errno::from_io_error(error);
        self.write_log(module, level, number, error.map(Cause::from), || composed(message));
    }

    /// Logs an event of the request as one of its host: as in Apache at a few places, the line does
    /// not name the client.
    #[track_caller]
    pub fn log_of_host<M: Module>(&self, level: Level, number: u32, message: fmt::Arguments<'_>) {
        self.log_of_host_as(M::FILE, level, number, message);
    }

    /// The same for a module by its `FILE`.
    #[track_caller]
    fn log_of_host_as(&self, module: &str, level: Level, number: u32, message: fmt::Arguments<'_>) {
        if self.engine.recorder.is_some() {
            return self.log_as(module, level, number, message);
        }
        // The line is wanted for each request.
        self.looks_at(Inputs::ONCE);
        self.engine.server.log_host(&self.host, module, level, number, message);
    }

    #[track_caller]
    fn write_log(
        &self,
        module: &str,
        level: Level,
        number: u32,
        error: Option<Cause>,
        message: impl FnOnce() -> Vec<u8>,
    ) {
        if !self.logs_as(module, level) {
            return;
        }
        if let Some(recorder) = &self.engine.recorder {
            self.looks_at(Inputs::ONCE);
            if recorder.is_measuring() {
                return;
            }
            let message = message();
            let message = String::from_utf8_lossy(&message);
            let text = match error {
                Some(error) => format!("{error}: {message}"),
                None => message.into_owned(),
            };
            let number = if number > 0 { format!("AH{number:05}") } else { String::new() };
            let line = Event::new(Kind::Log, text).came_to(level.name()).with("number", number);
            return recorder.add(line.with("module", module));
        }
        // The line is wanted for each request.
        self.looks_at(Inputs::ONCE);
        let server = &self.engine.server;
        let about = About {
            host: &self.host,
            client: Some(&self.connection),
            request: Some(self),
            facts: None,
        };
        emit(server, &about, module, level, number, error, &message());
    }
}

impl Server {
    /// Logs a line about a connection to the log of the host that its address selects.
    #[track_caller]
    pub fn log_connection(
        &self,
        client: &ConnectionInfo,
        module: &str,
        level: Level,
        number: u32,
        message: fmt::Arguments<'_>,
    ) {
        self.log_connection_error(client, module, level, number, None, message);
    }

    /// The same for something that failed.
    #[track_caller]
    pub fn log_connection_error(
        &self,
        client: &ConnectionInfo,
        module: &str,
        level: Level,
        number: u32,
        error: Option<Cause>,
        message: fmt::Arguments<'_>,
    ) {
        let host = &client.base_host;
        if level <= host.core.log.of(module) {
            let about = About { host, client: Some(client), request: None, facts: None };
            emit(self, &about, module, level, number, error, &composed(message));
        }
    }

    /// The same with a message that need not be UTF-8.
    #[track_caller]
    pub fn log_connection_bytes(
        &self,
        client: &ConnectionInfo,
        module: &str,
        level: Level,
        number: u32,
        message: &[u8],
    ) {
        let host = &client.base_host;
        if level <= host.core.log.of(module) {
            let about = About { host, client: Some(client), request: None, facts: None };
            emit(self, &about, module, level, number, None, message);
        }
    }

    /// Logs a line about a client to the log of one of its hosts, after its request.
    #[track_caller]
    pub fn log_client(
        &self,
        (host, client, facts): (&Host, &ConnectionInfo, Option<&Facts>),
        module: &str,
        level: Level,
        number: u32,
        error: Option<Cause>,
        message: &[u8],
    ) {
        if level <= host.core.log.of(module) {
            let about = About { host, client: Some(client), request: None, facts };
            emit(self, &about, module, level, number, error, message);
        }
    }

    /// Logs a line about the whole server to the main log.
    #[track_caller]
    pub fn log(&self, module: &str, level: Level, number: u32, message: fmt::Arguments<'_>) {
        self.log_host(self.main(), module, level, number, message);
    }

    /// Logs a line about a host to its log.
    #[track_caller]
    pub fn log_host(
        &self,
        host: &Host,
        module: &str,
        level: Level,
        number: u32,
        message: fmt::Arguments<'_>,
    ) {
        self.log_host_error(host, module, level, number, None::<Cause>, message);
    }

    /// The same for a failed system call.
    #[track_caller]
    pub fn log_host_error(
        &self,
        host: &Host,
        module: &str,
        level: Level,
        number: u32,
        error: Option<impl Into<Cause>>,
        message: fmt::Arguments<'_>,
    ) {
        // As in Apache, messages of startup and shutdown are logged whatever the level.
        if level <= host.core.log.of(module) || level == Level::Notice {
            let about = About { host, client: None, request: None, facts: None };
            let error = error.map(Into::into);
            emit(self, &about, module, level, number, error, &composed(message));
        }
    }
}

/// Logs a line without a request to the main server's error log.
#[track_caller]
pub fn of_server(server: &Server, level: Level, number: u32, message: fmt::Arguments<'_>) {
    server.log("core.c", level, number, message);
}

/// The supervisor's messages that belong to Apache's core instead of its MPM: the command line, pid
/// files, piped logs, processes that died or were killed.
const CORE_EVENTS: [u32; 10] = [46, 50, 51, 52, 94, 96, 98, 99, 104, 106];

/// Where a loop runs and what is sent to it: the same in every MPM.
const PLACEMENT: RangeInclusive<u32> =
    Message::Widened.number()..=Message::AffinityUnheeded.number();

/// Programs of `RewriteMap`.
const OF_MAPS: [u32; 3] =
    [653, Message::MapProgramEnded.number(), Message::MapProgramFaulty.number()];

/// Logs a line of the supervisor; `server` is the current configuration, if there is one.
pub fn of_process(server: Option<&Server>, level: Level, number: u32, text: &str) {
    match server {
        Some(server) => {
            let is_mpm = |file: &&str| server.registry.is_active(file);
            let mpm = MPM_FILES.iter().copied().find(is_mpm).unwrap_or("event.c");
            let module = match number {
                number if PLACEMENT.contains(&number) => MPM,
                2155..=2162 => "mod_unixd.c",
                number if OF_MAPS.contains(&number) => "mod_rewrite.c",
                _ if CORE_EVENTS.contains(&number) => "core.c",
                _ => mpm,
            };
            server.log(module, level, number, format_args!("{text}"));
        }
        None if number == 0 => eprintln!("[core:{}] {text}", level.name()),
        None => eprintln!("[core:{}] AH{number:05}: {text}", level.name()),
    }
}

/// The MPMs, one of which is active.
const MPM_FILES: [&str; 4] = ["event.c", "worker.c", "prefork.c", "loop.c"];

#[track_caller]
fn emit(
    server: &Server,
    about: &About<'_>,
    module: &str,
    level: Level,
    number: u32,
    error: Option<Cause>,
    message: &[u8],
) {
    let known = server.registry.modules().iter().find(|known| known.file() == module);
    let name = known.map_or(module, |known| known.name());
    let module = name.strip_suffix("_module").unwrap_or(name);
    let caller = std::panic::Location::caller();
    let source = Some((caller.file(), caller.line()));
    let entry = Entry { level, module, number, error, source, message };
    line::write(server, about, &entry);
}

fn composed(message: fmt::Arguments<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = text.write_fmt(message);
    verbatim::bytes(text)
}
