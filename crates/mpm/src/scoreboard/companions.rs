//! Companions on the scoreboard, and what they do with programs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::{CompanionCells, GlobalCells, ProgramCells};
use super::{Event, Scoreboard};
use crate::shared::{load_bytes, store_bytes};

/// The most companions that have a place on the board: those of a few programs of `RewriteMap` in
/// several generations. The programs of others are counted, but not as running.
pub const COMPANIONS_SHOWN_MAX: usize = 64;

/// A companion.
#[derive(Clone, Debug, Default)]
pub struct CompanionSnapshot {
    /// Its name in messages.
    pub name: Vec<u8>,
    /// Process id.
    pub pid: u32,
    /// The generation that it belongs to.
    pub generation: u32,
    /// Programs of its that run.
    pub running: u64,
    /// Orders that wait for one of them to end.
    pub waiting: u64,
}

/// The companions, and what they have done with programs since the server's start.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// The companions that run.
    pub companions: Vec<CompanionSnapshot>,
    /// Companions that were replaced because they had died.
    pub replaced: u64,
    /// Programs started.
    pub started: u64,
    /// Programs that could not be started.
    pub failed: u64,
    /// Orders refused because too many waited.
    pub refused: u64,
}

impl Programs {
    /// The numbers of programs that run, and of orders that wait.
    pub fn now(&self) -> [u64; 2] {
        // A child can write to the board.
        let sum = |of: fn(&CompanionSnapshot) -> u64| {
            self.companions.iter().map(of).fold(0, u64::saturating_add)
        };
        [sum(|one| one.running), sum(|one| one.waiting)]
    }
}

/// The counters of a companion.
#[derive(Clone, Copy)]
pub struct ProgramCounts {
    own: Option<&'static CompanionCells>,
    all: &'static ProgramCells,
}

impl ProgramCounts {
    /// A program was started.
    pub fn started(&self) {
        self.all.started.fetch_add(1, Ordering::Relaxed);
    }

    /// A program could not be started.
    pub fn failed(&self) {
        self.all.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// An order was refused.
    pub fn refused(&self) {
        self.all.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// So many programs run now, and so many orders wait.
    pub fn set_running(&self, running: usize, waiting: usize) {
        if let Some(cells) = self.own {
            cells.own.running.store(running as u64, Ordering::Relaxed);
            cells.own.waiting.store(waiting as u64, Ordering::Relaxed);
        }
    }
}

impl ProgramCounts {
    /// Those on another process's board, whose file this is.
    ///
    /// # Errors
    /// It can't be mapped.
    pub(crate) fn of_file(file: OwnedFd, place: Option<usize>) -> io::Result<Self> {
        Ok(Self::on(GlobalCells::map_file(file)?, place))
    }

    /// Those on no board.
    pub(crate) fn of_none() -> io::Result<Self> {
        Ok(Self::on(GlobalCells::map()?.0, None))
    }

    fn on(cells: &'static GlobalCells, place: Option<usize>) -> Self {
        let own = place.and_then(|place| cells.companions.get(place));
        Self { own, all: &cells.programs }
    }
}

impl Scoreboard {
    /// The file in which a program that this process executes finds its counters.
    pub(crate) fn file(&self) -> Option<BorrowedFd<'static>> {
        self.file.map(AsFd::as_fd)
    }

    /// The counters of the companion at a place, or of one without.
    pub fn program_counts(&self, place: Option<usize>) -> ProgramCounts {
        ProgramCounts::on(self.global, place)
    }

    /// Takes a place for a companion that is about to be forked; `None` if all are taken.
    pub(crate) fn claim_companion(&self, generation: u32, name: &str) -> Option<usize> {
        let is_free = |cells: &CompanionCells| cells.generation.load(Ordering::Relaxed) == 0;
        let place = self.global.companions.iter().position(is_free)?;
        let cells = self.global.companions.get(place)?;
        store_bytes(&cells.name, name.as_bytes());
        cells.generation.store(u64::from(generation), Ordering::Relaxed);
        Some(place)
    }

    /// The companion at a place is this process from now on, and is shown.
    pub(crate) fn set_companion(&self, place: usize, pid: i32) {
        if let Some(cells) = self.global.companions.get(place) {
            cells.pid.store(u64::try_from(pid).unwrap_or(0), Ordering::Release);
        }
    }

    /// The companion at a place has ended, and its programs with it.
    pub(crate) fn release_companion(&self, place: usize) {
        let Some(cells) = self.global.companions.get(place) else { return };
        for cell in [&cells.pid, &cells.own.running, &cells.own.waiting, &cells.generation] {
            cell.store(0, Ordering::Release);
        }
    }

    /// Reads what concerns companions.
    pub fn programs(&self) -> Programs {
        let (all, events) = (&self.global.programs, &self.global.tallies.events);
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Programs {
            companions: self.global.companions.iter().filter_map(snapshot).collect(),
            replaced: read(&events[Event::CompanionReplaced as usize]),
            started: read(&all.started),
            failed: read(&all.failed),
            refused: read(&all.refused),
        }
    }
}

fn snapshot(cells: &CompanionCells) -> Option<CompanionSnapshot> {
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let pid = number(cells.pid.load(Ordering::Acquire));
    (pid != 0).then(|| CompanionSnapshot {
        name: load_bytes(&cells.name),
        pid,
        generation: number(cells.generation.load(Ordering::Relaxed)),
        running: cells.own.running.load(Ordering::Relaxed),
        waiting: cells.own.waiting.load(Ordering::Relaxed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_companion_is_shown_while_it_runs_and_its_counts_stay() {
        let board = Scoreboard::new(1, 1).unwrap();
        let place = board.claim_companion(1, "one");
        let counts = board.program_counts(place);
        assert!(board.programs().companions.is_empty(), "not forked yet");
        board.set_companion(place.unwrap(), 41);
        (0..3).for_each(|_| counts.started());
        counts.failed();
        counts.set_running(2, 7);
        let other = board.claim_companion(2, "other");
        assert_ne!(other, place);
        board.set_companion(other.unwrap(), 42);
        let seen = board.programs();
        let [one, _] = seen.companions.as_slice() else { panic!("{:?}", seen.companions) };
        assert_eq!((one.name.as_slice(), one.pid, one.generation), (&b"one"[..], 41, 1));
        assert_eq!((one.running, one.waiting), (2, 7));
        board.release_companion(place.unwrap());
        let seen = board.programs();
        assert_eq!((seen.companions.len(), seen.companions[0].running), (1, 0));
        assert_eq!((seen.started, seen.failed, seen.refused), (3, 1, 0));
        assert_eq!(board.claim_companion(3, "third"), place);
    }

    #[test]
    fn one_too_many_is_counted_and_not_shown() {
        let board = Scoreboard::new(1, 1).unwrap();
        for number in 0..COMPANIONS_SHOWN_MAX {
            let place = board.claim_companion(1, "x").unwrap();
            board.set_companion(place, i32::try_from(number).unwrap() + 1);
        }
        let place = board.claim_companion(1, "x");
        assert_eq!(place, None);
        let counts = board.program_counts(place);
        counts.set_running(5, 0);
        counts.refused();
        let seen = board.programs();
        assert_eq!(seen.companions.len(), COMPANIONS_SHOWN_MAX);
        assert_eq!((seen.now(), seen.refused), ([0, 0], 1));
    }
}
