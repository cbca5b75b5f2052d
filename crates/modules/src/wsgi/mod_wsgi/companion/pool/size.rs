//! How many processes an application group has, and whether they are alive.

use std::os::fd::AsFd;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use mpm::companion::is_waiting;
use rustix::event::epoll;
use server::log::Level;

use super::{ONCE, Pool};
use crate::wsgi::mod_wsgi::companion::Tools;
use crate::wsgi::mod_wsgi::companion::process::{Process, State};
use crate::wsgi::mod_wsgi::companion::slots::Slots;

/// How long requests wait before another process of embedded mode is started, and how long none may
/// wait before one is ended.
pub(super) const GROW_AFTER: Duration = Duration::from_millis(100);
const SHRINK_AFTER: Duration = Duration::from_secs(60);

impl Pool {
    /// Starts more processes if requests wait, and waits for the next request.
    pub(super) fn look(&mut self, tools: &mut Tools<'_>, now: Instant) {
        let group = self.group(tools);
        self.slots.iter().for_each(Slots::forget_starving);
        let is_waiting = match &self.slots {
            Some(slots) => slots.is_waiting(),
            None => is_waiting(self.queue.as_fd()),
        };
        if is_waiting {
            let starting = |process: &Process| process.state == State::Starting;
            let may_grow = self.wanted < group.processes_max && self.is_worth_growing();
            if may_grow && !self.processes.iter().any(starting) {
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
    pub(super) fn shrink(&mut self, tools: &mut Tools<'_>, now: Instant) {
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

    pub(super) fn deadlock_turn(&self) -> Option<Instant> {
        self.processes.iter().filter_map(|process| process.next_check).min()
    }

    /// Asks processes whether they are alive, and kills those that have not answered.
    pub(super) fn check_deadlocks(&mut self, tools: &mut Tools<'_>, now: Instant) {
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
                process.is_deadlocked = true;
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

    /// Whether one more process could do more: with as many as use all CPUs, requests only wait in
    /// another place, and processes that take turns on a CPU cost more than one that stays there.
    /// An application that waits for others needs more of them.
    fn is_worth_growing(&self) -> bool {
        if self.slots.as_ref().is_some_and(Slots::has_idle) {
            return false;
        }
        let cpus = available_parallelism().map_or(1, usize::from);
        self.wanted < cpus
            || self.processes.iter().filter(|process| process.is_running()).take(cpus).count()
                < cpus
    }
}
