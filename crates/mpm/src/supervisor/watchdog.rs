//! The watchdog: a loop that does not turn any more is seen, said, and its process replaced.
//!
//! Loops of event and loop do short work only, and publish once a second that they turn. Here it
//! is looked once a second whether that has changed since: what is counted is looks and not time,
//! so that a suspended machine, a stopped server or a supervisor that got no CPU costs a loop
//! nothing, and no clock is compared with another. A silent loop whose process is watched by a
//! debugger, or got no CPU itself, is left alone.
//!
//! In worker and prefork a thread may block in its one connection for as long as that takes, and
//! nobody else waits for it: they are not watched.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::Supervisor;
use crate::child::Order;
use crate::program::Level;
use crate::scoreboard::{Event, ProcessState};

/// How often it is looked, and how often a loop publishes that it turns.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The other loops of a process that is replaced get so long to finish, at most.
const GRACE_MAX: Duration = Duration::from_secs(10);
/// A process that got less than this part of one CPU while it wanted one was starved, not silent.
const STARVED_PART: u32 = 20;

/// What is known of the processes' loops.
pub(super) struct Watchdog {
    look_at: Instant,
    watched: BTreeMap<i32, Watched>,
}

#[derive(Default)]
struct Watched {
    loops: Vec<Beat>,
    /// What the process had got of the CPUs when a loop fell silent.
    before: Option<Scheduled>,
    is_given_up: bool,
}

#[derive(Clone, Copy, Default)]
struct Beat {
    last: u64,
    /// Looks since it changed.
    silent: u32,
}

/// CPU time of all threads of a process, and how long they waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Scheduled {
    run: Duration,
    delay: Duration,
}

/// What keeps a loop from turning.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    /// A debugger watches the process.
    Traced,
    /// It wanted to run, and was not let.
    Starved,
    /// It was stopped by a signal.
    Stopped,
    /// It ran, for so long.
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
    /// Takes in what the loops have published. The first loop that has been silent for `limit`
    /// looks; where only the last loops are to count, when all of them have.
    fn look(&mut self, beats: &[u64], limit: u32, is_leaving: bool) -> Option<usize> {
        self.loops.resize(beats.len(), Beat::default());
        for (beat, now) in self.loops.iter_mut().zip(beats) {
            beat.silent = if beat.last == *now { beat.silent.saturating_add(1) } else { 0 };
            beat.last = *now;
        }
        let silent = |beat: &Beat| beat.silent >= limit;
        let first = self.loops.iter().position(silent)?;
        // A loop that has finished is silent while the process's others still finish.
        (!is_leaving || self.loops.iter().all(silent)).then_some(first)
    }

    fn is_any_silent(&self) -> bool {
        // One look without a beat is chance.
        self.loops.iter().any(|beat| beat.silent > 1)
    }

    fn forgive(&mut self) {
        self.loops.iter_mut().for_each(|beat| beat.silent = 0);
        self.before = None;
    }
}

impl Supervisor<'_> {
    /// Looks, when it is time.
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
        let looks = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX).max(1);
        let mut watched = std::mem::take(&mut self.watchdog.watched);
        watched.retain(|pid, _| self.children.iter().any(|child| child.pid.as_raw() == *pid));
        for position in 0..self.children.len() {
            let Some(child) = self.children.get(position) else { continue };
            let (pid, state) = (child.pid, child.state());
            let beats = self.board.heartbeats(child.board_slot);
            let known = watched.entry(pid.as_raw()).or_default();
            if beats.is_empty() || known.is_given_up || state == ProcessState::Stopping {
                continue;
            }
            let silent = known.look(&beats, looks, state == ProcessState::Quiescing);
            match (known.is_any_silent(), known.before) {
                (false, _) => known.before = None,
                (true, None) => known.before = Some(scheduled(pid)),
                (true, Some(_)) => {}
            }
            if let Some(index) = silent {
                let before = known.before.unwrap_or_default();
                self.judge(position, index, limit, cause(pid, before, limit), known);
            }
        }
        self.watchdog.watched = watched;
    }

    fn judge(
        &mut self,
        position: usize,
        index: usize,
        limit: Duration,
        cause: Cause,
        known: &mut Watched,
    ) {
        let Some(child) = self.children.get_mut(position) else { return };
        let silence = format!(
            "child pid {}: loop {index} has not turned for {} s",
            child.pid,
            limit.as_secs()
        );
        let why = match cause {
            Cause::Traced | Cause::Starved => {
                known.forgive();
                let why = match cause {
                    Cause::Traced => "a debugger watches it",
                    _ => "it got no CPU",
                };
                let text = format!("{silence}, but {why}: it is left alone");
                self.program.log(Level::Warning, 20021, &text);
                return;
            }
            Cause::Stopped => "it is stopped".to_owned(),
            Cause::Ran(time) => {
                format!("its process used {:.1} s of CPU meanwhile", time.as_secs_f64())
            }
        };
        known.is_given_up = true;
        let now = Instant::now();
        // Its other loops may finish what they have.
        child.order_later(Order::Graceful, now);
        child.kill_by(now + limit.min(GRACE_MAX));
        self.board.count(Event::Hung);
        self.program.log(Level::Error, 20020, &format!("{silence} ({why}): it is replaced"));
    }
}

/// Why a loop of the process may be silent, given what the process had got `before`.
fn cause(pid: Pid, before: Scheduled, limit: Duration) -> Cause {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    cause_of(&status, before, scheduled(pid), limit)
}

fn cause_of(status: &str, before: Scheduled, now: Scheduled, limit: Duration) -> Cause {
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
    if delay > limit / 2 && run < limit / STARVED_PART {
        return Cause::Starved;
    }
    Cause::Ran(run)
}

/// Nothing where the kernel doesn't tell.
fn scheduled(pid: Pid) -> Scheduled {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Scheduled::default() };
    let texts =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
    texts.fold(Scheduled::default(), |sum, text| {
        let mut words = text.split_whitespace().filter_map(|word| word.parse().ok());
        let mut next = || Duration::from_nanos(words.next().unwrap_or(0));
        Scheduled { run: sum.run + next(), delay: sum.delay + next() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_counted_from_the_last_beat() {
        let mut watched = Watched::default();
        assert_eq!(watched.look(&[5, 0], 2, false), None);
        assert_eq!(watched.look(&[6, 0], 3, false), None);
        assert_eq!(watched.look(&[6, 0], 3, false), Some(1));
        assert_eq!(watched.look(&[7, 1], 3, false), None, "it turns again");
        assert!(!watched.is_any_silent());
    }

    #[test]
    fn of_a_process_that_leaves_all_loops_count() {
        let mut watched = Watched::default();
        for beat in 1..9 {
            assert_eq!(watched.look(&[1, beat], 3, true), None);
        }
        for _ in 0..2 {
            assert_eq!(watched.look(&[1, 8], 3, true), None);
        }
        assert_eq!(watched.look(&[1, 8], 3, true), Some(0));
    }

    #[test]
    fn who_could_not_run_is_not_blamed() {
        let of = |run, delay| Scheduled {
            run: Duration::from_millis(run),
            delay: Duration::from_millis(delay),
        };
        let limit = Duration::from_secs(30);
        let cause = |status, now| cause_of(status, of(500, 100), now, limit);
        let running = "Name:\tx\nState:\tR (running)\nTracerPid:\t0\n";
        assert_eq!(cause(running, of(900, 29_000)), Cause::Starved);
        // It was late, but it ran.
        assert_eq!(cause(running, of(9_500, 29_000)), Cause::Ran(Duration::from_secs(9)));
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
