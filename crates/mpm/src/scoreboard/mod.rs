//! The scoreboard: what every process and loop is doing, in memory that all of them share.
//!
//! Every cell is an atomic. A loop's cells are written by that loop alone, with relaxed stores;
//! readers take a [`Snapshot`] at any time, from any process.

mod layout;
mod slots;
mod snapshot;

use std::io;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::shared::map_cells;
use layout::{GlobalCells, LoopCells, ProcessCells};

pub use slots::{ConnectionCounts, LoopSlot, ProcessSlot, RequestNote};
pub use snapshot::{LoopSnapshot, ProcessSnapshot, Snapshot};

/// No scoreboard has room for more processes than this (Apache's limit on `ServerLimit`).
pub const PROCESSES_MAX: usize = 20_000;

/// What a loop is doing, with the letter that `mod_status` shows for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Status {
    /// `.` no process has the slot.
    #[default]
    Dead = b'.',
    /// `S` starting up.
    Starting = b'S',
    /// `_` waiting for a connection.
    Ready = b'_',
    /// `R` reading a request.
    Reading = b'R',
    /// `W` sending a reply.
    Writing = b'W',
    /// `K` keep-alive.
    KeepAlive = b'K',
    /// `D` DNS look-up.
    Dns = b'D',
    /// `C` closing a connection.
    Closing = b'C',
    /// `L` logging.
    Logging = b'L',
    /// `G` gracefully finishing.
    Graceful = b'G',
    /// `I` idle clean-up of a worker.
    IdleKill = b'I',
}

impl Status {
    /// The letter of `mod_status`.
    pub fn letter(self) -> char {
        char::from(self as u8)
    }

    fn from_letter(letter: u64) -> Self {
        const ALL: [Status; 10] = [
            Status::Starting,
            Status::Ready,
            Status::Reading,
            Status::Writing,
            Status::KeepAlive,
            Status::Dns,
            Status::Closing,
            Status::Logging,
            Status::Graceful,
            Status::IdleKill,
        ];
        ALL.into_iter().find(|status| u64::from(*status as u8) == letter).unwrap_or(Status::Dead)
    }
}

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ProcessState {
    /// The slot is free.
    #[default]
    Free,
    /// Forked, not ready yet.
    Starting,
    /// Serving.
    Serving,
    /// Told to finish.
    Quiescing,
    /// Told to stop.
    Stopping,
}

impl ProcessState {
    fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Starting,
            2 => Self::Serving,
            3 => Self::Quiescing,
            4 => Self::Stopping,
            _ => Self::Free,
        }
    }
}

/// A handle on the scoreboard; copies are the same board.
#[derive(Clone, Copy)]
pub struct Scoreboard {
    global: &'static GlobalCells,
    processes: &'static [ProcessCells],
    loops: &'static [LoopCells],
    loops_each: usize,
}

impl Scoreboard {
    /// A board with room for `processes` (counting those of old generations that are still
    /// finishing) of `loops_each` loops. Room that is never used costs no memory.
    pub fn new(processes: usize, loops_each: usize) -> io::Result<Self> {
        let processes = processes.clamp(1, PROCESSES_MAX);
        let loops_each = loops_each.max(1);
        let [global] = map_cells::<GlobalCells>(1)? else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        global.started_us.store(now_us(), Ordering::Relaxed);
        global.restarted_us.store(now_us(), Ordering::Relaxed);
        Ok(Self {
            global,
            processes: map_cells(processes)?,
            loops: map_cells(processes.saturating_mul(loops_each))?,
            loops_each,
        })
    }

    /// How many processes fit.
    pub fn process_capacity(&self) -> usize {
        self.processes.len()
    }

    /// How many loops of one process fit.
    pub fn loop_capacity(&self) -> usize {
        self.loops_each
    }

    /// Counts log lines that were dropped because a pipe was full or dead, or a disk full.
    pub fn count_dropped_log_lines(&self, lines: u64) {
        self.global.log_lines_dropped.fetch_add(lines, Ordering::Relaxed);
    }

    /// The writer's handle on process slot `index`, if there is such a slot.
    pub fn process(&self, index: usize) -> Option<ProcessSlot> {
        let cells = self.processes.get(index)?;
        Some(ProcessSlot { cells, index })
    }

    /// The writer's handle on a loop of process slot `process`, if there is such a loop.
    pub fn loop_slot(&self, process: usize, index: usize) -> Option<LoopSlot> {
        if index >= self.loops_each {
            return None;
        }
        let cells = self.loops.get(process.checked_mul(self.loops_each)?.checked_add(index)?)?;
        Some(LoopSlot { cells })
    }

    fn loops_of(&self, process: usize) -> &'static [LoopCells] {
        let start = process.saturating_mul(self.loops_each);
        self.loops.get(start..start.saturating_add(self.loops_each)).unwrap_or(&[])
    }
}

/// The supervisor's part.
impl Scoreboard {
    /// The first free process slot, now taken by a child that is about to be forked.
    pub(crate) fn claim(&self, generation: u32, slot: usize, loops: usize) -> Option<usize> {
        let index = self
            .processes
            .iter()
            .position(|cells| cells.state.load(Ordering::Relaxed) == ProcessState::Free as u64)?;
        let cells = self.processes.get(index)?;
        cells.clear();
        cells.generation.store(u64::from(generation), Ordering::Relaxed);
        cells.slot.store(slot as u64, Ordering::Relaxed);
        cells.loops.store(loops.min(self.loops_each) as u64, Ordering::Relaxed);
        cells.started_us.store(now_us(), Ordering::Relaxed);
        cells.state.store(ProcessState::Starting as u64, Ordering::Release);
        for cells in self.loops_of(index) {
            cells.clear();
        }
        for cells in self.loops_of(index).iter().take(loops) {
            cells.status.store(Status::Starting as u64, Ordering::Relaxed);
        }
        Some(index)
    }

    pub(crate) fn set_pid(&self, index: usize, pid: i32) {
        if let Some(cells) = self.processes.get(index) {
            cells.pid.store(u64::try_from(pid).unwrap_or(0), Ordering::Relaxed);
        }
    }

    pub(crate) fn set_state(&self, index: usize, state: ProcessState) {
        if let Some(cells) = self.processes.get(index) {
            cells.state.store(state as u64, Ordering::Relaxed);
        }
    }

    /// Frees the slot of a process that is dead; what it counted goes to the global counters.
    pub(crate) fn release(&self, index: usize) {
        let Some(process) = self.processes.get(index) else { return };
        for cells in self.loops_of(index) {
            let global = self.global;
            for (total, part) in [
                (&global.retired_accesses, &cells.accesses),
                (&global.retired_bytes, &cells.bytes),
                (&global.retired_busy_us, &cells.busy_us),
                (&global.retired_duration_us, &cells.duration_us),
            ] {
                total.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            cells.clear();
        }
        for (total, part) in [
            (&self.global.retired_cpu_user_us, &process.cpu_user_us),
            (&self.global.retired_cpu_system_us, &process.cpu_system_us),
        ] {
            total.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        process.clear();
    }

    /// A generation has taken over.
    pub(crate) fn begin_generation(&self, generation: u32, loops: usize) {
        self.global.generation.store(u64::from(generation), Ordering::Relaxed);
        self.global.planned_loops.store(loops as u64, Ordering::Relaxed);
        self.global.restarted_us.store(now_us(), Ordering::Relaxed);
    }

    pub(crate) fn set_stopping(&self) {
        self.global.stopping.store(1, Ordering::Relaxed);
    }

    pub(crate) fn count_crash(&self) {
        self.global.crashes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Microseconds since the epoch.
pub fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Scoreboard {
        Scoreboard::new(3, 2).unwrap()
    }

    #[test]
    fn a_slot_is_claimed_once_and_its_counts_outlive_it() {
        let board = board();
        assert_eq!(board.claim(1, 0, 2), Some(0));
        assert_eq!(board.claim(1, 1, 2), Some(1));
        board.set_pid(0, 41);
        let slot = board.loop_slot(0, 1).unwrap();
        slot.request_begin(None);
        slot.request_end(100, 7);
        slot.request_end(50, 3);
        let snapshot = board.snapshot();
        assert_eq!((snapshot.accesses, snapshot.bytes), (2, 150));
        assert_eq!((snapshot.processes.len(), snapshot.processes[0].pid), (2, 41));
        board.release(0);
        let snapshot = board.snapshot();
        assert_eq!((snapshot.accesses, snapshot.bytes, snapshot.duration_us), (2, 150, 10));
        assert_eq!(snapshot.processes.len(), 1);
        assert_eq!(board.claim(2, 0, 2), Some(0));
        assert_eq!(board.claim(2, 1, 2), Some(2));
        assert_eq!(board.claim(2, 2, 2), None);
    }

    #[test]
    fn the_note_of_a_request_reads_back_whole() {
        let board = board();
        board.claim(1, 0, 1);
        let slot = board.loop_slot(0, 0).unwrap();
        slot.request_begin(Some(&RequestNote {
            client: b"192.0.2.1",
            vhost: b"example.org:80",
            request: &[b'x'; 300],
            protocol: b"http/1.1",
        }));
        slot.set_connections(ConnectionCounts { total: 9, keep_alive: 8, ..Default::default() });
        let snapshot = board.snapshot();
        let seen = &snapshot.processes[0].loops[0];
        assert_eq!(seen.client, b"192.0.2.1");
        assert_eq!(seen.vhost, b"example.org:80");
        assert_eq!(seen.protocol, b"http/1.1");
        assert_eq!(seen.request, [b'x'; layout::REQUEST_BYTES_MAX]);
        assert_eq!((seen.connections.total, seen.connections.keep_alive), (9, 8));
        assert_eq!(seen.status.letter(), 'W');
    }

    #[test]
    fn slots_outside_the_board_are_none() {
        assert!(board().loop_slot(0, 2).is_none());
        assert!(board().loop_slot(3, 0).is_none());
        assert!(board().loop_slot(usize::MAX, 1).is_none());
        assert!(board().process(3).is_none());
    }
}
