//! The program as the supervisor runs it, and the orders of `-k`.

use std::sync::Arc;

use mpm::logfile::LogOpener;
use mpm::order::{Sent, ServerOrder};
use mpm::{Child, Level, LoadFailure, Logs, Mode, Program, Settings, Shared};
use server::host::Server;

use crate::cli::Arguments;
use crate::load::{self, Loaded};
use crate::{about, child, dump, settings};

/// The configurations that there are: the one that serves, and the one that may be next.
struct Tamarack {
    name: String,
    source: Source,
    serving: Option<(u32, Arc<Server>)>,
    next: Option<(u32, Arc<Server>)>,
}

/// Where configurations come from.
pub enum Source {
    /// The files that the command line names.
    Files(Box<Arguments>),
    /// A folder to serve, as a configuration text of our own.
    Text(Box<dyn Fn() -> Loaded>),
}

/// Serves until told to stop; the exit status.
pub fn start(name: &str, arguments: &Arguments, mode: Mode) -> i32 {
    run(name, Source::Files(Box::new(arguments.clone())), mode)
}

/// Serves what `source` says.
pub fn run(name: &str, source: Source, mode: Mode) -> i32 {
    let mut program = Tamarack { name: name.to_owned(), source, serving: None, next: None };
    mpm::run(&mut program, mode)
}

/// Tells a running server (`-k`); the exit status.
pub fn signal(name: &str, arguments: &Arguments, order: ServerOrder) -> i32 {
    let loaded = load::load(arguments, false);
    let Some(server) = &loaded.server else {
        dump::report(name, &loaded);
        return 1;
    };
    match mpm::order::send_to_running(&settings::pid_file(server), order) {
        Sent::Done(_) => 0,
        Sent::NotRunning(text) => {
            println!("{text}");
            0
        }
        Sent::StartInstead(text) => {
            println!("{text}");
            start(name, arguments, Mode::Detach)
        }
        Sent::Failed(text) => {
            eprintln!("{name}: {text}");
            1
        }
    }
}

impl Tamarack {
    fn server(&self, generation: u32) -> Option<Arc<Server>> {
        let of = |held: &Option<(u32, Arc<Server>)>| {
            held.as_ref().filter(|(g, _)| *g == generation).map(|(_, server)| server.clone())
        };
        of(&self.next).or_else(|| of(&self.serving))
    }

    fn read(&self) -> Loaded {
        match &self.source {
            Source::Files(arguments) => load::load(arguments, true),
            Source::Text(read) => read(),
        }
    }
}

impl Program for Tamarack {
    fn load(&mut self, generation: u32, shared: &Shared) -> Result<Settings, LoadFailure> {
        let loaded = self.read();
        let text = dump::diagnostics(&self.name, &loaded);
        let Some(server) = loaded.server else { return Err(LoadFailure::new(text)) };
        if !text.is_empty() {
            eprintln!("{text}");
        }
        server.share(shared).map_err(LoadFailure::new)?;
        let settings = settings::of(&server).map_err(LoadFailure::new)?;
        self.next = Some((generation, server));
        Ok(settings)
    }

    fn open_logs(&mut self, opener: &mut LogOpener<'_>) -> Result<Logs, LoadFailure> {
        let Some((_, server)) = &self.next else { return Ok(Logs::default()) };
        server.sinks.open(opener).map_err(|(target, error)| {
            LoadFailure::new(format!(
                "(2)AH00091: {}: could not open log file {target}: {error}.\nAH00015: Unable to \
                 open logs",
                self.name
            ))
        })?;
        Ok(Logs { standard_error: server.main_error_log() })
    }

    fn commit(&mut self, _generation: u32) {
        self.serving = self.next.take().or_else(|| self.serving.take());
    }

    fn discard(&mut self, _generation: u32) {
        self.next = None;
    }

    fn child(&mut self, child: Child) -> i32 {
        match self.server(child.generation) {
            Some(server) => child::run(server, child),
            None => mpm::CHILD_FATAL,
        }
    }

    fn log(&mut self, level: Level, number: u32, text: &str) {
        let held = self.serving.as_ref().or(self.next.as_ref());
        let server = held.map(|(_, server)| server.as_ref());
        server::log::of_process(server, severity(level), number, text);
    }

    fn banner(&self) -> String {
        format!("Tamarack/{} ({})", env!("CARGO_PKG_VERSION"), about::FOLLOWS)
    }
}

fn severity(level: Level) -> server::log::Level {
    use server::log::Level as Word;
    match level {
        Level::Emergency => Word::Emerg,
        Level::Alert => Word::Alert,
        Level::Critical => Word::Crit,
        Level::Error => Word::Error,
        Level::Warning => Word::Warn,
        Level::Notice => Word::Notice,
        Level::Info => Word::Info,
        Level::Debug => Word::Debug,
    }
}
