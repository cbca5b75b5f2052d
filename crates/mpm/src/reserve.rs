//! The reserve: how many threads of a generation wait for a connection, in shapes whose threads
//! have one connection each.
//!
//! The threads count themselves in shared memory. The thread whose connection makes the reserve too
//! small notifies the supervisor, which starts more processes at once instead of checking every
//! second. Besides the generation's count, each process has its own, so that the count of a killed
//! child can be subtracted.

#![expect(unsafe_code, reason = "memory shared between processes")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::child::Control;
use crate::shared::{Cells, map_cells};

/// Generations counted at the same time. Older ones share cells with newer ones; by then they have
/// been retired and count nothing.
const GENERATIONS: usize = 64;
/// Processes counted at the same time: more than there can be.
const PROCESSES: usize = 128 * 1024;

/// The counts of one generation.
#[repr(C, align(128))]
struct GenerationCells {
    /// Threads that wait.
    idle: AtomicU64,
    /// The supervisor has been notified that they are too few.
    told: AtomicU64,
}

// SAFETY: atomics of integers and padding only.
unsafe impl Cells for GenerationCells {}

/// The counts of all generations, for the supervisor.
#[derive(Clone, Copy)]
pub(crate) struct Reserves {
    generations: &'static [GenerationCells],
    processes: &'static [AtomicU64],
}

impl Reserves {
    /// Counts in memory shared with children. Errors: those of mmap(2).
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { generations: map_cells(GENERATIONS)?, processes: map_cells(PROCESSES)? })
    }

    fn generation(&self, generation: u32) -> &'static GenerationCells {
        &self.generations[generation as usize % GENERATIONS]
    }

    /// Waiting threads of the generation.
    pub(crate) fn idle(&self, generation: u32) -> usize {
        // A child that was killed between its two counts leaves the total off by one.
        let idle = self.generation(generation).idle.load(Ordering::Relaxed) as i64;
        usize::try_from(idle).unwrap_or(0)
    }

    /// Waiting threads of one process, by its slot in the scoreboard.
    pub(crate) fn idle_of(&self, board_slot: usize) -> usize {
        let cell = self.processes.get(board_slot);
        cell.map_or(0, |cell| usize::try_from(cell.load(Ordering::Relaxed)).unwrap_or(0))
    }

    /// Begins a generation: clears its cells.
    pub(crate) fn begin(&self, generation: u32) {
        let cells = self.generation(generation);
        cells.idle.store(0, Ordering::Relaxed);
        cells.told.store(0, Ordering::Relaxed);
    }

    /// Removes a dead process: its threads no longer wait.
    pub(crate) fn reap(&self, generation: u32, board_slot: usize) {
        let Some(own) = self.processes.get(board_slot) else { return };
        let left = own.swap(0, Ordering::Relaxed);
        self.generation(generation).idle.fetch_sub(left, Ordering::Relaxed);
    }

    /// Lets children report again that the reserve is too small.
    pub(crate) fn listen(&self, generation: u32) {
        self.generation(generation).told.store(0, Ordering::Relaxed);
    }

    /// The share of the child in `board_slot`.
    pub(crate) fn of_child(
        &self,
        generation: u32,
        board_slot: usize,
        least: usize,
        control: &Control,
    ) -> Option<Reserve> {
        Some(Reserve {
            cells: Arc::new(Part {
                generation: self.generation(generation),
                own: self.processes.get(board_slot)?,
                least,
                control: control.clone(),
            }),
        })
    }
}

/// A child's share of the reserve. Clones refer to the same counts.
#[derive(Clone)]
pub struct Reserve {
    cells: Arc<Part>,
}

struct Part {
    generation: &'static GenerationCells,
    own: &'static AtomicU64,
    least: usize,
    control: Control,
}

impl Reserve {
    /// Counts the thread as waiting for a connection until the result is dropped. If a connection
    /// is the reason, call [`Waiting::took`] instead of dropping it.
    pub fn wait(&self) -> Waiting<'_> {
        self.cells.own.fetch_add(1, Ordering::Relaxed);
        self.cells.generation.idle.fetch_add(1, Ordering::Relaxed);
        Waiting { part: &self.cells }
    }
}

/// A thread that waits for a connection.
pub struct Waiting<'r> {
    part: &'r Part,
}

impl Waiting<'_> {
    /// A connection has arrived. If too few threads wait now, notifies the supervisor, once until
    /// it has reacted.
    pub fn took(self) {
        let part = self.part;
        drop(self);
        let idle = part.generation.idle.load(Ordering::Relaxed) as i64;
        let is_low = idle < i64::try_from(part.least).unwrap_or(i64::MAX);
        if is_low && part.generation.told.swap(1, Ordering::Relaxed) == 0 {
            part.control.low();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.part.generation.idle.fetch_sub(1, Ordering::Relaxed);
        self.part.own.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ControlLine, Report};

    #[test]
    fn the_supervisor_hears_once_that_too_few_wait() {
        let reserves = Reserves::new().unwrap();
        let (line, control) = ControlLine::pair().unwrap();
        let reserve = reserves.of_child(3, 7, 2, &control).unwrap();
        let [first, second, third] = [reserve.wait(), reserve.wait(), reserve.wait()];
        assert_eq!((reserves.idle(3), reserves.idle_of(7)), (3, 3));
        first.took();
        assert_eq!(line.reports().0, []);
        second.took();
        third.took();
        assert_eq!(line.reports().0, [Report::Low]);
        assert_eq!(reserves.idle(3), 0);
        reserves.listen(3);
        reserve.wait().took();
        assert_eq!(line.reports().0, [Report::Low]);
    }

    #[test]
    fn what_a_killed_child_leaves_is_taken_off() {
        let reserves = Reserves::new().unwrap();
        let (_line, control) = ControlLine::pair().unwrap();
        let [killed, other] = [1, 2].map(|at| reserves.of_child(1, at, 1, &control).unwrap());
        let _waits = other.wait();
        std::mem::forget(killed.wait());
        assert_eq!(reserves.idle(1), 2);
        reserves.reap(1, 1);
        assert_eq!((reserves.idle(1), reserves.idle_of(1), reserves.idle_of(2)), (1, 0, 1));
        reserves.begin(1);
        assert_eq!(reserves.idle(1), 0);
    }
}
