//! `-k upgrade` (SIGUSR2): another executable takes over without interrupting any connection.
//!
//! The supervisor tries the new executable first: a separate process reads the configuration with
//! it and reports the result. Then the supervisor executes it in its own process. The process id
//! stays the same, so systemd, the pid file and a waiting parent see no change, and the children
//! remain its children. The new executable adopts them as the previous generation, with the
//! listening sockets and the shared memory, and retires them when its own children are ready. If
//! these do not become ready, it executes its predecessor again.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use messages::Message;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::pipe::{PipeFlags, pipe_with};

use super::deaths::Death;
use super::executable::{self, Identity};
use super::inheritance::{
    self, HandedChild, HandoffManifest, Inheritance, NextExecutable, VERSION,
};
use super::{Supervisor, make_board};
use crate::child::Order;
use crate::listeners::Listeners;
use crate::notify;
use crate::pidfile::PidFile;
use crate::program::{Level, LoadFailure, Program};
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::shared::Shared;

/// A trial that takes longer is killed, and the executable rejected.
const TRIAL_DEADLINE: Duration = Duration::from_secs(60);
/// The longest report of a trial that is read.
const REPORT_BYTES_MAX: u64 = 16 << 10;

/// The state of an upgrade.
#[derive(Default)]
enum Step {
    #[default]
    None,
    /// Requested while something else is in progress.
    Wanted,
    /// The new executable is on trial.
    Trying(Trial),
    /// The trial has passed: hand over once nothing else is in progress, with the program's secrets
    /// if the trial has said that it takes them. Only to this file, not to a later one at its path.
    Approved { tried: Identity, takes_secrets: bool },
    /// This is the new executable, and the previous generation still serves.
    TakingOver,
    /// It has failed: execute the predecessor again.
    Returning,
}

struct Trial {
    pid: Pid,
    report: File,
    kill_at: Option<Instant>,
    tried: Identity,
}

/// The supervisor's state for upgrades.
#[derive(Default)]
pub(super) struct Upgrade {
    step: Step,
    /// Requested again while an upgrade was in progress; the executable may be another by then.
    is_wanted_again: bool,
    /// The path of the executable, if known.
    executable: Option<PathBuf>,
    /// The previous executable, until this one serves.
    predecessor: Option<OwnedFd>,
    /// It handed over secrets, so it also takes them.
    predecessor_takes_secrets: bool,
    /// Only children of the predecessor serve: there is no configuration to start others with.
    pub is_successor: bool,
}

impl Upgrade {
    pub(super) fn new() -> Self {
        Self { executable: executable::path(), ..Self::default() }
    }

    pub(super) fn next_turn(&self) -> Option<Instant> {
        match &self.step {
            Step::Trying(trial) => trial.kill_at,
            _ => None,
        }
    }
}

/// Runs a trial: reads the configuration and reports the outcome on standard output.
pub(super) fn try_out(program: &mut dyn Program) -> i32 {
    // Detached from the terminal: asking for a pass phrase there is a failure.
    let _ = nix::unistd::setsid();
    receive(program, io::stdin().as_fd());
    let (text, status) = match program.load(1, &Shared::new()) {
        Ok(_) => (format!("{TAKES_SECRETS}\n{}", greeting()), 0),
        Err(failure) => (failure.text, 1),
    };
    match writeln!(io::stdout(), "{}", text.trim_end()) {
        Ok(()) => status,
        Err(_) => 1,
    }
}

/// Passes the predecessor's secrets to the program.
fn receive(program: &mut dyn Program, pipe: BorrowedFd<'_>) {
    let secrets = Secrets::from_pipe(pipe);
    if !secrets.is_empty() {
        program.take_secrets(secrets);
    }
}

/// The line by which a trial says that it takes secrets.
const TAKES_SECRETS: &str = "tamarack: takes secrets";

/// The line by which a trial says that it can take over.
fn greeting() -> String {
    format!("tamarack: ready to take over, version {VERSION}")
}

/// Runs the successor; returns the exit status of the process.
pub(super) fn succeed(program: &mut dyn Program, mut left: Inheritance) -> i32 {
    let number = left.generation.saturating_add(1);
    let takes_secrets = left.secrets.is_some();
    if let Some(pipe) = left.secrets.take() {
        receive(program, pipe.as_fd());
    }
    let shared = Shared::adopt(std::mem::take(&mut left.regions));
    let loaded = program.load(number, &shared);
    match Supervisor::adopt(program, shared, loaded.as_ref().ok(), left) {
        Ok(mut supervisor) => {
            supervisor.last_generation = number;
            supervisor.upgrade.predecessor_takes_secrets = takes_secrets;
            let staged = loaded
                .and_then(|settings| supervisor.stage_loaded(number, settings, Order::Graceful));
            if let Err(failure) = staged {
                supervisor.reject(&failure);
                supervisor.successor_failed();
            }
            supervisor.supervise()
        }
        Err(failure) => {
            eprintln!("{}", failure.text.trim_end());
            failure.status
        }
    }
}

impl<'p> Supervisor<'p> {
    fn adopt(
        program: &'p mut dyn Program,
        shared: Shared,
        settings: Option<&Settings>,
        left: Inheritance,
    ) -> Result<Self, LoadFailure> {
        let failed = |error: io::Error| LoadFailure::new(format!("can't take over: {error}"));
        let board = make_board(settings).map_err(failed)?;
        let mut supervisor = Self::bare(program, shared, board)?;
        supervisor.listeners = Listeners::adopt(left.groups, left.spare);
        supervisor.pid_file = left.pid_file.map(|(path, file)| PidFile::adopt(path, file));
        supervisor.upgrade = Upgrade {
            step: Step::TakingOver,
            is_wanted_again: false,
            executable: Some(left.executable),
            predecessor: left.predecessor,
            predecessor_takes_secrets: false,
            is_successor: true,
        };
        for child in left.children {
            supervisor.adopt_child(child);
        }
        Ok(supervisor)
    }

    /// Handles SIGUSR2.
    pub(super) fn want_upgrade(&mut self) {
        let text = "SIGUSR2 received.  Trying the new executable";
        self.program.log(Level::Notice, Message::UpgradeTried.number(), text);
        match self.upgrade.step {
            Step::None => self.upgrade.step = Step::Wanted,
            _ => self.upgrade.is_wanted_again = true,
        }
    }

    /// Takes the next step if nothing else is in progress.
    pub(super) fn continue_upgrade(&mut self, now: Instant) {
        let is_quiet = self.staged.is_none() && self.close_retired_at.is_none();
        match &mut self.upgrade.step {
            Step::Trying(trial) if trial.kill_at.is_some_and(|at| at <= now) => {
                trial.kill_at = None;
                let _ = kill(trial.pid, Signal::SIGKILL);
            }
            _ if self.stopping.is_some() => {}
            Step::Wanted => self.begin_trial(now),
            Step::Approved { tried, takes_secrets } if is_quiet => {
                let (tried, takes_secrets) = (*tried, *takes_secrets);
                self.hand_over(tried, takes_secrets);
            }
            Step::Returning if is_quiet => self.return_to_predecessor(),
            Step::None if self.upgrade.is_wanted_again => {
                self.upgrade.is_wanted_again = false;
                self.begin_trial(now);
            }
            _ => {}
        }
    }

    fn begin_trial(&mut self, now: Instant) {
        let Some(executable) = self.upgrade.executable.clone() else {
            self.refuse_upgrade("its path is unknown");
            return;
        };
        match start_trial(&executable, self.program.secrets(), now) {
            Ok(trial) => self.upgrade.step = Step::Trying(trial),
            Err(error) => self.refuse_upgrade(&error.to_string()),
        }
    }

    /// Records the end of a process; returns whether it was a trial.
    pub(super) fn trial_ended(&mut self, pid: Pid, death: Death) -> bool {
        match &self.upgrade.step {
            Step::Trying(trial) if trial.pid == pid => {}
            _ => return false,
        }
        let Step::Trying(trial) = std::mem::take(&mut self.upgrade.step) else { return true };
        let mut report = Vec::new();
        // The pipe doesn't block, and contains everything that the trial wrote.
        let _ = (&trial.report).take(REPORT_BYTES_MAX).read_to_end(&mut report);
        let report = String::from_utf8_lossy(&report).into_owned();
        let is_able = death == Death::Exit(0) && report.lines().any(|line| line == greeting());
        if is_able {
            let takes_secrets = report.lines().any(|line| line == TAKES_SECRETS);
            self.upgrade.step = Step::Approved { tried: trial.tried, takes_secrets };
            return true;
        }
        for line in report.lines().filter(|line| !line.trim().is_empty()) {
            self.program.log(Level::Error, 0, line);
        }
        let why = match death {
            Death::Exit(0) => "it can't take over from a running server".to_owned(),
            Death::Exit(status) => format!("its trial exited with status {status}"),
            Death::Signal(..) if trial.kill_at.is_none() => {
                format!("its trial took longer than {} s", TRIAL_DEADLINE.as_secs())
            }
            Death::Signal(signal, _) => format!("its trial was killed by {signal}"),
        };
        self.refuse_upgrade(&why);
        true
    }

    fn refuse_upgrade(&mut self, why: &str) {
        self.upgrade.step = Step::None;
        let text = format!(
            "executable {} can't be used: {why}; still serving with the running one",
            self.executable_name()
        );
        self.program.log(Level::Error, Message::UpgradeRefused.number(), &text);
    }

    fn executable_name(&self) -> String {
        self.upgrade.executable.as_deref().unwrap_or(Path::new("")).display().to_string()
    }

    /// Executes the new executable, unless the file has changed since its trial. Returns only on
    /// failure.
    fn hand_over(&mut self, tried: Identity, takes_secrets: bool) {
        let Some(executable) = self.upgrade.executable.clone() else { return };
        if Identity::of(&executable).ok() != Some(tried) {
            self.begin_trial(Instant::now());
            return;
        }
        let text = format!("handing over to executable {}", executable.display());
        self.program.log(Level::Notice, Message::UpgradeHandsOver.number(), &text);
        notify::reloading();
        // Without it, a new executable that fails has nothing to roll back to.
        let own = File::open("/proc/self/exe").ok();
        let successor = NextExecutable::Path(&executable);
        let error = self.execute(&successor, own.as_ref().map(AsFd::as_fd), takes_secrets);
        self.refuse_upgrade(&error.to_string());
        notify::ready(std::process::id(), "Serving: the new executable can't be used");
    }

    /// Rolls back to the previous executable.
    fn return_to_predecessor(&mut self) {
        self.upgrade.step = Step::None;
        let Some(predecessor) = self.upgrade.predecessor.take() else { return };
        let takes_secrets = self.upgrade.predecessor_takes_secrets;
        let error = self.execute(&NextExecutable::File(predecessor.as_fd()), None, takes_secrets);
        let text = format!(
            "can't roll back to the previous executable ({error}); its processes continue to serve \
             until the next restart"
        );
        self.program.log(Level::Alert, Message::RollbackFailed.number(), &text);
    }

    fn execute(
        &self,
        successor: &NextExecutable<'_>,
        predecessor: Option<BorrowedFd<'_>>,
        takes_secrets: bool,
    ) -> io::Error {
        let secrets = takes_secrets.then(|| self.program.secrets());
        let secrets = match secrets.filter(|secrets| !secrets.is_empty()).map(Secrets::into_pipe) {
            Some(Err(error)) => return error,
            Some(Ok(pipe)) => Some(pipe),
            None => None,
        };
        let regions = self.shared.to_hand_on();
        let (groups, spare) = self.listeners.to_hand_on();
        let executable = self.upgrade.executable.as_deref().unwrap_or(Path::new(""));
        let mut manifest = HandoffManifest::new(self.last_generation, executable);
        if let Some(pid_file) = &self.pid_file {
            manifest.pid_file(pid_file.path(), pid_file.as_fd());
        }
        if let Some(predecessor) = predecessor {
            manifest.predecessor(predecessor);
        }
        if let Some(secrets) = &secrets {
            manifest.secrets(secrets.as_fd());
        }
        groups.iter().for_each(|group| manifest.group(group));
        spare.iter().for_each(|socket| manifest.spare(socket.as_fd()));
        regions.iter().for_each(|region| manifest.region(region));
        for child in &self.children {
            manifest.child(&HandedChild {
                pid: child.pid,
                generation: child.generation,
                slot: child.slot,
                state: child.state(),
                line: child.line.as_fd(),
            });
        }
        manifest.execute(successor)
    }

    /// Handles the failure of the successor's first generation.
    pub(super) fn successor_failed(&mut self) {
        self.pending = None;
        if self.upgrade.predecessor.is_some() {
            let text =
                format!("executable {} failed to start; rolling back", self.executable_name());
            self.program.log(Level::Error, Message::UpgradeFailed.number(), &text);
            self.upgrade.step = Step::Returning;
            return;
        }
        self.upgrade.step = Step::None;
        let text = "no new process can be started; the existing ones continue to serve until \
                    the next restart";
        self.program.log(Level::Alert, Message::NoNewProcess.number(), text);
    }

    /// Completes the upgrade: this executable serves with its own processes.
    pub(super) fn successor_serves(&mut self) {
        if !self.upgrade.is_successor {
            return;
        }
        let step = std::mem::take(&mut self.upgrade.step);
        if let Step::Wanted | Step::Trying(_) | Step::Approved { .. } = step {
            self.upgrade.step = step;
        }
        self.upgrade.is_successor = false;
        self.upgrade.predecessor = None;
        let text = format!("executable {} has taken over", self.executable_name());
        self.program.log(Level::Notice, Message::UpgradeDone.number(), &text);
    }
}

/// The trial reads the secrets from its standard input.
fn start_trial(executable: &Path, secrets: Secrets, now: Instant) -> io::Result<Trial> {
    let input = match secrets.is_empty() {
        true => Stdio::null(),
        false => Stdio::from(secrets.into_pipe()?),
    };
    let (report, to_us) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&report, true)?;
    let mut words = std::env::args_os();
    let (name, value) = inheritance::trial_variable();
    // Taken before the trial runs: a file that replaces it afterwards has another identity.
    let tried = Identity::of(executable)?;
    let child = Command::new(executable)
        .arg0(words.next().unwrap_or_default())
        .args(words)
        .env(name, value)
        .stdin(input)
        .stdout(Stdio::from(to_us))
        .spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let kill_at = Some(now + TRIAL_DEADLINE);
    Ok(Trial { pid: Pid::from_raw(pid), report: report.into(), kill_at, tried })
}
