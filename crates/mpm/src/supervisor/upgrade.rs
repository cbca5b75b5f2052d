//! `-k upgrade` (SIGUSR2): another executable takes over, and no connection notices.
//!
//! The supervisor tries the new executable first: a process of its own reads the configuration
//! with it and says so. Then the supervisor executes it in its own place. The process stays the
//! same, so that systemd, the pid file and whoever waits for it see no change, and so the
//! children stay its children: the new image adopts them as the generation before, with the
//! listening sockets and the shared memory, and lets them finish when its own are ready. An image
//! whose own children do not become ready executes its predecessor again.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::pipe::{PipeFlags, pipe_with};

use super::deaths::Death;
use super::executable::{self, Identity};
use super::inheritance::{self, HandedChild, Inheritance, Successor, Testament, VERSION};
use super::{Supervisor, make_board};
use crate::child::Order;
use crate::listeners::Listeners;
use crate::notify;
use crate::pidfile::PidFile;
use crate::program::{Level, LoadFailure, Program};
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::shared::Shared;

/// A trial that takes longer is killed, and the executable is not used.
const TRIAL_DEADLINE: Duration = Duration::from_secs(60);
/// More of what a trial says is not read.
const REPORT_BYTES_MAX: u64 = 16 << 10;

/// How far an upgrade has come.
#[derive(Default)]
enum Step {
    #[default]
    None,
    /// Asked for while something else is under way.
    Wanted,
    /// The new executable shows what it can.
    Trying(Trial),
    /// It is to take over as soon as nothing else is under way, with the program's secrets if it
    /// has said that it takes them: this file, and no other that has come to its place since.
    Approved { tried: Identity, takes_secrets: bool },
    /// This is the new image, and the generation before still serves.
    TakingOver,
    /// It came to nothing: the predecessor is executed again.
    Returning,
}

struct Trial {
    pid: Pid,
    report: File,
    kill_at: Option<Instant>,
    tried: Identity,
}

/// The supervisor's part for upgrades.
#[derive(Default)]
pub(super) struct Upgrade {
    step: Step,
    /// Asked for while an upgrade was under way, perhaps to another executable by then.
    is_wanted_again: bool,
    /// The path of the executable, as far as it is known.
    executable: Option<PathBuf>,
    /// The image before this one, until this one serves.
    predecessor: Option<OwnedFd>,
    /// It has left secrets, and so takes them.
    predecessor_takes_secrets: bool,
    /// Only children of the image before serve: there is no configuration to start others with.
    pub is_heir: bool,
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

/// What a trial does: it reads the configuration and says on standard output what came of it.
pub(super) fn try_out(program: &mut dyn Program) -> i32 {
    // Without a terminal: a pass phrase that it would have to ask for there is a failure.
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

/// Gives the program what the image before has left it to know.
fn receive(program: &mut dyn Program, pipe: BorrowedFd<'_>) {
    let secrets = Secrets::from_pipe(pipe);
    if !secrets.is_empty() {
        program.take_secrets(secrets);
    }
}

/// What an executable says that knows what to do with secrets.
const TAKES_SECRETS: &str = "tamarack: takes secrets";

/// What an executable says that can take over.
fn greeting() -> String {
    format!("tamarack: ready to take over, version {VERSION}")
}

/// The rest of a successor's life; the exit status of the process.
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
                supervisor.heir_failed();
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
            is_heir: true,
        };
        for child in left.children {
            supervisor.adopt_child(child);
        }
        Ok(supervisor)
    }

    /// SIGUSR2.
    pub(super) fn want_upgrade(&mut self) {
        let text = "SIGUSR2 received.  Trying the executable anew";
        self.program.log(Level::Notice, 20010, text);
        match self.upgrade.step {
            Step::None => self.upgrade.step = Step::Wanted,
            _ => self.upgrade.is_wanted_again = true,
        }
    }

    /// Does the next step, when nothing else is under way.
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
            self.refuse_upgrade("where it is can't be found out");
            return;
        };
        match start_trial(&executable, self.program.secrets(), now) {
            Ok(trial) => self.upgrade.step = Step::Trying(trial),
            Err(error) => self.refuse_upgrade(&error.to_string()),
        }
    }

    /// Notes that a process has ended. Whether it was a trial.
    pub(super) fn trial_ended(&mut self, pid: Pid, death: Death) -> bool {
        match &self.upgrade.step {
            Step::Trying(trial) if trial.pid == pid => {}
            _ => return false,
        }
        let Step::Trying(trial) = std::mem::take(&mut self.upgrade.step) else { return true };
        let mut report = Vec::new();
        // It doesn't block, and what the trial wrote is there.
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
            Death::Exit(0) => "it is not one that can take over".to_owned(),
            Death::Exit(status) => format!("its trial ended with status {status}"),
            Death::Signal(..) if trial.kill_at.is_none() => {
                format!("its trial took longer than {} s", TRIAL_DEADLINE.as_secs())
            }
            Death::Signal(signal, _) => format!("its trial ended by {signal}"),
        };
        self.refuse_upgrade(&why);
        true
    }

    fn refuse_upgrade(&mut self, why: &str) {
        self.upgrade.step = Step::None;
        let text = format!(
            "the executable {} can't be used, {why}: the running one goes on serving",
            self.executable_name()
        );
        self.program.log(Level::Error, 20011, &text);
    }

    fn executable_name(&self) -> String {
        self.upgrade.executable.as_deref().unwrap_or(Path::new("")).display().to_string()
    }

    /// Executes the new image, unless it is no longer what was tried. Comes back only when that
    /// fails.
    fn hand_over(&mut self, tried: Identity, takes_secrets: bool) {
        let Some(executable) = self.upgrade.executable.clone() else { return };
        if Identity::of(&executable).ok() != Some(tried) {
            self.begin_trial(Instant::now());
            return;
        }
        let text = format!("the executable {} takes over", executable.display());
        self.program.log(Level::Notice, 20012, &text);
        notify::reloading();
        // Without it a new image that fails has nothing to go back to.
        let own = File::open("/proc/self/exe").ok();
        let successor = Successor::Path(&executable);
        let error = self.execute(&successor, own.as_ref().map(AsFd::as_fd), takes_secrets);
        self.refuse_upgrade(&error.to_string());
        notify::ready(std::process::id(), "Serving: the new executable can't be used");
    }

    /// This image came to nothing.
    fn return_to_predecessor(&mut self) {
        self.upgrade.step = Step::None;
        let Some(predecessor) = self.upgrade.predecessor.take() else { return };
        let takes_secrets = self.upgrade.predecessor_takes_secrets;
        let error = self.execute(&Successor::File(predecessor.as_fd()), None, takes_secrets);
        let text = format!(
            "the executable before can't be executed again ({error}): its processes go on serving \
             until there is another restart"
        );
        self.program.log(Level::Alert, 20014, &text);
    }

    fn execute(
        &self,
        successor: &Successor<'_>,
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
        let mut testament = Testament::new(self.last_generation, executable);
        if let Some(pid_file) = &self.pid_file {
            testament.pid_file(pid_file.path(), pid_file.as_fd());
        }
        if let Some(predecessor) = predecessor {
            testament.predecessor(predecessor);
        }
        if let Some(secrets) = &secrets {
            testament.secrets(secrets.as_fd());
        }
        groups.iter().for_each(|group| testament.group(group));
        spare.iter().for_each(|socket| testament.spare(socket.as_fd()));
        regions.iter().for_each(|region| testament.region(region));
        for child in &self.children {
            testament.child(&HandedChild {
                pid: child.pid,
                generation: child.generation,
                slot: child.slot,
                state: child.state(),
                line: child.line.as_fd(),
            });
        }
        testament.execute(successor)
    }

    /// The successor's own generation came to nothing.
    pub(super) fn heir_failed(&mut self) {
        self.pending = None;
        if self.upgrade.predecessor.is_some() {
            let text = format!(
                "the executable {} came to nothing: the one before takes over again",
                self.executable_name()
            );
            self.program.log(Level::Error, 20013, &text);
            self.upgrade.step = Step::Returning;
            return;
        }
        self.upgrade.step = Step::None;
        let text = "no new process can be started: those that there are go on serving until there \
                    is another restart";
        self.program.log(Level::Alert, 20015, text);
    }

    /// This image serves with processes of its own.
    pub(super) fn heir_serves(&mut self) {
        if !self.upgrade.is_heir {
            return;
        }
        let step = std::mem::take(&mut self.upgrade.step);
        if let Step::Wanted | Step::Trying(_) | Step::Approved { .. } = step {
            self.upgrade.step = step;
        }
        self.upgrade.is_heir = false;
        self.upgrade.predecessor = None;
        let text = format!("the executable {} has taken over", self.executable_name());
        self.program.log(Level::Notice, 20016, &text);
    }
}

/// It reads the secrets from its standard input.
fn start_trial(executable: &Path, secrets: Secrets, now: Instant) -> io::Result<Trial> {
    let input = match secrets.is_empty() {
        true => Stdio::null(),
        false => Stdio::from(secrets.into_pipe()?),
    };
    let (report, to_us) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&report, true)?;
    let mut words = std::env::args_os();
    let (name, value) = inheritance::trial_variable();
    // Before it runs: what takes its place afterwards is another.
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
