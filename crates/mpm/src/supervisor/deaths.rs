//! Deaths of children: reaping, logging, and the consequences.

use std::time::Instant;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::Supervisor;
use super::children::ChildRecord;
use super::generation::ATTEMPTS_MAX;
use crate::CHILD_FATAL;
use crate::pipes::Reaped;
use crate::program::Level;
use crate::scoreboard::Event;

impl Supervisor<'_> {
    /// Reaps children that have ended. As process 1 of a container it also reaps processes that it
    /// did not fork.
    pub(super) fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) => self.reaped(pid, Death::Exit(status)),
                Ok(WaitStatus::Signaled(pid, signal, has_core)) => {
                    self.reaped(pid, Death::Signal(signal, has_core));
                }
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    fn reaped(&mut self, pid: Pid, death: Death) {
        let now = Instant::now();
        let Some(position) = self.children.iter().position(|child| child.pid == pid) else {
            if self.trial_ended(pid, death) || self.companion_ended(pid, now) {
                return;
            }
            if let Reaped::Died(command) = self.pipes.reaped(pid, now) {
                let text = format!("piped log program '{command}' failed unexpectedly");
                self.program.log(Level::Error, 106, &text);
            }
            return;
        };
        // The last reports count: that it was ready, or that it was exhausted.
        self.read_reports(position);
        let child = self.children.remove(position);
        self.reserves.reap(child.generation, child.board_slot);
        self.board.release(child.board_slot);
        self.program.child_ended(pid.as_raw().unsigned_abs());
        self.log_death(&child, death);
        let was_expected = !child.is_staying() || child.is_exhausted;
        if was_expected || self.stopping.is_some() {
            return;
        }
        self.board.count(Event::Crashed);
        let is_staged =
            self.staged.as_ref().is_some_and(|staged| staged.number == child.generation);
        self.put_off(child.generation, child.slot, child.forked, now);
        let failures = self.place(child.generation, child.slot).map_or(0, |place| place.failures);
        if is_staged && (death == Death::Exit(CHILD_FATAL) || failures >= ATTEMPTS_MAX) {
            let text = format!("child pid {pid} of the new configuration could not start");
            self.abandon_staged(&text);
        }
    }

    fn log_death(&mut self, child: &ChildRecord, death: Death) {
        let pid = child.pid;
        match death {
            Death::Signal(..) if child.was_killed => {}
            // SIGTERM is not logged: a service manager sends it to the whole process group. As in
            // Apache (`ap_process_child_status`). Unlike in Apache, SIGKILL is logged, because the
            // kernel sends it when memory runs out.
            Death::Signal(Signal::SIGTERM, _) => {}
            Death::Signal(signal, has_core) => {
                let directory = self.core_directory();
                let core = match (has_core, directory) {
                    (true, Some(directory)) => format!(", possible coredump in {directory}"),
                    _ => String::new(),
                };
                let number = if core.is_empty() { 52 } else { 51 };
                let (name, code) = (describe(signal), signal as i32);
                let text = format!("child pid {pid} exit signal {name} ({code}){core}");
                self.program.log(Level::Notice, number, &text);
            }
            Death::Exit(0) if !child.is_staying() || child.is_exhausted => {}
            Death::Exit(CHILD_FATAL) => {
                let text = format!("Child {pid} returned a Fatal error...");
                self.program.log(Level::Alert, 50, &text);
            }
            Death::Exit(status) => {
                let text = format!("child pid {pid} exited with status {status}");
                self.program.log(Level::Notice, 0, &text);
            }
        }
    }

    fn core_directory(&self) -> Option<String> {
        let settings = &self.current.as_ref()?.settings;
        Some(settings.core_dump_directory.as_ref()?.display().to_string())
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    Exit(i32),
    Signal(Signal, bool),
}

/// A signal's description in Apache's words (`apr_signal_description_get`).
fn describe(signal: Signal) -> &'static str {
    match signal {
        Signal::SIGSEGV => "Segmentation fault",
        Signal::SIGBUS => "Bus error",
        Signal::SIGABRT => "Abort",
        Signal::SIGILL => "Illegal instruction",
        Signal::SIGFPE => "Arithmetic exception",
        Signal::SIGKILL => "Killed",
        other => other.as_str(),
    }
}
