//! Companions in the supervisor: forks them, restarts them, and ends them with their generations.
#![expect(unsafe_code, reason = "fork")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use messages::Message;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{ForkResult, Pid, fork};

use super::upgrade::Upgrade;
use super::{Supervisor, signals};
use crate::companion::executed::{self, Given};
use crate::companion::{COMPANION_END_DEADLINE, Companion, Function, Line, Task};
use crate::pipes::pause;
use crate::program::{Level, LoadFailure};
use crate::scoreboard::{Event, Scoreboard};
use crate::settings::Settings;

/// A companion that dies sooner than this is forked again after a pause.
const QUICK_DEATH: Duration = Duration::from_secs(1);

/// All companions.
#[derive(Default)]
pub(super) struct Companions {
    records: Vec<Record>,
}

struct Record {
    companion: Companion,
    settings: Arc<Settings>,
    generation: u32,
    /// The running process.
    pid: Option<Pid>,
    /// Its place on the scoreboard, if one was free.
    place: Option<usize>,
    started: Instant,
    quick_deaths: u32,
    /// When to fork it again.
    restart_at: Option<Instant>,
    /// Its line has ended.
    is_over: bool,
    /// When to kill it.
    kill_at: Option<Instant>,
}

impl Record {
    /// Takes a place on the scoreboard, unless it has one.
    fn take_place(&mut self, board: &Scoreboard) {
        if self.place.is_none() {
            self.place = board.claim_companion(self.generation, &self.companion.name);
        }
    }

    fn leave_place(&mut self, board: &Scoreboard) {
        if let Some(place) = self.place.take() {
            board.release_companion(place);
        }
    }
}

impl Companions {
    /// When the next work is due.
    pub(super) fn next_turn(&self) -> Option<Instant> {
        self.records.iter().flat_map(|record| [record.restart_at, record.kill_at]).flatten().min()
    }

    /// Whether any is running.
    pub(super) fn is_running(&self) -> bool {
        self.records.iter().any(|record| record.pid.is_some())
    }

    /// Ends the companions of generations for which `is_over` holds: no process asks them any more.
    pub(super) fn end(&mut self, is_over: impl Fn(u32) -> bool, now: Instant) {
        for record in &mut self.records {
            if !record.is_over && is_over(record.generation) {
                record.is_over = true;
                record.restart_at = None;
                record.companion.line.close();
                record.kill_at = Some(now + COMPANION_END_DEADLINE);
            }
        }
        self.records.retain(|record| !record.is_over || record.pid.is_some());
    }

    /// Closes the ends of lines that a child of `generation` does not use, and drops the rest.
    pub(super) fn leave_to_child(&mut self, generation: u32) {
        for record in self.records.drain(..) {
            match record.generation == generation {
                true => record.companion.line.leave_to_askers(),
                false => record.companion.line.close(),
            }
        }
    }

    /// The same in the companion at `position`.
    fn leave_to_companion(&mut self, position: usize) {
        for (at, record) in self.records.drain(..).enumerate() {
            match at == position {
                true => record.companion.line.leave_to_companion(),
                false => record.companion.line.close(),
            }
        }
    }
}

impl Supervisor<'_> {
    /// Starts the companions of a generation, before its children.
    pub(super) fn start_companions(
        &mut self,
        generation: u32,
        settings: &Arc<Settings>,
    ) -> Result<(), LoadFailure> {
        let first = self.companions.records.len();
        // All before the first fork: each companion closes the others' lines.
        for companion in &settings.companions {
            self.companions.records.push(Record {
                companion: companion.clone(),
                settings: settings.clone(),
                generation,
                pid: None,
                place: None,
                started: Instant::now(),
                quick_deaths: 0,
                restart_at: None,
                is_over: false,
                kill_at: None,
            });
        }
        for (position, companion) in (first..).zip(&settings.companions) {
            self.fork_companion(position).map_err(|error| {
                LoadFailure::new(format!("can't start {}: {error}", companion.name))
            })?;
        }
        Ok(())
    }

    fn fork_companion(&mut self, position: usize) -> std::io::Result<()> {
        let board = self.board;
        if let Some(record) = self.companions.records.get_mut(position) {
            record.take_place(&board);
        }
        // SAFETY: the supervisor has one thread, so the child is a complete copy in which no lock
        // is held by a missing thread.
        match unsafe { fork() } {
            Ok(ForkResult::Child) => self.be_companion(position),
            Ok(ForkResult::Parent { child }) => {
                if let Some(record) = self.companions.records.get_mut(position) {
                    record.pid = Some(child);
                    record.started = Instant::now();
                    if let Some(place) = record.place {
                        board.set_companion(place, child.as_raw());
                    }
                }
                Ok(())
            }
            Err(errno) => {
                if let Some(record) = self.companions.records.get_mut(position) {
                    record.leave_place(&board);
                }
                Err(errno.into())
            }
        }
    }

    /// Runs the companion; doesn't return to the supervisor's loop.
    fn be_companion(&mut self, position: usize) -> ! {
        let own = self.companions.records.get(position);
        let own = own.map(|record| {
            (record.generation, record.companion.clone(), record.settings.clone(), record.place)
        });
        self.companions.leave_to_companion(position);
        // Drops what belongs to the supervisor alone, above all the sockets.
        self.children.clear();
        self.pipes.forget();
        self.placement.forget();
        self.pid_file = None;
        self.starter = None;
        self.terminal = None;
        self.upgrade = Upgrade::default();
        self.listeners = Default::default();
        self.current = None;
        self.staged = None;
        let Some((generation, companion, settings, place)) = own else { std::process::exit(1) };
        self.program.companion(generation);
        let status = match &companion.task {
            Task::Spawner { programs_max } => {
                let (line, programs_max) = (&*companion.line, *programs_max);
                let board = self.board.file();
                let given = Given { line, board, place, programs_max, settings: &settings };
                self.execute_spawner(&companion.name, &given)
            }
            Task::Function(run) => self.run_in_companion(&**run, &companion.line, place),
        };
        std::process::exit(status)
    }

    /// Returns only on failure. The signals are still blocked: the spawner decides about them.
    fn execute_spawner(&mut self, name: &str, given: &Given<'_>) -> i32 {
        let Err(error) = executed::execute(given);
        let text = format!("can't execute this program again as {name}: {error}");
        self.program.log(Level::Alert, Message::CompanionDied.number(), &text);
        1
    }

    fn run_in_companion(&mut self, run: &Function, line: &Line, place: Option<usize>) -> i32 {
        if signals::reset_in_companion().is_err() {
            return 1;
        }
        let counts = self.board.program_counts(place);
        // A panic must not unwind into the supervisor's frames.
        let run = AssertUnwindSafe(|| {
            let mut log = |level, number, text: &str| self.program.log(level, number, text);
            run(line, counts, &mut log)
        });
        catch_unwind(run).unwrap_or(1)
    }

    /// Records the end of a process; returns whether it was a companion.
    pub(super) fn companion_ended(&mut self, pid: Pid, now: Instant) -> bool {
        let mut records = self.companions.records.iter_mut();
        let Some(record) = records.find(|record| record.pid == Some(pid)) else { return false };
        record.pid = None;
        record.kill_at = None;
        record.leave_place(&self.board);
        if !record.is_over {
            let lived = now.saturating_duration_since(record.started);
            record.quick_deaths = if lived < QUICK_DEATH { record.quick_deaths + 1 } else { 0 };
            record.restart_at = Some(now + pause(record.quick_deaths));
            let text = format!("{} (pid {pid}) ended unexpectedly", record.companion.name);
            self.program.log(Level::Error, Message::CompanionDied.number(), &text);
        }
        self.companions.end(|_| false, now);
        true
    }

    /// Forks companions that are due, and kills those that did not end in time.
    pub(super) fn turn_companions(&mut self, now: Instant) {
        for position in 0..self.companions.records.len() {
            let Some(record) = self.companions.records.get_mut(position) else { return };
            if record.kill_at.take_if(|at| *at <= now).is_some()
                && let Some(pid) = record.pid
            {
                let _ = kill(pid, Signal::SIGKILL);
            }
            if record.restart_at.take_if(|at| *at <= now).is_none() {
                continue;
            }
            let Err(error) = self.fork_companion(position) else {
                self.board.count(Event::CompanionReplaced);
                continue;
            };
            let Some(record) = self.companions.records.get_mut(position) else { return };
            record.quick_deaths += 1;
            record.restart_at = Some(now + pause(record.quick_deaths));
            let text = format!("can't start {}: {error}", record.companion.name);
            self.program.log(Level::Error, Message::CompanionDied.number(), &text);
        }
    }
}
