//! The companion that starts and watches the processes of applications.
//!
//! A child asks it for the queue of an application group: four bytes with the number of the process
//! group, and the name. The answer has the sending end of the queue, or says why there is none. For
//! pages of mod_status it asks for the states of all groups.

mod extensions;
mod pool;
mod process;
mod settings;
mod slots;

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bstr::BStr;
use mpm::companion::{Question, Received};
use mpm::scoreboard::ProgramCounts;
use mpm::{Identity, Line};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use server::host::Server;
use server::log::Level;
use server::module::Module;

use super::Wsgi;
use super::counts::{REASONS, Reason, STATES, State};
use super::daemon::DaemonGroup;
use super::python::{InterpreterSection, Python};
use extensions::Extensions;
use pool::Pool;

/// Application groups of a process group, most of which `%{ENV:…}` could make.
const POOLS_MAX: usize = 64;

/// The longest name of an application group.
const NAME_BYTES: usize = 4096;

/// How long processes may take to end after the end of the line.
const END_DEADLINE: Duration = Duration::from_millis(3000);

/// The identifier of the line among what epoll reports.
const LINE: u64 = u64::MAX;

/// The message without it.
const NO_EXTENSION: &str = "mod_wsgi: the extension for Python, lib_tamarack_wsgi.so, is not \
    beside the program: requests pass through sockets, which takes several times the CPU time";

/// What the companion has to know.
#[derive(Debug)]
pub(super) struct Plan {
    /// Embedded mode comes first.
    pub groups: Vec<GroupPlan>,
    pub python: Python,
    pub interpreters: Vec<InterpreterSection>,
    /// The server's description.
    pub software: String,
    /// The name of the MPM.
    pub mpm: &'static str,
    /// How many loops may ask at a time.
    pub loops_max: usize,
    /// The server, for its log.
    pub server: Weak<Server>,
}

/// A process group.
#[derive(Clone, Debug)]
pub(super) struct GroupPlan {
    /// `None` for embedded mode.
    pub daemon: Option<Arc<DaemonGroup>>,
    pub identity: Option<Identity>,
    /// How many processes each application group begins with.
    pub processes: usize,
    /// How many it may have while requests wait.
    pub processes_max: usize,
    pub threads: usize,
    pub is_multiprocess: bool,
    /// Application groups, and what they load at their start.
    pub imports: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Runs until the end of the line; returns the exit status.
pub(super) fn run(plan: &Plan, line: &Line, counts: ProgramCounts) -> i32 {
    let (Ok(epoll), Ok(incoming)) = (epoll::create(epoll::CreateFlags::CLOEXEC), line.incoming())
    else {
        return 1;
    };
    let data = epoll::EventData::new_u64(LINE);
    if epoll::add(&epoll, &*incoming, data, epoll::EventFlags::IN).is_err() {
        return 1;
    }
    let (pools, leaving) = (HashMap::new(), Vec::new());
    let extensions = Extensions::find();
    if extensions.files.is_empty() {
        plan.log(Level::Notice, NO_EXTENSION);
    }
    let tally = Tally::of(plan.groups.len());
    let mut broker =
        Broker { plan, line, epoll, pools, leaving, extensions, next: 0, counts, tally };
    broker.start_imports();
    while broker.turn() {}
    broker.end();
    0
}

/// What runs, and what is known of it.
struct Broker<'p> {
    plan: &'p Plan,
    line: &'p Line,
    epoll: OwnedFd,
    pools: HashMap<(usize, Vec<u8>), Pool>,
    /// Those that take no more requests.
    leaving: Vec<Pool>,
    /// The extension of Python for shared memory.
    extensions: Extensions,
    /// The next identifier of a pool or process for epoll.
    next: u64,
    counts: ProgramCounts,
    tally: Tally,
}

/// The processes that were replaced, by group and reason.
struct Tally(Vec<[Cell<u64>; REASONS.len()]>);

impl Tally {
    fn of(groups: usize) -> Tally {
        Tally((0..groups).map(|_| Default::default()).collect())
    }

    /// Counts a process of a group.
    fn count(&self, group: usize, reason: Reason) {
        let place = REASONS.iter().position(|(known, _)| *known == reason);
        let cell = place.and_then(|place| self.0.get(group)?.get(place));
        if let Some(cell) = cell {
            cell.set(cell.get() + 1);
        }
    }
}

/// What a pool needs of the companion while it works.
struct Tools<'b> {
    plan: &'b Plan,
    epoll: &'b OwnedFd,
    extensions: &'b Extensions,
    next: &'b mut u64,
    counts: &'b ProgramCounts,
    tally: &'b Tally,
}

impl Plan {
    /// Logs a message, as mod_wsgi does without a number.
    fn log(&self, level: Level, text: &str) {
        if let Some(server) = self.server.upgrade() {
            server.log(Wsgi::FILE, level, 0, format_args!("{text}"));
        }
    }
}

impl Tools<'_> {
    fn identifier(&mut self) -> u64 {
        *self.next += 1;
        *self.next
    }
}

impl Broker<'_> {
    /// All pools, and what they need.
    fn split(&mut self) -> (impl Iterator<Item = &mut Pool>, Tools<'_>) {
        let tools = Tools {
            plan: self.plan,
            epoll: &self.epoll,
            extensions: &self.extensions,
            next: &mut self.next,
            counts: &self.counts,
            tally: &self.tally,
        };
        (self.pools.values_mut().chain(&mut self.leaving), tools)
    }

    /// Starts what loads scripts before the first request.
    fn start_imports(&mut self) {
        let plan = self.plan;
        for (index, group) in plan.groups.iter().enumerate() {
            for (application, _) in &group.imports {
                if let Err(why) = self.open(index, application) {
                    let text = format!("WSGI process group {}: {why}", group.label());
                    plan.log(Level::Error, &text);
                }
            }
        }
    }

    /// The pool of an application group, which is started if there is none.
    fn open(&mut self, index: usize, application: &[u8]) -> Result<(), String> {
        let key = (index, application.to_vec());
        if self.pools.contains_key(&key) {
            return Ok(());
        }
        if self.pools.keys().filter(|(group, _)| *group == index).count() >= POOLS_MAX {
            self.evict(index);
        }
        let (_, mut tools) = self.split();
        let pool = Pool::start(&mut tools, index, application);
        self.pools.insert(key, pool.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Ends the application group of a process group that has had no request for the longest time.
    fn evict(&mut self, index: usize) {
        let own = self.pools.iter().filter(|((group, _), _)| *group == index);
        let key = own.min_by_key(|(_, pool)| pool.used()).map(|(key, _)| key.clone());
        let Some((key, mut pool)) = key.and_then(|key| self.pools.remove_entry(&key)) else {
            return;
        };
        let group = self.plan.groups.get(index).map(GroupPlan::label).unwrap_or_default();
        let name = BStr::new(&key.1);
        let text = format!(
            "mod_wsgi: More than {POOLS_MAX} application groups of {group}; ending '{name}', \
             which was idle for the longest time."
        );
        self.plan.log(Level::Warn, &text);
        pool.quit();
        self.leaving.push(pool);
    }

    /// Does what is due; false at the end of the line.
    fn turn(&mut self) -> bool {
        let all = self.pools.values().chain(&self.leaving);
        let due = all.filter_map(Pool::next_turn).min();
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        // Rounded up, or the last millisecond would be spent in turns.
        let left = left.map(|left| left + Duration::from_millis(1));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut events = Vec::with_capacity(64);
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, room, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
        let mut goes_on = true;
        for event in events {
            match event.data.u64() {
                LINE => goes_on &= self.receive(),
                identifier => {
                    let (pools, mut tools) = self.split();
                    for pool in pools {
                        pool.happened(&mut tools, identifier);
                    }
                }
            }
        }
        let now = Instant::now();
        let (pools, mut tools) = self.split();
        for pool in pools {
            pool.turn(&mut tools, now);
        }
        self.leaving.retain(|pool| pool.running() > 0);
        let running = self.pools.values().chain(&self.leaving).map(Pool::running).sum();
        self.counts.set_running(running, 0);
        goes_on
    }

    fn receive(&mut self) -> bool {
        match self.line.try_next() {
            Ok(Some(Received::Question(question))) => {
                self.answer(question);
                true
            }
            // Only a compromised child sends it.
            Ok(Some(Received::Notice(_))) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Ok(None) | Err(_) => false,
        }
    }

    fn answer(&mut self, question: Question) {
        let message = question.message.clone();
        if message == STATES {
            return question.answer(&[self.states().as_bytes()]);
        }
        let Some((number, application)) = message.split_first_chunk::<4>() else { return };
        let index = usize::try_from(u32::from_le_bytes(*number)).unwrap_or(usize::MAX);
        if index >= self.plan.groups.len() || application.len() > NAME_BYTES {
            return question.answer(&[b"no such group"]);
        }
        if let Err(why) = self.open(index, application) {
            self.counts.refused();
            return question.answer(&[why.as_bytes()]);
        }
        let mut tools = Tools {
            plan: self.plan,
            epoll: &self.epoll,
            extensions: &self.extensions,
            next: &mut self.next,
            counts: &self.counts,
            tally: &self.tally,
        };
        if let Some(pool) = self.pools.get_mut(&(index, application.to_vec())) {
            pool.answer(&mut tools, question);
        }
    }

    /// The states of all groups, a line each.
    fn states(&self) -> String {
        let mut states = vec![State::default(); self.plan.groups.len()];
        for pool in self.pools.values().chain(&self.leaving) {
            pool.add_to(&mut states, self.plan);
        }
        let mut out = String::new();
        for (state, replaced) in states.iter_mut().zip(&self.tally.0) {
            for (count, cell) in state.replaced.iter_mut().zip(replaced) {
                *count = cell.get();
            }
            state.write(&mut out);
        }
        out
    }

    /// The line has ended: no process is left that could ask.
    fn end(&mut self) {
        let until = Instant::now() + END_DEADLINE;
        self.split().0.for_each(Pool::quit);
        while self.split().0.any(|pool| pool.running() > 0) && Instant::now() < until {
            let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut events = Vec::with_capacity(64);
            let room = rustix::buffer::spare_capacity(&mut events);
            let _ = epoll::wait(&self.epoll, room, Some(&wait));
            self.split().0.for_each(Pool::reap);
        }
        self.split().0.for_each(Pool::kill);
    }
}
