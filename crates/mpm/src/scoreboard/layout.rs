//! The memory layout of the scoreboard's cells.
//!
//! Cells of different writers share no cache line: the cells of the supervisor, of a process or
//! loop, and those that any process may count in, lie on separate lines. Lines are aligned in
//! pairs, because processors fetch them in pairs.

#![expect(unsafe_code, reason = "memory shared between processes")]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::companions::COMPANIONS_SHOWN_MAX;
use super::tally::{DECISIONS, EVENTS};
use crate::shared::{Cells, map_cells, map_file_cells};

/// The longest client address stored.
pub(super) const CLIENT_BYTES_MAX: usize = 64;
/// The longest virtual host stored.
pub(super) const VHOST_BYTES_MAX: usize = 64;
/// The longest request line stored.
pub(super) const REQUEST_BYTES_MAX: usize = 128;
/// The longest name of a companion stored.
pub(super) const COMPANION_BYTES_MAX: usize = 64;
/// The longest protocol stored.
pub(super) const PROTOCOL_BYTES_MAX: usize = 16;
/// Words of a CPU mask: one bit per CPU, up to 1024, as in `cpu_set_t`.
pub const MASK_WORDS: usize = 16;

/// Words of a text of `bytes`: its length and the bytes.
const fn text_words(bytes: usize) -> usize {
    1 + bytes / 8
}

/// One per server.
#[repr(C, align(128))]
pub(super) struct GlobalCells {
    pub fixed: SupervisorCells,
    pub tallies: TallyCells,
    pub programs: ProgramCells,
    pub companions: [CompanionCells; COMPANIONS_SHOWN_MAX],
}

impl GlobalCells {
    /// Maps those of a new board, with their file if the system has memfds.
    pub(super) fn map() -> io::Result<(&'static Self, Option<&'static OwnedFd>)> {
        let (cells, file): (&[Self], _) = match map_file_cells(1, None) {
            Ok((cells, file)) => (cells, Some(&*Box::leak(Box::new(file)))),
            Err(_) => (map_cells(1)?, None),
        };
        Ok((cells.first().ok_or(io::ErrorKind::OutOfMemory)?, file))
    }

    /// Maps those of another process's board.
    pub(super) fn map_file(file: OwnedFd) -> io::Result<&'static Self> {
        let (cells, _): (&[Self], _) = map_file_cells(1, Some(file))?;
        cells.first().ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

/// Written by the supervisor alone.
#[repr(C, align(128))]
pub(super) struct SupervisorCells {
    pub started_us: AtomicU64,
    pub restarted_us: AtomicU64,
    pub generation_us: AtomicU64,
    pub generation: AtomicU64,
    pub shape: AtomicU64,
    pub planned_processes: AtomicU64,
    pub planned_loops: AtomicU64,
    pub process_limit: AtomicU64,
    pub loops_each: AtomicU64,
    pub stopping: AtomicU64,
    /// One more than the highest process slot that was ever claimed.
    pub processes_used: AtomicU64,
    /// Odd while the counters of a dead process are added to the retired ones.
    pub reap_sequence: AtomicU64,
    pub cpu_user_us: AtomicU64,
    pub cpu_system_us: AtomicU64,
    pub retired: [AtomicU64; COUNTERS],
    /// The counts when the server was last restarted at once (`SIGHUP`).
    pub before_restart: [AtomicU64; COUNTERS],
    pub retired_cpu_user_us: AtomicU64,
    pub retired_cpu_system_us: AtomicU64,
}

/// Rare events, counted by any process.
#[repr(C, align(128))]
pub(super) struct TallyCells {
    pub log_lines_dropped: AtomicU64,
    pub events: [AtomicU64; EVENTS],
    pub decisions: [AtomicU64; DECISIONS],
}

/// What companions have done with programs, counted by all of them.
#[repr(C, align(128))]
pub(super) struct ProgramCells {
    pub started: AtomicU64,
    pub failed: AtomicU64,
    pub refused: AtomicU64,
}

/// One per companion.
#[repr(C, align(128))]
pub(super) struct CompanionCells {
    // Written by the supervisor.
    /// 0 if no companion has the place.
    pub pid: AtomicU64,
    pub generation: AtomicU64,
    pub name: [AtomicU64; text_words(COMPANION_BYTES_MAX)],
    /// Written by the companion.
    pub own: CompanionOwnCells,
}

/// The cells that a companion writes itself.
#[repr(C, align(128))]
pub(super) struct CompanionOwnCells {
    pub running: AtomicU64,
    pub waiting: AtomicU64,
}

/// One per process.
#[repr(C, align(128))]
pub(super) struct ProcessCells {
    // Written by the supervisor.
    pub pid: AtomicU64,
    pub generation: AtomicU64,
    pub slot: AtomicU64,
    pub shape: AtomicU64,
    pub state: AtomicU64,
    /// Its first cell among the segment's loops.
    pub first_loop: AtomicU64,
    pub loops: AtomicU64,
    /// Where its rows of counters by host begin, and how many hosts each of them has.
    pub first_row: AtomicU64,
    pub hosts: AtomicU64,
    pub started_us: AtomicU64,
    /// Written by the process.
    pub own: OwnCells,
}

/// The cells that a process writes itself.
#[repr(C, align(128))]
pub(super) struct OwnCells {
    pub cpu_user_us: AtomicU64,
    pub cpu_system_us: AtomicU64,
}

/// The counters of a loop that outlive it.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Counter {
    // Written by the loop.
    Accesses,
    Bytes,
    BusyUs,
    DurationUs,
    Accepted,
    HandedOver,
    TakenOver,
    Moved,
    // Written by the supervisor, which reads them from /proc.
    Migrations,
    RunDelayUs,
}

/// The [`Counter`]s that the loop writes come first; this is their number.
const OWN_COUNTERS: usize = Counter::Moved as usize + 1;
/// The number of [`Counter`]s.
pub(super) const COUNTERS: usize = Counter::RunDelayUs as usize + 1;

/// One per loop.
#[repr(C, align(128))]
pub(super) struct LoopCells {
    // Written by the loop.
    own: [AtomicU64; OWN_COUNTERS],
    pub status: AtomicU64,
    pub last_duration_us: AtomicU64,
    pub last_used_us: AtomicU64,
    pub heartbeat_us: AtomicU64,
    /// Jobs that the loop's thread currently runs itself, during which it does not turn.
    pub jobs: AtomicU64,
    pub connections: AtomicU64,
    pub reading: AtomicU64,
    pub writing: AtomicU64,
    pub closing: AtomicU64,
    pub resolving: AtomicU64,
    pub http2: AtomicU64,
    pub streams: AtomicU64,
    pub connection_accesses: AtomicU64,
    pub connection_bytes: AtomicU64,
    /// One more than the CPU that it last ran on; 0 if unknown.
    pub cpu: AtomicU64,
    /// The system's id of the loop's thread; 0 before it runs.
    pub thread: AtomicU64,
    /// Even while the texts are complete, odd while they are written.
    pub sequence: AtomicU64,
    pub client: [AtomicU64; text_words(CLIENT_BYTES_MAX)],
    pub vhost: [AtomicU64; text_words(VHOST_BYTES_MAX)],
    pub request: [AtomicU64; text_words(REQUEST_BYTES_MAX)],
    pub protocol: [AtomicU64; text_words(PROTOCOL_BYTES_MAX)],
    /// Written when the loop's mask is set, by the loop at first and by the supervisor later.
    pub place: PlaceCells,
}

/// Where a loop may run, and the effects of that.
#[repr(C, align(128))]
pub(super) struct PlaceCells {
    pub mask: [AtomicU64; MASK_WORDS],
    /// One more than the CPU that the plan assigned; 0 if the loop is not pinned.
    pub planned_cpu: AtomicU64,
    pub is_widened: AtomicU64,
    seen: [AtomicU64; COUNTERS - OWN_COUNTERS],
}

// SAFETY: atomics of integers and padding only.
unsafe impl Cells for GlobalCells {}
// SAFETY: atomics of integers and padding only.
unsafe impl Cells for ProcessCells {}
// SAFETY: atomics of integers and padding only.
unsafe impl Cells for LoopCells {}

impl ProcessCells {
    pub(super) fn clear(&self) {
        let cells = [
            &self.pid,
            &self.generation,
            &self.slot,
            &self.shape,
            &self.first_loop,
            &self.loops,
            &self.first_row,
            &self.hosts,
            &self.started_us,
            &self.own.cpu_user_us,
            &self.own.cpu_system_us,
        ];
        zero(cells);
        self.state.store(0, Ordering::Release);
    }
}

impl LoopCells {
    pub(super) fn clear(&self) {
        let cells = [
            &self.status,
            &self.last_duration_us,
            &self.last_used_us,
            &self.heartbeat_us,
            &self.jobs,
            &self.connections,
            &self.reading,
            &self.writing,
            &self.closing,
            &self.resolving,
            &self.http2,
            &self.streams,
            &self.connection_accesses,
            &self.connection_bytes,
            &self.cpu,
            &self.thread,
            &self.sequence,
            &self.place.planned_cpu,
            &self.place.is_widened,
        ];
        zero(cells);
        zero(self.counters());
        zero(&self.place.mask);
        // A length of 0 suffices to clear a text.
        zero(self.client.first());
        zero(self.vhost.first());
        zero(self.request.first());
        zero(self.protocol.first());
    }

    pub(super) fn counter(&self, counter: Counter) -> &AtomicU64 {
        let at = counter as usize;
        match at.checked_sub(OWN_COUNTERS) {
            None => &self.own[at],
            Some(at) => &self.place.seen[at],
        }
    }

    /// All counters, in the order of [`Counter`].
    pub(super) fn counters(&self) -> impl Iterator<Item = &AtomicU64> {
        self.own.iter().chain(&self.place.seen)
    }
}

fn zero<'c>(cells: impl IntoIterator<Item = &'c AtomicU64>) {
    for cell in cells {
        cell.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The unit that processors fetch.
    const LINE_PAIR: usize = 128;

    #[test]
    fn no_two_writers_share_a_line() {
        assert_eq!(size_of::<SupervisorCells>() % LINE_PAIR, 0);
        assert_eq!(offset_of!(GlobalCells, tallies) % LINE_PAIR, 0);
        assert_eq!(offset_of!(GlobalCells, programs) % LINE_PAIR, 0);
        assert_eq!(offset_of!(CompanionCells, own), LINE_PAIR);
        assert_eq!(offset_of!(ProcessCells, own), LINE_PAIR);
        assert_eq!(size_of::<ProcessCells>(), 2 * LINE_PAIR);
        assert_eq!(offset_of!(LoopCells, place) % LINE_PAIR, 0);
        assert_eq!(size_of::<LoopCells>() % LINE_PAIR, 0);
        assert!(offset_of!(LoopCells, last_used_us) < LINE_PAIR, "the request's counters");
    }

    #[test]
    fn every_counter_has_a_cell_of_its_writer() {
        let cells = &map_cells::<LoopCells>(1).unwrap()[0];
        let place = &raw const cells.place as usize;
        for (counter, is_own) in [
            (Counter::Accesses, true),
            (Counter::Moved, true),
            (Counter::Migrations, false),
            (Counter::RunDelayUs, false),
        ] {
            let cell = cells.counter(counter);
            assert_eq!((&raw const *cell as usize) < place, is_own, "{}", counter as usize);
            assert!(std::ptr::eq(cells.counters().nth(counter as usize).unwrap(), cell));
        }
        assert_eq!(cells.counters().count(), COUNTERS);
    }
}
