//! The supervisor's loop.

use std::io::{self};
use std::os::fd::AsFd;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::signals::Request;
use super::{DRAIN_DELAY, MAINTENANCE_INTERVAL, Stopping, Supervisor};
use crate::child::Order;
use crate::companion::COMPANION_END_DEADLINE;
use crate::notify;
use crate::pipes::READER_END_DEADLINE;
use crate::program::Level;

impl Supervisor<'_> {
    /// Turns until the server has stopped. Returns the exit status.
    pub(super) fn supervise(mut self) -> i32 {
        loop {
            self.reap();
            self.do_what_is_due(Instant::now());
            self.publish_cpu_times();
            if self.stopping.is_some() && self.children.is_empty() {
                break;
            }
            let ready = self.wait(self.next_turn());
            for position in ready {
                self.read_reports(position);
            }
            for request in self.signals.read() {
                self.obey(request);
            }
        }
        self.end_readers();
        self.remove_pid_file();
        let status = self.exit.unwrap_or(0);
        if let Some(starter) = self.starter.take() {
            starter.failed(if status == 0 { 1 } else { status });
        }
        status
    }

    fn do_what_is_due(&mut self, now: Instant) {
        self.fill_places(now);
        self.commit_when_ready();
        self.balance(now);
        self.watch_loops(now);
        self.give_orders(now);
        self.continue_upgrade(now);
        for text in self.pipes.turn(now) {
            let text = format!("unable to restart piped log program '{text}'");
            self.program.log(Level::Error, 104, &text);
        }
        self.turn_companions(now);
        self.end_old_readers(now);
        self.adapt(now);
        if self.close_retired_at.is_some_and(|at| at <= now) {
            self.close_retired_at = None;
            self.listeners.close_retired();
        }
        if self.maintain_at <= now {
            self.maintain_at = now + MAINTENANCE_INTERVAL;
            self.program.maintain(&self.shared);
        }
        let is_overdue = self
            .stopping
            .as_ref()
            .is_some_and(|stopping| stopping.deadline.is_some_and(|deadline| deadline <= now));
        if is_overdue {
            self.stop(false);
        }
    }

    fn publish_cpu_times(&self) {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return };
        let [user_us, system_us] = [usage.user_time(), usage.system_time()]
            .map(|time| u64::try_from(time.num_microseconds()).unwrap_or(0));
        self.board.set_supervisor_cpu_times(user_us, system_us);
    }

    fn next_turn(&self) -> Instant {
        [
            self.next_fill(),
            self.next_order(),
            self.next_balance(),
            self.pipes.next_turn(),
            self.companions.next_turn(),
            self.close_retired_at,
            self.upgrade.next_turn(),
            self.placement.next_turn(),
            Some(self.watchdog.next_turn()),
            self.stopping.as_ref().and_then(|stopping| stopping.deadline),
            Some(self.maintain_at),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(self.maintain_at)
    }

    /// Waits for an event or until `until`. Returns the positions of children with reports.
    fn wait(&self, until: Instant) -> Vec<usize> {
        let open: Vec<usize> =
            (0..self.children.len()).filter(|at| !self.children[*at].is_line_closed).collect();
        let mut polled = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        polled
            .extend(open.iter().map(|at| {
                PollFd::from_borrowed_fd(self.children[*at].line.as_fd(), PollFlags::IN)
            }));
        let timeout = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) | Err(_) => Vec::new(),
            Ok(_) => open
                .into_iter()
                .zip(polled.iter().skip(1))
                .filter(|(_, fd)| !fd.revents().is_empty())
                .map(|(at, _)| at)
                .collect(),
        }
    }

    fn obey(&mut self, request: Request) {
        match request {
            Request::Reap => {}
            Request::Graceful => self.restart(Order::Graceful),
            Request::Restart => self.restart(Order::Stop),
            Request::Upgrade => self.want_upgrade(),
            Request::GracefulStop => {
                if self.stopping.is_none() {
                    let text = "caught SIGWINCH, shutting down gracefully";
                    self.program.log(Level::Notice, 492, text);
                    self.stop(true);
                }
            }
            Request::Stop => {
                let is_news = self.stopping.as_ref().is_none_or(|stopping| stopping.is_graceful);
                if is_news {
                    self.program.log(Level::Notice, 491, "caught SIGTERM, shutting down");
                    self.stop(false);
                }
            }
        }
    }

    /// Begins the shutdown. A graceful one accepts what is queued before listeners are closed, and
    /// lets children finish their connections within GracefulShutdownTimeout.
    pub(super) fn stop(&mut self, is_graceful: bool) {
        let now = Instant::now();
        self.board.set_stopping();
        if self.stopping.is_none() {
            notify::stopping(if is_graceful { "Finishing" } else { "Stopping" });
        }
        let order = if is_graceful { Order::Graceful } else { Order::Stop };
        let when = if is_graceful { now + DRAIN_DELAY } else { now };
        if is_graceful {
            // As in httpd, the pid file then shows no server, so that another can be started while
            // this one finishes.
            self.remove_pid_file();
            self.listeners.retire_all();
            self.close_retired_at = Some(when);
        }
        for child in &mut self.children {
            child.order_later(order, when);
        }
        let limit = self.current.as_ref().and_then(|c| c.settings.graceful_shutdown_timeout);
        let deadline = limit.filter(|_| is_graceful).map(|limit| when + limit);
        self.stopping = Some(Stopping { is_graceful, deadline });
    }

    /// Lets companions end, and log readers read to the end; a reader that exceeds its deadline is
    /// sent SIGTERM and left behind.
    pub(super) fn end_readers(&mut self) {
        self.program.ended();
        self.companions.end(|_| true, Instant::now());
        let give_up = Instant::now() + 2 * COMPANION_END_DEADLINE;
        while self.companions.is_running() && Instant::now() < give_up {
            self.wait(self.companions.next_turn().unwrap_or(give_up));
            self.signals.read();
            self.reap();
            self.turn_companions(Instant::now());
        }
        if self.pipes.is_running() {
            self.program.close_logs();
        }
        let begun = Instant::now();
        self.pipes.end(|_| true, begun);
        let give_up = begun + 2 * READER_END_DEADLINE;
        while self.pipes.is_running() && Instant::now() < give_up {
            self.wait(self.pipes.next_turn().unwrap_or(give_up));
            self.signals.read();
            self.reap();
            self.pipes.turn(Instant::now());
        }
        let _ = io::Write::flush(&mut io::stderr());
    }
}
