//! The watchdog: detects stalled loops and threads, logs them, and replaces their process.
//!
//! The loops of event and loop do short work only, and publish a heartbeat once a second. So do the
//! threads of worker and prefork: a wait for their client or a backend is interrupted after a
//! second at most to run timers, so that a slow client does not look like a hang. Work that may
//! take long without such a break is a job of the blocking pool, which has no threads of its own in
//! these shapes; while a thread runs a job, no heartbeat is expected.
//!
//! The supervisor checks once a second whether the heartbeats have changed. It counts checks
//! instead of time, so that a suspended machine, a stopped server or a supervisor without CPU time
//! is not held against a loop, and no clocks are compared. A silent loop is left alone if its
//! process is being traced or got no CPU time itself.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use messages::Message;
use nix::unistd::Pid;

use super::Supervisor;
use crate::child::Order;
use crate::program::Level;
use crate::scoreboard::{Event, ProcessState, Pulse};

/// The interval of checks, and of heartbeats.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Checks that a thread with one connection has more than a loop: its timers run after the wait for
/// a connection, so that heartbeats can be two seconds apart.
const LOOKS_OF_A_WAIT: u32 = 1;
/// How long the other loops of a replaced process may take to finish, at most.
const GRACE_MAX: Duration = Duration::from_secs(10);
/// A process that got less than this fraction of one CPU while it wanted one was starved.
const STARVED_PART: u32 = 20;

/// The state of the processes' loops.
pub(super) struct Watchdog {
    look_at: Instant,
    watched: BTreeMap<i32, Watched>,
}

#[derive(Default)]
struct Watched {
    loops: Vec<Beat>,
    /// The process's CPU time when a loop fell silent, and the checks since.
    before: Option<(Scheduled, u32)>,
    is_given_up: bool,
}

#[derive(Clone, Copy, Default)]
struct Beat {
    last: u64,
    /// Checks since its last change.
    silent: u32,
}

/// CPU time of all threads of a process, and the time they waited for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Scheduled {
    run: Duration,
    delay: Duration,
    /// A thread currently waits for a CPU. The kernel reports the time of a wait only when it ends.
    is_ready: bool,
}

/// The reason why a loop does not turn.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    /// A debugger traces the process.
    Traced,
    /// It was ready to run and got no CPU.
    Starved,
    /// It was stopped by a signal.
    Stopped,
    /// It ran for this long.
    Ran(Duration),
}

impl Watchdog {
    pub(super) fn new() -> Self {
        Self { look_at: Instant::now() + LOOK_EVERY, watched: BTreeMap::new() }
    }

    pub(super) fn next_turn(&self) -> Instant {
        self.look_at
    }
}

impl Watched {
    /// Records the pulses of the loops. Returns the first loop that has been silent for `limit`
    /// checks; if only the last loops count, once all of them are silent.
    fn look(&mut self, pulses: &[Pulse], limit: u32, is_leaving: bool) -> Option<usize> {
        self.loops.resize(pulses.len(), Beat::default());
        for (beat, now) in self.loops.iter_mut().zip(pulses) {
            let is_silent = beat.last == now.beat && !now.is_at_a_job;
            beat.silent = if is_silent { beat.silent.saturating_add(1) } else { 0 };
            beat.last = now.beat;
        }
        let silent = |beat: &Beat| beat.silent >= limit;
        let first = self.loops.iter().position(silent)?;
        // A loop that has finished is silent while the process's other loops still finish.
        (!is_leaving || self.loops.iter().all(silent)).then_some(first)
    }

    /// Whether a loop has been silent for a good part of `limit` checks: one or two may be chance.
    fn is_any_silent(&self, limit: u32) -> bool {
        self.loops.iter().any(|beat| beat.silent >= (limit / 4).max(1))
    }

    fn forgive(&mut self) {
        self.loops.iter_mut().for_each(|beat| beat.silent = 0);
        self.before = None;
    }
}

impl Supervisor<'_> {
    /// Checks the loops, if that is due.
    pub(super) fn watch_loops(&mut self, now: Instant) {
        if self.watchdog.look_at > now {
            return;
        }
        self.watchdog.look_at = now + LOOK_EVERY;
        let Some(limit) = self.current.as_ref().and_then(|current| current.settings.stall_limit)
        else {
            self.watchdog.watched.clear();
            return;
        };
        let looks = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX / 2).max(1);
        let mut watched = std::mem::take(&mut self.watchdog.watched);
        watched.retain(|pid, _| self.children.iter().any(|child| child.pid.as_raw() == *pid));
        for position in 0..self.children.len() {
            let Some(child) = self.children.get(position) else { continue };
            let (pid, state) = (child.pid, child.state());
            let pulses = self.board.pulses(child.board_slot);
            let is_async = self.board.is_async(child.board_slot);
            let looks = looks + if is_async { 0 } else { LOOKS_OF_A_WAIT };
            let known = watched.entry(pid.as_raw()).or_default();
            if pulses.is_empty() || known.is_given_up || state == ProcessState::Stopping {
                continue;
            }
            let silent = known.look(&pulses, looks, state == ProcessState::Quiescing);
            known.before = match (known.is_any_silent(looks), known.before) {
                (false, _) => None,
                (true, None) => Some((scheduled(pid), 0)),
                (true, Some((before, looks))) => Some((before, looks + 1)),
            };
            if let Some(index) = silent {
                let (before, looks) = known.before.unwrap_or_default();
                let silence = match is_async {
                    true => format!("loop {index} has not turned"),
                    false => format!("thread {index} has made no progress"),
                };
                let silence = format!("child pid {pid}: {silence} for {} s", limit.as_secs());
                self.judge(
                    position,
                    &silence,
                    limit,
                    cause(pid, before, LOOK_EVERY * looks),
                    known,
                );
            }
        }
        self.watchdog.watched = watched;
    }

    fn judge(
        &mut self,
        position: usize,
        silence: &str,
        limit: Duration,
        cause: Cause,
        known: &mut Watched,
    ) {
        let Some(child) = self.children.get_mut(position) else { return };
        let why = match cause {
            Cause::Traced | Cause::Starved => {
                known.forgive();
                let why = match cause {
                    Cause::Traced => "a debugger traces it",
                    _ => "it got no CPU time",
                };
                let text = format!("{silence}, but {why}; not replacing it");
                self.program.log(Level::Warning, Message::HungSpared.number(), &text);
                return;
            }
            Cause::Stopped => "it is stopped".to_owned(),
            Cause::Ran(time) => {
                format!("its process used {:.1} s of CPU meanwhile", time.as_secs_f64())
            }
        };
        known.is_given_up = true;
        let now = Instant::now();
        // Its other loops may finish their connections.
        child.order_later(Order::Graceful, now);
        child.kill_by(now + limit.min(GRACE_MAX));
        self.board.count(Event::Hung);
        self.program.log(
            Level::Error,
            Message::HungReplaced.number(),
            &format!("{silence} ({why}); replacing it"),
        );
    }
}

/// Why a loop of the process may be silent, given its CPU time `before`, which was `time` ago.
fn cause(pid: Pid, before: Scheduled, time: Duration) -> Cause {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    cause_of(&status, before, scheduled(pid), time)
}

fn cause_of(status: &str, before: Scheduled, now: Scheduled, time: Duration) -> Cause {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()
    };
    if field("TracerPid").is_some_and(|tracer| tracer != "0") {
        return Cause::Traced;
    }
    if field("State") == Some("T") {
        return Cause::Stopped;
    }
    let run = now.run.saturating_sub(before.run);
    let delay = now.delay.saturating_sub(before.delay);
    if (delay > time / 2 || now.is_ready) && run < time / STARVED_PART {
        return Cause::Starved;
    }
    Cause::Ran(run)
}

/// Zero where the kernel does not report it.
fn scheduled(pid: Pid) -> Scheduled {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Scheduled::default() };
    tasks.flatten().fold(Scheduled::default(), |sum, task| {
        let text = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let times = text("schedstat");
        let mut words = times.split_whitespace().filter_map(|word| word.parse().ok());
        let mut next = || Duration::from_nanos(words.next().unwrap_or(0));
        let is_ready =
            text("stat").rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
        Scheduled {
            run: sum.run + next(),
            delay: sum.delay + next(),
            is_ready: sum.is_ready || is_ready,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beats<const N: usize>(beats: [u64; N]) -> [Pulse; N] {
        beats.map(|beat| Pulse { beat, is_at_a_job: false })
    }

    #[test]
    fn looks_are_counted_from_the_last_beat() {
        let mut watched = Watched::default();
        assert_eq!(watched.look(&beats([5, 0]), 2, false), None);
        assert_eq!(watched.look(&beats([6, 0]), 3, false), None);
        assert_eq!(watched.look(&beats([6, 0]), 3, false), Some(1));
        assert_eq!(watched.look(&beats([7, 1]), 3, false), None, "it turns again");
        assert!(!watched.is_any_silent(3));
    }

    #[test]
    fn a_job_may_take_long() {
        let mut watched = Watched::default();
        let at_a_job = [Pulse { beat: 5, is_at_a_job: true }];
        for _ in 0..9 {
            assert_eq!(watched.look(&at_a_job, 2, false), None);
        }
        assert!(!watched.is_any_silent(3));
        assert_eq!(watched.look(&beats([5]), 2, false), None);
        assert_eq!(watched.look(&beats([5]), 2, false), Some(0), "it counts from the job's end");
    }

    #[test]
    fn of_a_process_that_leaves_all_loops_count() {
        let mut watched = Watched::default();
        for beat in 1..9 {
            assert_eq!(watched.look(&beats([1, beat]), 3, true), None);
        }
        for _ in 0..2 {
            assert_eq!(watched.look(&beats([1, 8]), 3, true), None);
        }
        assert_eq!(watched.look(&beats([1, 8]), 3, true), Some(0));
    }

    #[test]
    fn a_starved_process_is_not_replaced() {
        let of = |run, delay| Scheduled {
            run: Duration::from_millis(run),
            delay: Duration::from_millis(delay),
            is_ready: false,
        };
        let limit = Duration::from_secs(30);
        let cause = |status, now| cause_of(status, of(500, 100), now, limit);
        let running = "Name:\tx\nState:\tR (running)\nTracerPid:\t0\n";
        assert_eq!(cause(running, of(900, 29_000)), Cause::Starved);
        // It ran, although late.
        assert_eq!(cause(running, of(9_500, 29_000)), Cause::Ran(Duration::from_secs(9)));
        // The length of the current wait is not reported yet.
        let waits = Scheduled { is_ready: true, ..of(900, 100) };
        assert_eq!(cause(running, waits), Cause::Starved);
        let spins = Scheduled { is_ready: true, ..of(29_500, 100) };
        assert_eq!(cause(running, spins), Cause::Ran(Duration::from_secs(29)));
        let stopped = "State:\tT (stopped)\nTracerPid:\t0\n";
        assert_eq!(cause(stopped, of(500, 100)), Cause::Stopped);
        let traced = "State:\tt (tracing stop)\nTracerPid:\t77\n";
        assert_eq!(cause(traced, of(500, 100)), Cause::Traced);
        assert_eq!(cause("", of(500, 100)), Cause::Ran(Duration::ZERO));
    }

    #[test]
    fn the_own_process_has_run() {
        assert!(scheduled(Pid::this()).run > Duration::ZERO);
    }
}
