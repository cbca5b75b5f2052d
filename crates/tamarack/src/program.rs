//! The program as the supervisor runs it, and the `-k` signals.

use std::io::IsTerminal;
use std::sync::Arc;

use modules::loggers::mod_log_forensic;
use modules::mpm::{Kind, Numbers};
use modules::ssl::mod_ssl;
use mpm::logfile::LogOpener;
use mpm::order::{Sent, ServerOrder};
use mpm::{Child, Level, LoadFailure, Logs, Mode, Program, Secrets, Settings, Shared};
use rt::{SharedCache, Watcher};
use server::host::Server;
use server::log::LogLevels;
use server::sinks::Target;

use crate::cli::Arguments;
use crate::load::{self, Loaded};
use crate::{about, child, dump, settings, startup};

/// The configurations: the current one, and a candidate for the next one.
struct Tamarack {
    name: String,
    source: Source,
    serving: Option<(u32, Arc<Server>)>,
    next: Option<(u32, Arc<Server>)>,
    /// The file watch, which all processes share: a user has few inotify instances. Made before the
    /// first process is forked; `None` if there is no instance left, or no configuration yet.
    watcher: Option<Arc<Watcher>>,
    /// The findings of the first configuration, which also go into its error log.
    found: String,
}

/// The source of configurations.
pub enum Source {
    /// The files that the command line names.
    Files(Box<Arguments>),
    /// A folder to serve, by a generated configuration.
    Text(Box<dyn Fn() -> Loaded>),
}

/// Serves until a signal stops it, and returns the exit status.
pub fn start(name: &str, arguments: &Arguments, mode: Mode) -> i32 {
    run(name, Source::Files(Box::new(arguments.clone())), mode)
}

/// Does nothing if a server with this pid file is running (`-k start`).
pub fn start_once(name: &str, arguments: &Arguments, mode: Mode) -> i32 {
    // Startup itself reports warnings.
    let loaded = load::load(name, arguments);
    let Some(server) = &loaded.server else {
        dump::report(name, arguments.least_level(), &loaded);
        return 1;
    };
    match mpm::order::already_running(&settings::pid_file(server)) {
        Ok(Some(text)) => {
            println!("{text}");
            0
        }
        Ok(None) => start(name, arguments, mode),
        Err(text) => {
            eprintln!("{text}");
            1
        }
    }
}

/// Serves the configuration of `source`.
pub fn run(name: &str, source: Source, mode: Mode) -> i32 {
    let mut program = Tamarack {
        name: name.to_owned(),
        source,
        serving: None,
        next: None,
        watcher: None,
        found: String::new(),
    };
    mpm::run(&mut program, mode)
}

/// Signals a running server (`-k`), and returns the exit status.
pub fn signal(name: &str, arguments: &Arguments, order: ServerOrder, mode: Mode) -> i32 {
    let loaded = load::load(name, arguments);
    let Some(server) = &loaded.server else {
        dump::report(name, arguments.least_level(), &loaded);
        return 1;
    };
    let sent = mpm::order::send_to_running(&settings::pid_file(server), order);
    if !matches!(sent, Sent::StartInstead(_)) {
        dump::report(name, arguments.least_level(), &loaded);
    }
    match sent {
        Sent::Done(_) => 0,
        Sent::NotRunning(text) => {
            println!("{text}");
            0
        }
        Sent::StartInstead(text) => {
            println!("{text}");
            start(name, arguments, mode)
        }
        Sent::Failed(text) => {
            eprintln!("{name}: {text}");
            1
        }
        Sent::Corrupt(text) => {
            eprintln!("{text}");
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

    /// Lets modules keep things of the serving configuration in files.
    fn save(&self) {
        let Some((_, server)) = &self.serving else { return };
        for hook in server.registry.hooks.saved() {
            if let Err(why) = hook(server) {
                server.log("core.c", server::log::Level::Error, 0, format_args!("{why}"));
            }
        }
    }

    fn read(&self) -> Loaded {
        match &self.source {
            Source::Files(arguments) => {
                load::load_to_serve(&self.name, arguments, self.serving.is_some())
            }
            Source::Text(read) => read(),
        }
    }

    fn least_level(&self) -> server::log::Level {
        match &self.source {
            Source::Files(arguments) => arguments.least_level(),
            Source::Text(_) => LogLevels::DEFAULT,
        }
    }

    /// httpd's messages for a log that can't be opened.
    fn no_log(&self, server: &Server, target: &Target, error: &std::io::Error) -> LoadFailure {
        let is_error_log = server.hosts.iter().any(|host| {
            let id = host.core.error_log.get();
            id.and_then(|id| server.sinks.target(*id)).as_ref() == Some(target)
        });
        let (cause, name) = (startup::cause(error), &self.name);
        let what = if is_error_log {
            format!("AH00091: {name}: could not open error log file")
        } else if mod_log_forensic::is_log(server, target) {
            "AH00651: could not open forensic log file".to_owned()
        } else {
            "AH00649: could not open transfer log file".to_owned()
        };
        LoadFailure::new(format!("{cause}: {what} {target}.\nAH00015: Unable to open logs"))
    }
}

/// Redirects standard error to a configuration's error log. A child that is forked before its
/// generation takes over has the previous log.
fn use_error_log(server: &Server) {
    if let Some(log) = server.main_error_log() {
        let _ = rustix::stdio::dup2_stderr(&log);
    }
}

impl Program for Tamarack {
    fn load(&mut self, generation: u32, shared: &Shared) -> Result<Settings, LoadFailure> {
        self.save();
        let loaded = self.read();
        let shown = |drawn| dump::diagnostics(&self.name, self.least_level(), &loaded, drawn);
        let text = shown(std::io::stderr().is_terminal());
        // Later configurations are read with the error log as standard error.
        if self.serving.is_none() {
            let lines = shown(false);
            let lines = lines.lines().filter(|line| !startup::is_for_the_terminal(line));
            self.found = lines.collect::<Vec<_>>().join("\n");
        }
        let Some(server) = loaded.server else { return Err(LoadFailure::new(text)) };
        if !text.is_empty() {
            eprintln!("{text}");
        }
        server.share(shared).map_err(LoadFailure::new)?;
        let settings = settings::of(&server).map_err(LoadFailure::new)?;
        if settings.shape.blocks_in_place() {
            // Without it, each thread fills its own cache.
            let _ = SharedCache::new().map(|cache| server.shared_responses.set(cache));
        }
        self.next = Some((generation, server));
        if self.watcher.is_none() {
            self.watcher = Watcher::new().ok().map(Arc::new);
        }
        Ok(settings)
    }

    fn open_logs(&mut self, opener: &mut LogOpener<'_>) -> Result<Logs, LoadFailure> {
        let Some((_, server)) = &self.next else { return Ok(Logs::default()) };
        let opened = server.sinks.open(opener);
        opened.map_err(|(target, error)| self.no_log(server, &target, &error))?;
        let log = server.main_error_log();
        if let Some(log) = log.as_ref().filter(|_| !self.found.is_empty()) {
            let _ = rustix::io::write(log, format!("{}\n", self.found).as_bytes());
        }
        self.found.clear();
        server.call(server.registry.hooks.logs_opened());
        Ok(Logs { standard_error: log })
    }

    fn commit(&mut self, _generation: u32) {
        self.serving = self.next.take().or_else(|| self.serving.take());
    }

    fn discard(&mut self, _generation: u32) {
        self.next = None;
    }

    fn child(&mut self, child: Child) -> i32 {
        let Some(server) = self.server(child.generation) else { return mpm::CHILD_FATAL };
        // Drop the other generation, above all its logs, whose readers must see end of file.
        self.next = None;
        self.serving = Some((child.generation, server.clone()));
        use_error_log(&server);
        child::run(server, child, self.watcher.take())
    }

    fn companion(&mut self, generation: u32) {
        let server = self.server(generation);
        // Drop the other generation, above all its logs, whose readers must see end of file.
        self.next = None;
        self.watcher = None;
        if let Some(server) = &server {
            use_error_log(server);
        }
        self.serving = server.map(|server| (generation, server));
    }

    fn log(&mut self, level: Level, number: u32, text: &str) {
        let held = self.serving.as_ref().or(self.next.as_ref());
        let server = held.map(|(_, server)| server.as_ref());
        // Without a configuration there is no LogLevel.
        if server.is_some() || level <= Level::Notice {
            let kind = server.and_then(Numbers::of).map(|(kind, _)| kind);
            server::errorlog::of_process(server, severity(level), own_number(kind, number), text);
        }
    }

    fn close_logs(&mut self) {
        let is_piped = |server: &Server| {
            let id = server.main().core.error_log.get();
            matches!(id.and_then(|id| server.sinks.target(*id)), Some(Target::Pipe(_)))
        };
        let held = self.serving.take().or_else(|| self.next.take());
        self.next = None;
        // Standard error is the main log's pipe, and would keep its reader waiting.
        if held.is_some_and(|(_, server)| is_piped(&server))
            && let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null")
        {
            let _ = rustix::stdio::dup2_stderr(&null);
        }
    }

    fn secrets(&self) -> Secrets {
        Secrets::new(mod_ssl::kept_keys())
    }

    fn take_secrets(&mut self, secrets: Secrets) {
        mod_ssl::adopt_keys(secrets.as_bytes());
    }

    fn child_ended(&mut self, pid: u32) {
        if let Some((_, server)) = self.serving.as_ref().or(self.next.as_ref()) {
            server.registry.hooks.child_ended().iter().for_each(|hook| hook(pid));
        }
    }

    fn ended(&mut self) {
        self.save();
    }

    fn maintain(&mut self, shared: &Shared) {
        if let Some((_, server)) = &self.serving {
            server.maintain(shared);
        }
    }

    fn banner(&self) -> String {
        format!("Tamarack/{} ({})", env!("CARGO_PKG_VERSION"), about::FOLLOWS)
    }
}

/// Maps the supervisor's message numbers, which are those of Apache's event, to the other MPMs'.
fn own_number(kind: Option<Kind>, number: u32) -> u32 {
    /// The numbers of event, worker and prefork.
    const NUMBERS: [[u32; 3]; 6] = [
        [481, 283, 159],
        [489, 292, 163],
        [491, 295, 169],
        [492, 296, 170],
        [493, 297, 171],
        [494, 298, 173],
    ];
    let Some([_, worker, prefork]) = NUMBERS.iter().find(|[event, ..]| *event == number) else {
        return number;
    };
    match kind {
        Some(Kind::Worker) => *worker,
        Some(Kind::Prefork) => *prefork,
        Some(Kind::Event | Kind::Loop) | None => number,
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
