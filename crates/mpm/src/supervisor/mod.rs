//! The supervisor: one thread, one poll loop, no requests.
//!
//! [`run`] starts it. `turn` waits and dispatches; `generation` loads configurations and hands over
//! from one to the next; `children` forks and watches, `deaths` reaps; `companions` forks the
//! children's companions; `spare` maintains the reserve of idle threads, `full` reports when it
//! can't; `single` is `-X`; `upgrade` is `-k upgrade`, and `inheritance` what one executable hands
//! over to the next; `watchdog` detects loops that hang, and `forks` handles processes that can't
//! be started.

mod adapt;
mod children;
mod companions;
mod deaths;
mod executable;
mod forks;
mod full;
mod generation;
mod inheritance;
mod signals;
mod single;
mod spare;
mod turn;
mod upgrade;
mod watchdog;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::affinity::{Placement, Roots};
use crate::child::Order;
use crate::daemon::{self, Detached, Starter};
use crate::listeners::{BindFailure, Listeners};
use crate::logfile::LogOpener;
use crate::notify;
use crate::pidfile::{PidFile, Written};
use crate::pipes::PipedLogs;
use crate::privileges::raise_descriptor_limit;
use crate::program::{Level, LoadFailure, Logs, Program};
use crate::reserve::Reserves;
use crate::scoreboard::Scoreboard;
use crate::settings::{Mode, Settings};
use crate::shared::Shared;
use children::ChildRecord;
use companions::Companions;
use forks::ForkLog;
use full::FullLog;
use generation::Generation;
use inheritance::Role;
use signals::Signals;
pub(crate) use signals::reset_in_companion;
use upgrade::Upgrade;
use watchdog::Watchdog;

pub use inheritance::is_executed_by_server;

/// A child that is still running this long after an order to stop is killed.
pub const STOP_DEADLINE: Duration = Duration::from_secs(3);
/// How long removed listeners drain their queues before the children that accept from them are
/// ordered to finish: enough for a handshake in progress.
pub const DRAIN_DELAY: Duration = Duration::from_millis(200);
/// How often [`Program::maintain`] is called.
pub const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);
/// The initial scoreboard has room for this many generations of processes.
const GENERATIONS_ON_BOARD: usize = 4;
/// The least number of processes that the scoreboard has room for, so that a restart may plan more.
const BOARD_PROCESSES_MIN: usize = 64;
/// The least number of loops per process that the scoreboard has room for.
const BOARD_LOOPS_MIN: usize = 64;

/// Supervises `program` until it is ordered to stop. Returns the exit status of the process.
///
/// Must be called while the process has one thread. Messages for the caller of the program go to
/// standard error.
pub fn run(program: &mut dyn Program, mode: Mode) -> i32 {
    match inheritance::role() {
        Ok(Role::Starter) => {}
        Ok(Role::Trial) => return upgrade::try_out(program),
        Ok(Role::Successor(left)) => return upgrade::succeed(program, left),
        Err(error) => {
            eprintln!("can't take over from the running server: {error}");
            return 1;
        }
    }
    let shared = Shared::new();
    let settings = match program.load(1, &shared) {
        Ok(settings) => settings,
        Err(failure) => {
            eprintln!("{}", failure.text.trim_end());
            return failure.status;
        }
    };
    let starter = match mode {
        Mode::Detach => match daemon::detach() {
            Ok(Detached::Parent(status)) => return status,
            Ok(Detached::Daemon(starter)) => Some(starter),
            Err(error) => {
                eprintln!("could not detach from the terminal: {error}");
                return 1;
            }
        },
        Mode::Foreground | Mode::OneProcess => None,
    };
    match Supervisor::new(program, shared, settings, starter) {
        Ok(supervisor) if mode == Mode::OneProcess => supervisor.serve_alone(),
        Ok(supervisor) => supervisor.supervise(),
        Err(failure) => {
            if !failure.text.is_empty() {
                eprintln!("{}", failure.text.trim_end());
            }
            failure.status
        }
    }
}

/// A server that is shutting down.
struct Stopping {
    /// Children finish their connections.
    is_graceful: bool,
    /// When the remaining children are stopped, or killed.
    deadline: Option<Instant>,
}

struct Supervisor<'p> {
    program: &'p mut dyn Program,
    shared: Shared,
    board: Scoreboard,
    reserves: Reserves,
    full: FullLog,
    listeners: Listeners,
    pipes: PipedLogs,
    companions: Companions,
    signals: Signals,
    /// Which process or loop runs on which CPU.
    placement: Placement,
    pid_file: Option<PidFile>,
    /// Reports the start of the first generation to the waiting parent; `None` afterwards.
    starter: Option<Starter>,
    /// The terminal's standard error, for a start that fails after the error log has replaced it.
    terminal: Option<OwnedFd>,
    /// The serving generation. `None` until the first one is ready.
    current: Option<Generation>,
    /// The generation that will take over.
    staged: Option<Generation>,
    children: Vec<ChildRecord>,
    last_generation: u32,
    /// A restart ordered while another was in progress.
    pending: Option<Order>,
    /// When the supervisor closes its handles to removed listeners.
    close_retired_at: Option<Instant>,
    maintain_at: Instant,
    stopping: Option<Stopping>,
    upgrade: Upgrade,
    watchdog: Watchdog,
    forks: ForkLog,
    /// The exit status, once known.
    exit: Option<i32>,
}

impl<'p> Supervisor<'p> {
    /// Binds, writes the pid file and opens the logs of the first generation, whose configuration
    /// is already loaded.
    fn new(
        program: &'p mut dyn Program,
        shared: Shared,
        settings: Settings,
        starter: Option<Starter>,
    ) -> Result<Self, LoadFailure> {
        let board = make_board(Some(&settings))
            .map_err(|error| LoadFailure::new(no_board(&settings, &error)))?;
        let mut supervisor = Self::bare(program, shared, board)?;
        supervisor.listeners = Listeners::new();
        let prepared = supervisor.listeners.prepare(&settings);
        prepared.map_err(|failures| bind_failure(&failures))?;
        if settings.listeners.is_empty() {
            return Err(LoadFailure::new("no listening sockets available, shutting down"));
        }
        let (pid_file, is_over_stale) = write_pid_file(&settings)?;
        supervisor.pid_file = Some(pid_file);
        supervisor.starter = starter;
        supervisor.terminal = io::stderr().as_fd().try_clone_to_owned().ok();
        supervisor.staged = Some(Generation::new(1, Arc::new(settings), Order::Graceful));
        supervisor.last_generation = 1;
        supervisor.upgrade = Upgrade::new();
        if let Err(failure) = supervisor.open_first_logs() {
            supervisor.remove_pid_file();
            supervisor.tell_terminal(&failure.text);
            return Err(LoadFailure { text: String::new(), ..failure });
        }
        supervisor.log_start(is_over_stale);
        if let Some(settings) = supervisor.staged.as_ref().map(|staged| staged.settings.clone()) {
            supervisor.count_hosts(&settings);
        }
        Ok(supervisor)
    }

    /// A supervisor without listeners, logs and generations.
    fn bare(
        program: &'p mut dyn Program,
        shared: Shared,
        board: Scoreboard,
    ) -> Result<Self, LoadFailure> {
        let signals = Signals::block()
            .map_err(|error| LoadFailure::new(format!("can't block signals: {error}")))?;
        let reserves =
            Reserves::new().map_err(|error| LoadFailure::new(format!("scoreboard: {error}")))?;
        Ok(Self {
            program,
            shared,
            board,
            reserves,
            full: FullLog::default(),
            listeners: Listeners::default(),
            pipes: PipedLogs::default(),
            companions: Companions::default(),
            signals,
            placement: Placement::new(Roots::default()),
            pid_file: None,
            starter: None,
            terminal: None,
            current: None,
            staged: None,
            children: Vec::new(),
            last_generation: 0,
            pending: None,
            close_retired_at: None,
            maintain_at: Instant::now() + MAINTENANCE_INTERVAL,
            stopping: None,
            upgrade: Upgrade::default(),
            watchdog: Watchdog::new(),
            forks: ForkLog::default(),
            exit: None,
        })
    }

    fn open_first_logs(&mut self) -> Result<(), LoadFailure> {
        let logs = self.open_logs(1)?;
        use_standard_error(&logs);
        if self.starter.is_some() {
            // From here on failures are reported through `terminal`.
            let _ = daemon::close_terminal(logs.standard_error.is_some());
        }
        self.pipes.start_all().map_err(|text| {
            LoadFailure::new(format!("AH00089: Couldn't start piped log process {text}"))
        })?;
        match self.staged.as_ref().map(|staged| staged.settings.clone()) {
            Some(settings) => self.start_companions(1, &settings),
            None => Ok(()),
        }
    }

    fn open_logs(&mut self, generation: u32) -> Result<Logs, LoadFailure> {
        let mut opener = LogOpener { pipes: &mut self.pipes, generation };
        self.program.open_logs(&mut opener)
    }

    fn log_start(&mut self, is_over_stale: bool) {
        if is_over_stale && let Some(pid_file) = &self.pid_file {
            let path = pid_file.path().display();
            let text = format!("pid file {path} overwritten -- Unclean shutdown of previous run?");
            self.program.log(Level::Warning, 98, &text);
        }
        if let Err(error) = raise_descriptor_limit() {
            let text = format!("the limit on open files could not be raised: {error}");
            self.program.log(Level::Warning, 0, &text);
        }
    }

    /// Announces that the first generation serves: to the log, the waiting parent and systemd.
    fn announce(&mut self) {
        let banner = self.program.banner();
        let text = format!("{banner} configured -- resuming normal operations");
        self.program.log(Level::Notice, 489, &text);
        let command: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let text = format!("Command line: '{}'", command.join(" "));
        self.program.log(Level::Notice, 94, &text);
        self.terminal = None;
        if let Some(starter) = self.starter.take() {
            starter.started();
        }
        notify::ready(std::process::id(), "Serving");
    }

    /// Ends a failed start, and reports it to the log and the terminal.
    fn fail_start(&mut self, text: &str) {
        self.program.log(Level::Emergency, 0, text);
        self.tell_terminal(text);
        self.stop(false);
        self.exit = Some(1);
    }

    /// Writes to the standard error that the program was started with.
    fn tell_terminal(&self, text: &str) {
        if let Some(terminal) = &self.terminal {
            let _ = rustix::io::write(terminal, format!("{}\n", text.trim_end()).as_bytes());
        }
    }

    fn remove_pid_file(&mut self) {
        if let Some(pid_file) = self.pid_file.take() {
            let path = pid_file.path().display().to_string();
            if pid_file.remove().is_ok() {
                let text = format!("removed PID file {path} (pid={})", std::process::id());
                self.program.log(Level::Info, 96, &text);
            }
        }
    }
}

fn bind_failure(failures: &[BindFailure]) -> LoadFailure {
    let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
    LoadFailure::new(format!(
        "{}\nno listening sockets available, shutting down\nAH00015: Unable to open logs",
        lines.join("\n")
    ))
}

fn write_pid_file(settings: &Settings) -> Result<(PidFile, bool), LoadFailure> {
    let path = &settings.pid_file;
    match PidFile::write(path) {
        Ok(Written::Fresh(pid_file)) => Ok((pid_file, false)),
        Ok(Written::OverStale(pid_file)) => Ok((pid_file, true)),
        Ok(Written::AlreadyRunning(pid)) => {
            Err(LoadFailure::new(format!("httpd (pid {pid}) already running")))
        }
        Err(text) => Err(LoadFailure::new(text)),
    }
}

fn make_board(settings: Option<&Settings>) -> io::Result<Scoreboard> {
    let (processes, loops) = settings.map_or((0, 0), |settings| {
        let shape = settings.shape;
        (shape.processes().max(settings.server_limit), shape.loops_per_process())
    });
    let processes = processes.max(BOARD_PROCESSES_MIN);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let loops = loops.max(BOARD_LOOPS_MIN).max(cpus);
    Scoreboard::new(processes.saturating_mul(GENERATIONS_ON_BOARD), loops)
}

fn no_board(settings: &Settings, error: &io::Error) -> String {
    let processes = settings.shape.processes().max(settings.server_limit);
    format!(
        "no shared memory for a scoreboard of {processes} processes (ServerLimit): {error}. Lower \
         ServerLimit, or give the server more memory"
    )
}

/// Makes the error log the standard error, as httpd does, so that what a child or a program it runs
/// writes there is not lost.
fn use_standard_error(logs: &Logs) {
    if let Some(log) = &logs.standard_error {
        let _ = nix::unistd::dup2_stderr(log);
    }
}
