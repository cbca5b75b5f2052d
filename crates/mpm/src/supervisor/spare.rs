//! Spare processes, in shapes whose threads have one connection each: more are started as soon as
//! too few threads wait, and surplus ones are ended gradually.

use std::time::{Duration, Instant};

use super::Supervisor;
use super::full::Fullness;
use super::generation::{Generation, Place};
use crate::child::Order;
use crate::program::Level;
use crate::scoreboard::Event;
use crate::settings::Spare;
use crate::shape::Shape;

/// How often the reserve is checked without a report.
const TICK: Duration = Duration::from_secs(1);
/// Processes started at once if none were started for [`CALM`].
const STEP_FIRST: usize = 8;
/// Processes started at once at most (Apache's MAX_SPAWN_RATE).
const STEP_MAX: usize = 32;
/// After this long without a start, the steps are small again.
const CALM: Duration = Duration::from_secs(1);
/// Ticks that a surplus must last before a process is ended.
const SURPLUS_TICKS: u32 = 2;
/// Processes ended per tick at most.
const ENDED_MAX: usize = 16;
/// The controller of the number of processes.
#[derive(Default)]
pub(super) struct Balance {
    /// When the reserve is checked next.
    due: Option<Instant>,
    /// When the last periodic check was; `None` before the generation serves.
    ticked: Option<Instant>,
    /// When processes were last started, and how many at most.
    grown: Option<(Instant, usize)>,
    /// Consecutive ticks with a surplus.
    surplus: u32,
}

impl Balance {
    /// Begins with a generation that now serves. Earlier reports of its children were ignored.
    pub(super) fn begin(&mut self, now: Instant) {
        self.due = Some(now);
        self.ticked = Some(now);
    }

    /// How many processes may be started now: twice as many as in the last step.
    fn step(&mut self, now: Instant) -> usize {
        let step = match self.grown {
            Some((at, step)) if now.saturating_duration_since(at) < CALM => step * 2,
            _ => STEP_FIRST,
        };
        let step = step.min(STEP_MAX);
        self.grown = Some((now, step));
        step
    }

    /// How many processes may be ended in this tick: none at first, then doubling.
    fn pace(&mut self, has_surplus: bool) -> usize {
        self.surplus = if has_surplus { self.surplus.saturating_add(1) } else { 0 };
        match self.surplus.checked_sub(SURPLUS_TICKS) {
            None => 0,
            Some(past) => (1usize << past.min(8)).min(ENDED_MAX),
        }
    }
}

/// The counts of a generation's threads and processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    /// Threads of each process.
    threads: usize,
    /// Wanted processes.
    wanted: usize,
    /// Serving processes.
    serving: usize,
    /// Waiting threads.
    idle: usize,
    /// Connections that no thread has accepted yet.
    queued: usize,
}

impl Count {
    /// Threads that wait, or will once their process is ready.
    fn expected(&self) -> usize {
        self.idle + self.wanted.saturating_sub(self.serving) * self.threads
    }

    /// The number of missing processes, at most `step`.
    fn missing(&self, spare: &Spare, step: usize) -> usize {
        let threads = spare.least.saturating_sub(self.expected());
        if threads == 0 {
            return 0;
        }
        let processes = (threads + self.queued).div_ceil(self.threads.max(1));
        processes.min(step).min(spare.processes_max.saturating_sub(self.wanted))
    }

    /// The number of surplus processes, at most `pace`.
    fn surplus(&self, spare: &Spare, pace: usize) -> usize {
        if self.serving < self.wanted || self.idle <= spare.most {
            return 0;
        }
        let processes = (self.idle - spare.most).div_ceil(self.threads.max(1));
        processes.min(pace).min(self.wanted.saturating_sub(1))
    }
}

impl Supervisor<'_> {
    /// Schedules a check of the reserve in this turn.
    pub(super) fn look_at_reserve(&mut self) {
        if let Some(generation) = &mut self.current {
            generation.balance.due = Some(Instant::now());
        }
    }

    /// When the reserve is checked next.
    pub(super) fn next_balance(&self) -> Option<Instant> {
        let generation = self.current.as_ref()?;
        generation.settings.spare?;
        let tick = generation.balance.ticked? + TICK;
        Some(generation.balance.due.map_or(tick, |due| due.min(tick)))
    }

    /// Starts or ends processes, so that neither too few nor too many threads wait.
    pub(super) fn balance(&mut self, now: Instant) {
        if self.stopping.is_some() || self.next_balance().is_none_or(|due| due > now) {
            return;
        }
        let Some(generation) = &mut self.current else { return };
        let Some(spare) = generation.settings.spare else { return };
        let is_tick =
            generation.balance.ticked.is_none_or(|at| now.saturating_duration_since(at) >= TICK);
        generation.balance.due = None;
        if is_tick {
            generation.balance.ticked = Some(now);
        }
        let number = generation.number;
        if is_tick || generation.wanted() < spare.processes_max {
            // Precedes the count: a child whose thread takes a connection after it reports again.
            self.reserves.listen(number);
        }
        let Some(count) = self.count_threads() else { return };
        if count.expected() < spare.least {
            self.grow(&spare, count, now);
        }
        if is_tick {
            self.shrink(&spare, count);
        }
    }

    fn count_threads(&self) -> Option<Count> {
        let generation = self.current.as_ref()?;
        let number = generation.number;
        let serving = (0..generation.places.len())
            .filter(|slot| generation.is_wanted(*slot) && self.has_ready_child(number, *slot))
            .count();
        Some(Count {
            threads: generation.settings.shape.loops_per_process(),
            wanted: generation.wanted(),
            serving,
            idle: self.reserves.idle(number),
            queued: self.listeners.queued(),
        })
    }

    fn grow(&mut self, spare: &Spare, count: Count, now: Instant) {
        if count.wanted >= spare.processes_max {
            if count.serving >= count.wanted {
                self.is_full(spare, count, now);
            }
            return;
        }
        let Some(generation) = &mut self.current else { return };
        let again = generation.balance.grown.is_some_and(|(at, _)| now - at < CALM);
        let step = generation.balance.step(now);
        let more = count.missing(spare, step);
        generation.open_places(more);
        if again {
            let text = busy_text(&generation.settings.shape, more, count);
            self.program.log(Level::Info, text.0, &text.1);
        }
        self.fill_places(now);
    }

    fn shrink(&mut self, spare: &Spare, count: Count) {
        let Some(generation) = &mut self.current else { return };
        let has_surplus = count.surplus(spare, 1) > 0;
        let pace = generation.balance.pace(has_surplus);
        let number = generation.number;
        let mut idle: Vec<(usize, usize)> = self
            .children
            .iter()
            .enumerate()
            .filter(|(_, child)| child.generation == number && child.is_ready_to_serve())
            .map(|(position, child)| (self.reserves.idle_of(child.board_slot), position))
            .collect();
        // The most idle first; among equals, the ones started last.
        idle.sort_unstable_by(|one, other| other.cmp(one));
        let now = Instant::now();
        for (_, position) in idle.into_iter().take(count.surplus(spare, pace)) {
            let Some(child) = self.children.get_mut(position) else { continue };
            child.order_later(Order::Leave, now);
            if let Some(place) = generation.places.get_mut(child.slot) {
                *place = Place::closed();
            }
        }
    }

    /// Whether too few threads wait and no more processes may be started.
    fn is_full(&mut self, spare: &Spare, count: Count, now: Instant) {
        if count.idle == 0 && count.queued > 0 {
            self.board.count(Event::ShapeFull);
        }
        let is_near = count.idle > 0 && count.idle < spare.least;
        let how = if is_near { Fullness::Near } else { Fullness::Reached };
        self.tell_full(how, now);
    }
}

impl Generation {
    /// The wanted number of processes.
    pub(super) fn wanted(&self) -> usize {
        self.places.iter().filter(|place| !place.is_closed).count()
    }

    /// Whether the place should have a process.
    pub(super) fn is_wanted(&self, slot: usize) -> bool {
        self.places.get(slot).is_some_and(|place| !place.is_closed)
    }

    /// Opens more places, closed ones first.
    fn open_places(&mut self, mut more: usize) {
        for place in self.places.iter_mut().filter(|place| place.is_closed) {
            if more == 0 {
                return;
            }
            *place = Place::default();
            more -= 1;
        }
        self.places.resize(self.places.len() + more, Place::default());
    }
}

fn busy_text(shape: &Shape, more: usize, count: Count) -> (u32, String) {
    let (number, hint, threads, are) = match shape {
        Shape::Prefork { .. } => (162, "StartServers, or Min/MaxSpareServers", "", "there are"),
        _ => (
            289,
            "StartServers, ThreadsPerChild or Min/MaxSpareThreads",
            " threads",
            "there are around",
        ),
    };
    let (idle, total) = (count.idle, count.wanted);
    let text = format!(
        "server seems busy, (you may need to increase {hint}), spawning {more} children, {are} \
         {idle} idle{threads}, and {total} total children"
    );
    (number, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFORK: Spare = Spare { least: 5, most: 10, processes_max: 256 };
    const WORKER: Spare = Spare { least: 75, most: 250, processes_max: 16 };

    fn prefork(wanted: usize, serving: usize, idle: usize, queued: usize) -> Count {
        Count { threads: 1, wanted, serving, idle, queued }
    }

    #[test]
    fn what_is_missing_is_started_at_once_and_what_waits_counts() {
        assert_eq!(prefork(6, 6, 6, 0).missing(&PREFORK, 8), 0);
        assert_eq!(prefork(6, 6, 4, 0).missing(&PREFORK, 8), 1);
        assert_eq!(prefork(6, 6, 0, 26).missing(&PREFORK, 8), 8);
        assert_eq!(prefork(14, 14, 0, 18).missing(&PREFORK, 16), 16);
        assert_eq!(prefork(14, 6, 0, 18).missing(&PREFORK, 16), 0, "eight are starting");
        assert_eq!(prefork(250, 250, 0, 100).missing(&PREFORK, 32), 6);
        let count = Count { threads: 25, wanted: 3, serving: 3, idle: 0, queued: 10 };
        assert_eq!(count.missing(&WORKER, 8), 4);
    }

    #[test]
    fn steps_double_and_start_again_after_a_calm() {
        let mut balance = Balance::default();
        let now = Instant::now();
        let steps: Vec<usize> = (0..4).map(|_| balance.step(now)).collect();
        assert_eq!(steps, [8, 16, 32, 32]);
        assert_eq!(balance.step(now + CALM), 8);
    }

    #[test]
    fn surplus_processes_go_slowly_and_only_when_it_lasts() {
        let mut balance = Balance::default();
        let mut count = prefork(100, 100, 100, 0);
        let mut ended = Vec::new();
        for _ in 0..9 {
            let pace = balance.pace(count.surplus(&PREFORK, 1) > 0);
            let gone = count.surplus(&PREFORK, pace);
            ended.push(gone);
            count = prefork(count.wanted - gone, count.wanted - gone, count.idle - gone, 0);
        }
        assert_eq!(ended, [0, 1, 2, 4, 8, 16, 16, 16, 16]);
        assert_eq!(balance.pace(false), 0);
        assert_eq!(prefork(12, 11, 12, 0).surplus(&PREFORK, 8), 0, "one is still starting");
        assert_eq!(prefork(10, 10, 10, 0).surplus(&PREFORK, 8), 0);
        let count = Count { threads: 25, wanted: 16, serving: 16, idle: 251, queued: 0 };
        assert_eq!(count.surplus(&WORKER, 4), 1);
    }
}
