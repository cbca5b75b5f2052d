//! Segments: the memory behind the board, which grows before it is full.
//!
//! Before it forks a child for which there is no room, the supervisor maps another segment, so that
//! old generations that take long to finish never prevent a new one from starting (Apache: AH03490,
//! AH00288: "scoreboard is full"). A child sees the segments that existed when it was forked.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::ProcessState;
use super::layout::{LoopCells, ProcessCells};
use crate::shared::map_cells;

/// Cells of processes and loops. Unused room costs no memory.
pub(super) struct Segment {
    /// The number of its first process on the board.
    pub first: usize,
    pub processes: &'static [ProcessCells],
    /// Every process occupies as many consecutive cells as it has loops.
    pub loops: &'static [LoopCells],
    pub next: OnceLock<&'static Segment>,
}

impl Segment {
    /// Maps a segment, which lasts as long as the process.
    pub(super) fn map(first: usize, processes: usize, loops: usize) -> io::Result<&'static Self> {
        Ok(Box::leak(Box::new(Self {
            first,
            processes: map_cells(processes)?,
            loops: map_cells(loops)?,
            next: OnceLock::new(),
        })))
    }

    /// This segment and its successors.
    pub(super) fn chain(&'static self) -> impl Iterator<Item = &'static Self> {
        std::iter::successors(Some(self), |segment| segment.next.get().copied())
    }

    /// The indices of a free process and of as many consecutive free loops in this segment. `used`
    /// is the number of the board's slots that were ever taken: cells beyond it are not even read,
    /// because reading would allocate their memory.
    pub(super) fn room(&self, loops: usize, used: usize) -> Option<(usize, usize)> {
        let used = used.saturating_sub(self.first).min(self.processes.len());
        let used = self.processes.get(..used)?;
        let process = used.iter().position(is_free).unwrap_or(used.len());
        self.processes.get(process)?;
        Some((process, self.room_for_loops(used, loops)?))
    }

    fn room_for_loops(&self, used: &[ProcessCells], count: usize) -> Option<usize> {
        let taken = used.iter().filter(|cells| !is_free(cells)).map(loops_of);
        gap(taken.collect(), count, self.loops.len())
    }

    /// The loops of a process.
    pub(super) fn loops(&self, cells: &ProcessCells) -> &'static [LoopCells] {
        let (first, count) = loops_of(cells);
        self.loops.get(first..first.saturating_add(count)).unwrap_or(&[])
    }
}

/// The index of `count` consecutive free places among `all`; `taken` holds index and length of each
/// occupied run.
pub(super) fn gap(mut taken: Vec<(usize, usize)>, count: usize, all: usize) -> Option<usize> {
    taken.sort_unstable();
    let mut start = 0;
    for (first, length) in taken {
        if first.saturating_sub(start) >= count {
            break;
        }
        start = start.max(first.saturating_add(length));
    }
    (start.checked_add(count)? <= all).then_some(start)
}

/// Whether no process has these cells.
pub(super) fn is_free(cells: &ProcessCells) -> bool {
    cells.state.load(Ordering::Acquire) == ProcessState::Free as u64
}

/// The index of a process's first loop, and the number of its loops.
fn loops_of(cells: &ProcessCells) -> (usize, usize) {
    let read = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    (read(cells.first_loop.load(Ordering::Relaxed)), read(cells.loops.load(Ordering::Relaxed)))
}
