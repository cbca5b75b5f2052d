//! The processes of an application group, and the queue that they share.

mod size;
mod state;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use bstr::BStr;
use mpm::companion::{Channel, Question};
use mpm::pipes::pause;
use rustix::event::epoll;
use server::log::Level;

use size::GROW_AFTER;

use super::process::{Process, Report, Start, State};
use super::slots::{Notice, Slots};
use super::{GroupPlan, Tools};
use crate::wsgi::mod_wsgi::counts::Reason;
use crate::wsgi::mod_wsgi::runtime::{BACKLOG, SOCKETS};

/// A process that dies sooner than this is started again after a pause.
const QUICK_DEATH: Duration = Duration::from_secs(1);

/// What a process may take to end beyond its own time limits before it is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// Reports of a process that are read at once.
const REPORTS_MAX: usize = 64;

/// Loops that wait for the first process.
const ASKERS_MAX: usize = 4096;

/// Room in a queue for what several children put there at once.
const ROOM: usize = 64;

/// The processes of an application group.
pub(super) struct Pool {
    index: usize,
    application: Vec<u8>,
    identifier: u64,
    channel: Channel,
    queue: OwnedFd,
    /// Shared memory, unless the processes can't use it.
    slots: Option<Slots>,
    /// Those that ask before it is known whether the processes can; `None` afterwards.
    askers: Option<Vec<Question>>,
    /// When a request came last.
    used: Instant,
    processes: Vec<Process>,
    /// How many there should be.
    wanted: usize,
    quick_deaths: u32,
    /// When to start those that are missing.
    start_at: Option<Instant>,
    /// When to look whether requests wait; `None` until one comes.
    look_at: Option<Instant>,
    shrink_at: Option<Instant>,
    is_ending: bool,
}

impl Pool {
    /// Starts the processes of an application group.
    ///
    /// # Errors
    /// There are no descriptors.
    pub fn start(tools: &mut Tools<'_>, index: usize, application: &[u8]) -> io::Result<Pool> {
        let group: &GroupPlan = &tools.plan.groups[index];
        let backlog = group.daemon.as_ref().and_then(|daemon| daemon.number("listen-backlog"));
        let backlog = backlog.and_then(|most| usize::try_from(most).ok()).unwrap_or(BACKLOG);
        let (channel, queue) = Channel::pair(backlog + ROOM)?;
        let identifier = tools.identifier();
        let slots = match tools.extensions.files.is_empty() {
            true => None,
            false => Some(Slots::create(group, tools.plan.loops_max)?),
        };
        let mut pool = Pool {
            askers: slots.is_some().then(Vec::new),
            slots,
            used: Instant::now(),
            index,
            application: application.to_vec(),
            identifier,
            channel,
            queue,
            processes: Vec::new(),
            wanted: 0,
            quick_deaths: 0,
            start_at: None,
            look_at: None,
            shrink_at: None,
            is_ending: false,
        };
        let group = pool.group(tools);
        pool.wanted = group.processes;
        if group.processes_max > group.processes {
            let data = epoll::EventData::new_u64(identifier);
            epoll::add(tools.epoll, &pool.queue, data, ONCE)?;
        }
        pool.fill(tools);
        Ok(pool)
    }

    /// Gives the asking loop what it puts requests into, once that is known.
    pub fn answer(&mut self, tools: &mut Tools<'_>, question: Question) {
        self.used = Instant::now();
        match (&mut self.askers, &mut self.slots) {
            (Some(askers), _) if askers.len() < ASKERS_MAX => askers.push(question),
            (Some(_), _) => question.answer(&[b"too many loops wait"]),
            (None, Some(slots)) => {
                let Some(lane) = slots.assign(tools, question) else { return };
                self.processes.iter_mut().for_each(|process| process.tell_of_lane(lane, slots));
            }
            (None, None) => {
                let size = self.channel.message_bytes().to_le_bytes();
                question.answer_with(&[SOCKETS, &size].concat(), self.channel.as_fd());
            }
        }
    }

    /// The number of processes.
    pub fn running(&self) -> usize {
        self.processes.len()
    }

    /// When a request came last, to the second.
    pub fn used(&self) -> Instant {
        self.used
    }

    /// When something is due.
    pub fn next_turn(&self) -> Option<Instant> {
        let kills = self.processes.iter().filter_map(|process| process.kill_at);
        let own = [self.start_at, self.look_at, self.shrink_at, self.deadlock_turn()];
        kills.chain(own.into_iter().flatten()).min()
    }

    /// Something of this identifier is ready.
    pub fn happened(&mut self, tools: &mut Tools<'_>, identifier: u64) {
        if identifier == self.identifier {
            self.look_at = Some(Instant::now() + GROW_AFTER);
            return;
        }
        match self.slots.as_mut().and_then(|slots| slots.notice(identifier)) {
            Some(Notice::Starving) => self.look_at = Some(Instant::now() + GROW_AFTER),
            Some(Notice::Gone(lane)) => {
                let Some(slots) = &self.slots else { return };
                self.processes.iter_mut().for_each(|process| process.tell_of_lane(lane, slots));
            }
            None => self.process_happened(tools, identifier),
        }
    }

    fn process_happened(&mut self, tools: &mut Tools<'_>, identifier: u64) {
        let place = self.processes.iter().position(|process| process.identifier == identifier);
        let Some(place) = place else { return };
        // The rest of many waits until others had their turn.
        for _ in 0..REPORTS_MAX {
            let Some(report) = self.processes.get(place).and_then(Process::report) else { break };
            let is_last = matches!(report, Report::Closed);
            self.reported(tools, place, report);
            if is_last {
                break;
            }
        }
        let ended = self.processes.get_mut(place).and_then(Process::ended);
        if let Some(how) = ended {
            let process = self.processes.swap_remove(place);
            if let (Some(slots), Some(place)) = (&mut self.slots, process.place) {
                slots.leave_place(place);
            }
            self.ended(tools, &process, &how);
        } else if let (Some(slots), Some(process)) = (&self.slots, self.processes.get_mut(place)) {
            process.tell_of_lanes(slots);
        }
    }

    /// The first process tells whether it can use shared memory.
    fn decide(&mut self, tools: &mut Tools<'_>, refusal: Option<&str>) {
        let Some(askers) = self.askers.take() else { return };
        if let Some(reason) = refusal {
            let name = self.name(tools);
            let text = format!(
                "mod_wsgi: A process {name} can't use the extension: {reason}. Requests take \
                 longer without it."
            );
            tools.plan.log(Level::Warn, &text);
            self.slots = None;
        }
        askers.into_iter().for_each(|asker| self.answer(tools, asker));
    }

    /// Does what is due.
    pub fn turn(&mut self, tools: &mut Tools<'_>, now: Instant) {
        if self.start_at.take_if(|at| *at <= now).is_some() {
            self.fill(tools);
        }
        if self.look_at.take_if(|at| *at <= now).is_some() {
            self.look(tools, now);
        }
        if self.shrink_at.take_if(|at| *at <= now).is_some() {
            self.shrink(tools, now);
        }
        self.check_deadlocks(tools, now);
        for process in &mut self.processes {
            if process.kill_at.take_if(|at| *at <= now).is_some() {
                process.kill();
            }
        }
    }

    /// Asks all processes to end.
    pub fn quit(&mut self) {
        self.is_ending = true;
        self.slots.iter().for_each(Slots::retire);
        self.processes.iter().for_each(Process::quit);
    }

    /// Forgets those that have ended.
    pub fn reap(&mut self) {
        self.processes.retain_mut(|process| process.ended().is_none());
    }

    /// Ends all processes now.
    pub fn kill(&mut self) {
        self.processes.clear();
    }

    fn group<'p>(&self, tools: &Tools<'p>) -> &'p GroupPlan {
        &tools.plan.groups[self.index]
    }

    /// Those that take requests, or soon will.
    fn serving(&self) -> usize {
        let serves = |process: &&Process| matches!(process.state, State::Starting | State::Ready);
        self.processes.iter().filter(serves).count()
    }

    /// Starts the processes that are missing.
    fn fill(&mut self, tools: &mut Tools<'_>) {
        while !self.is_ending && self.serving() < self.wanted && self.start_at.is_none() {
            let group = self.group(tools);
            let place = match &mut self.slots {
                // One that ends has to leave its own first.
                Some(slots) => match slots.take_place() {
                    Some(place) => Some(place),
                    None => return,
                },
                None => None,
            };
            let start = Start {
                application: &self.application,
                queue: self.queue.as_fd(),
                slots: self.slots.as_ref().zip(place),
            };
            match Process::start(tools, group, &start) {
                Ok(process) => {
                    let (pid, name) = (process.pid(), self.name(tools));
                    tools.plan.log(
                        Level::Info,
                        &format!("mod_wsgi (pid={pid}): Starting process {name}."),
                    );
                    tools.counts.started();
                    self.processes.push(process);
                }
                Err(error) => {
                    if let (Some(slots), Some(place)) = (&mut self.slots, place) {
                        slots.leave_place(place);
                    }
                    tools.counts.failed();
                    self.quick_deaths += 1;
                    let wait = pause(self.quick_deaths.max(2));
                    self.start_at = Some(Instant::now() + wait);
                    let name = self.name(tools);
                    let python = tools.plan.python.executable(group.daemon.as_deref());
                    let text = format!(
                        "mod_wsgi: can't start a process {name} with {}: {error}; next attempt \
                         in {:.1} s",
                        python.display(),
                        wait.as_secs_f32()
                    );
                    tools.plan.log(Level::Error, &text);
                }
            }
        }
    }

    fn reported(&mut self, tools: &mut Tools<'_>, place: usize, report: Report) {
        let name = self.name(tools);
        let drain = self.drain_limit(tools);
        let Some(process) = self.processes.get_mut(place) else { return };
        let pid = process.pid();
        (process.answered, process.is_asked) = (Instant::now(), false);
        match report {
            Report::Alive => {}
            Report::Used => self.used = Instant::now(),
            Report::Extension(refusal) => match (&self.askers, refusal) {
                (Some(_), refusal) => self.decide(tools, refusal.as_deref()),
                // It would take no requests.
                (None, Some(_)) => process.kill(),
                (None, None) => {}
            },
            Report::Line(line) => {
                let Some((level, text)) = line.split_first() else { return };
                let text = String::from_utf8_lossy(text);
                tools.plan.log(level_of(*level), &text);
            }
            Report::Ready => {
                if process.state == State::Starting {
                    process.state = State::Ready;
                }
                self.release(drain);
            }
            Report::Retire(reason) if process.state != State::Draining => {
                process.state = State::Retiring;
                tools.tally.count(self.index, Reason::of(&reason));
                let text = format!("mod_wsgi (pid={pid}): {reason} in process {name}; replaced.");
                tools.plan.log(Level::Info, &text);
                self.fill(tools);
            }
            Report::Drains(reason) => {
                if matches!(process.state, State::Starting | State::Ready) {
                    tools.tally.count(self.index, Reason::of(&reason));
                }
                process.state = State::Draining;
                process.kill_at = Some(Instant::now() + drain);
                let text = format!("mod_wsgi (pid={pid}): {reason} in process {name}; stopping.");
                tools.plan.log(Level::Info, &text);
                self.fill(tools);
            }
            Report::Retire(_) => {}
            // It can't be asked any more, and its end would be reported without pause.
            Report::Closed => process.kill(),
        }
    }

    /// Ends a process whose successor is ready, for each one that is.
    fn release(&mut self, drain: Duration) {
        let ready = self.processes.iter().filter(|process| process.state == State::Ready).count();
        if ready < self.wanted {
            return;
        }
        for process in &mut self.processes {
            if process.state == State::Retiring {
                process.state = State::Draining;
                process.kill_at = Some(Instant::now() + drain);
                process.quit();
            }
        }
    }

    fn ended(&mut self, tools: &mut Tools<'_>, process: &Process, how: &str) {
        if self.is_ending {
            return;
        }
        if matches!(process.state, State::Starting | State::Ready) {
            let reason = if process.is_deadlocked { Reason::Deadlock } else { Reason::Death };
            tools.tally.count(self.index, reason);
            let is_quick = process.started.elapsed() < QUICK_DEATH;
            self.quick_deaths = if is_quick { self.quick_deaths + 1 } else { 0 };
            let (pid, name) = (process.pid(), self.name(tools));
            tools.plan.log(Level::Error, &format!("mod_wsgi (pid={pid}): Process {name} {how}."));
            let wait = pause(self.quick_deaths);
            if !wait.is_zero() {
                self.start_at = Some(Instant::now() + wait);
            }
        }
        self.fill(tools);
    }

    /// How long a process that takes no requests may still run.
    fn drain_limit(&self, tools: &Tools<'_>) -> Duration {
        let group = self.group(tools);
        let graceful = group.graceful_timeout().max(group.eviction_timeout());
        graceful.max(group.shutdown_timeout()) + group.shutdown_timeout() + KILL_AFTER
    }

    fn name(&self, tools: &Tools<'_>) -> String {
        let application = BStr::new(&self.application);
        let group = self.group(tools).label();
        format!("of {group}, application group '{application}'")
    }
}

/// Reports once that a request waits.
const ONCE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ONESHOT);

fn level_of(digit: u8) -> Level {
    match digit {
        b'7' => Level::Debug,
        b'6' => Level::Info,
        b'5' => Level::Notice,
        b'4' => Level::Warn,
        b'2' => Level::Crit,
        _ => Level::Error,
    }
}
