//! When a place gets its next child: after a death, and after a failure to start one for want of
//! processes, memory or descriptors.

use std::time::{Duration, Instant};

use super::Supervisor;
use super::generation::Place;
use crate::program::Level;
use crate::scoreboard::Event;

/// A child that lives shorter than this counts as failed.
const QUICK_DEATH: Duration = Duration::from_millis(500);
/// The longest pause before a child that keeps dying is replaced.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How often a failure to start processes is logged.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// A new generation is abandoned when one of its places has failed to get a process this often; the
/// pauses add up to about three seconds.
const ATTEMPTS_MAX: u32 = 6;

/// What has been logged about failures.
#[derive(Default)]
pub(super) struct ForkLog {
    told_at: Option<Instant>,
    untold: u64,
}

impl Supervisor<'_> {
    /// Handles a failure to start the child of a place: retries later, or abandons the generation.
    pub(super) fn fork_failed(&mut self, generation: u32, slot: usize, text: &str) {
        let now = Instant::now();
        self.put_off(generation, slot, now, now);
        let failures = self.place(generation, slot).map_or(0, |place| place.failures);
        let is_staged = self.staged.as_ref().is_some_and(|staged| staged.number == generation);
        self.board.count(Event::ForkFailed);
        let log = &mut self.forks;
        log.untold += 1;
        if log.told_at.is_none_or(|at| now.saturating_duration_since(at) >= TOLD_EVERY) {
            log.told_at = Some(now);
            let count = std::mem::take(&mut log.untold);
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            self.program.log(Level::Alert, 481, &format!("{text}{times}"));
        }
        if is_staged && failures >= ATTEMPTS_MAX {
            self.abandon_staged(text);
        }
    }

    /// Schedules the place's next child: at once, or after a pause if children keep dying right
    /// after they were forked.
    pub(super) fn put_off(&mut self, generation: u32, slot: usize, forked: Instant, now: Instant) {
        let Some(place) = self.place(generation, slot) else { return };
        let is_quick = now.saturating_duration_since(forked) < QUICK_DEATH;
        place.failures = if is_quick { place.failures.saturating_add(1) } else { 0 };
        place.start_at = Some(now + pause(place.failures));
    }

    /// Whether the child that starts in this place replaces one that died or had served its share.
    pub(super) fn has_predecessor(&mut self, generation: u32, slot: usize) -> bool {
        let is_exhausted = self.children.iter().any(|child| {
            child.generation == generation && child.slot == slot && child.is_exhausted
        });
        is_exhausted || self.place(generation, slot).is_some_and(|place| place.start_at.is_some())
    }

    pub(super) fn clear_start(&mut self, generation: u32, slot: usize) {
        if let Some(place) = self.place(generation, slot) {
            place.start_at = None;
        }
    }

    pub(super) fn place(&mut self, generation: u32, slot: usize) -> Option<&mut Place> {
        let mut generations = self.current.iter_mut().chain(&mut self.staged);
        generations.find(|candidate| candidate.number == generation)?.places.get_mut(slot)
    }
}

/// The pause before a child is replaced: none after the first failure, then doubling.
fn pause(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        more => Duration::from_millis(50 << more.min(10)).min(PAUSE_MAX),
    }
}
