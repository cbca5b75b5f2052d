//! The processes of an application group, and the queue that they share.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use bstr::BStr;
use mpm::companion::{Channel, is_waiting};
use mpm::pipes::pause;
use rustix::event::epoll;
use server::log::Level;

use super::process::{Process, Report, State};
use super::{GroupPlan, Tools};
use crate::wsgi::mod_wsgi::runtime::BACKLOG;

/// A process that dies sooner than this is started again after a pause.
const QUICK_DEATH: Duration = Duration::from_secs(1);

/// How long requests wait before another process of embedded mode is started, and how long none may
/// wait before one is ended.
const GROW_AFTER: Duration = Duration::from_millis(100);
const SHRINK_AFTER: Duration = Duration::from_secs(60);

/// What a process may take to end beyond its own time limits before it is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// Reports of a process that are read at once.
const REPORTS_MAX: usize = 64;

/// Room in a queue for what several children put there at once.
const ROOM: usize = 64;

/// The processes of an application group.
pub(super) struct Pool {
    index: usize,
    application: Vec<u8>,
    identifier: u64,
    channel: Channel,
    queue: OwnedFd,
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
        let mut pool = Pool {
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

    /// The sending end of the queue.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The number of processes.
    pub fn running(&self) -> usize {
        self.processes.len()
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
            self.ended(tools, &process, &how);
        }
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
            match Process::start(tools, group, &self.application, self.queue.as_fd()) {
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
                    tools.counts.failed();
                    self.quick_deaths += 1;
                    let wait = pause(self.quick_deaths.max(2));
                    self.start_at = Some(Instant::now() + wait);
                    let name = self.name(tools);
                    let python = tools.plan.python.executable(group.daemon.as_deref());
                    let text = format!(
                        "mod_wsgi: can't start a process of {name} with {}: {error}; next attempt \
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
                let text = format!("mod_wsgi (pid={pid}): {reason} in process {name}; replaced.");
                tools.plan.log(Level::Info, &text);
                self.fill(tools);
            }
            Report::Drains(reason) => {
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

    /// Starts more processes if requests wait, and waits for the next request.
    fn look(&mut self, tools: &mut Tools<'_>, now: Instant) {
        let group = self.group(tools);
        if is_waiting(self.queue.as_fd()) {
            let starting = |process: &Process| process.state == State::Starting;
            if self.wanted < group.processes_max && !self.processes.iter().any(starting) {
                self.wanted = (self.wanted * 2).min(group.processes_max);
                self.fill(tools);
            }
            self.look_at = Some(now + GROW_AFTER);
            self.shrink_at = Some(now + SHRINK_AFTER);
        } else {
            let data = epoll::EventData::new_u64(self.identifier);
            let _ = epoll::modify(tools.epoll, &self.queue, data, ONCE);
        }
    }

    /// Ends half of the processes that are more than the first ones.
    fn shrink(&mut self, tools: &mut Tools<'_>, now: Instant) {
        let least = self.group(tools).processes;
        let drain = self.drain_limit(tools);
        self.wanted = least.max(self.wanted / 2);
        let too_many = self.serving().saturating_sub(self.wanted);
        let ready = self.processes.iter_mut().filter(|process| process.state == State::Ready);
        for process in ready.take(too_many) {
            process.state = State::Draining;
            process.kill_at = Some(now + drain);
            process.quit();
        }
        if self.wanted > least {
            self.shrink_at = Some(now + SHRINK_AFTER);
        }
    }

    fn deadlock_turn(&self) -> Option<Instant> {
        self.processes.iter().filter_map(|process| process.next_check).min()
    }

    /// Asks processes whether they are alive, and kills those that have not answered.
    fn check_deadlocks(&mut self, tools: &mut Tools<'_>, now: Instant) {
        let limit = self.group(tools).deadlock_timeout();
        let Some(limit) = limit else { return };
        let name = self.name(tools);
        for process in &mut self.processes {
            if process.next_check.is_some_and(|at| at > now) {
                continue;
            }
            if process.is_asked && now.saturating_duration_since(process.answered) >= limit {
                let pid = process.pid();
                let text = format!(
                    "mod_wsgi (pid={pid}): Daemon process deadlock timer expired, stopping \
                     process {name}."
                );
                tools.plan.log(Level::Error, &text);
                process.kill();
                process.next_check = Some(now + limit);
            } else {
                if !process.is_asked {
                    process.answered = now;
                }
                process.ask();
                process.next_check = Some(now + limit);
            }
        }
    }

    /// How long a process that takes no requests may still run.
    fn drain_limit(&self, tools: &Tools<'_>) -> Duration {
        let group = self.group(tools);
        group.graceful_timeout().max(group.shutdown_timeout())
            + group.shutdown_timeout()
            + KILL_AFTER
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
