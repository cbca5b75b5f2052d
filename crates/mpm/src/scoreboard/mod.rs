//! The scoreboard: the state of every process and loop, in memory that all of them share.
//!
//! Every cell is an atomic. A loop's cells are written by that loop alone, with relaxed stores;
//! readers take a [`Snapshot`] at any time, from any process.

mod companions;
mod hosts;
mod layout;
mod segment;
mod slots;
mod snapshot;
mod tally;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::child::Order;
use crate::settings::Settings;
use crate::shape::Shape;
use hosts::Hosts;
use layout::{GlobalCells, ProcessCells};
use segment::Segment;

pub use companions::{COMPANIONS_SHOWN_MAX, CompanionSnapshot, ProgramCounts, Programs};
pub use hosts::{BUCKETS, CLASSES, HostCounters, HostCounts, LATENCY_BOUNDS_US};
pub use layout::MASK_WORDS;
pub use slots::{ConnectionCounts, ConnectionGauges, Gauge, LoopSlot, ProcessSlot, RequestNote};
pub use snapshot::{LoopSnapshot, ProcessSnapshot, Snapshot};
pub use tally::{Decision, Event};

/// The largest initial number of processes (Apache's limit on `ServerLimit`, for four generations).
pub const PROCESSES_MAX: usize = 80_000;

/// The largest number of loops in a segment of the scoreboard: half a GiB of addresses.
const SEGMENT_LOOPS_MAX: usize = 512 * 1024;

/// The largest number of segments of a board.
const SEGMENTS_MAX: usize = 64;

/// The state of a loop, with the letter that `mod_status` shows for it.
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
    /// The letter that `mod_status` shows.
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

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ProcessState {
    /// The slot is free.
    #[default]
    Free,
    /// Forked, not ready yet.
    Starting,
    /// Serving.
    Serving,
    /// Ordered to finish.
    Quiescing,
    /// Ordered to stop.
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

/// The serving shape, by name only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ShapeKind {
    /// Processes with loops.
    #[default]
    Event,
    /// Processes with threads.
    Worker,
    /// Processes.
    Prefork,
    /// One loop.
    Loop,
}

impl ShapeKind {
    fn of(shape: &Shape) -> Self {
        match shape {
            Shape::Event { .. } => Self::Event,
            Shape::Worker { .. } => Self::Worker,
            Shape::Prefork { .. } => Self::Prefork,
            Shape::Loop => Self::Loop,
        }
    }

    fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Worker,
            2 => Self::Prefork,
            3 => Self::Loop,
            _ => Self::Event,
        }
    }

    /// The MPM's name in Apache.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Worker => "worker",
            Self::Prefork => "prefork",
            Self::Loop => "loop",
        }
    }

    /// Whether a loop has many connections, as opposed to one at a time.
    pub fn is_async(self) -> bool {
        matches!(self, Self::Event | Self::Loop)
    }
}

/// A handle to the scoreboard; copies refer to the same board.
#[derive(Clone, Copy)]
pub struct Scoreboard {
    global: &'static GlobalCells,
    /// The file of the global cells; `None` if the system has no memfd.
    file: Option<&'static OwnedFd>,
    first: &'static Segment,
    hosts: &'static Hosts,
}

impl Scoreboard {
    /// Creates a board with initial room for `processes` (including those of old generations that
    /// are still finishing) of `loops_each` loops. It grows on demand. Unused room costs no memory.
    pub fn new(processes: usize, loops_each: usize) -> io::Result<Self> {
        let processes = processes.clamp(1, PROCESSES_MAX);
        let loops = processes.saturating_mul(loops_each.max(1)).min(SEGMENT_LOOPS_MAX);
        let (global, file) = GlobalCells::map()?;
        global.fixed.started_us.store(now_us(), Ordering::Relaxed);
        global.fixed.restarted_us.store(now_us(), Ordering::Relaxed);
        let first = Segment::map(0, processes, loops.max(loops_each))?;
        Ok(Self { global, file, first, hosts: Box::leak(Box::default()) })
    }

    /// A board of one process with one loop, and that loop's slot: for a loop without a supervisor.
    pub fn of_one_loop() -> io::Result<(Self, LoopSlot)> {
        let board = Self::new(1, 1)?;
        let slot = board.claim(1, 0, &Shape::Loop).and_then(|index| board.loop_slot(index, 0));
        Ok((board, slot.ok_or(io::ErrorKind::OutOfMemory)?))
    }

    /// The writer's handle to process slot `index`, if the slot exists.
    pub fn process(&self, index: usize) -> Option<ProcessSlot> {
        let (_, cells) = self.find(index)?;
        Some(ProcessSlot { cells, index })
    }

    /// The writer's handle to a loop of process slot `process`, if that process has such a loop.
    pub fn loop_slot(&self, process: usize, index: usize) -> Option<LoopSlot> {
        let (segment, cells) = self.find(process)?;
        let row = self.hosts.row(cells, index);
        Some(LoopSlot { cells: segment.loops(cells).get(index)?, row })
    }

    /// The counters of a loop for the hosts with these labels, in their order; `None` if the
    /// configuration of its process required none.
    pub fn host_counters(&self, slot: &LoopSlot, labels: &[Vec<u8>]) -> Option<HostCounters> {
        self.hosts.counters(slot.row, labels)
    }

    /// The number of slots that were ever taken. A child can write to the board, so every number
    /// read from it is held against what the board has room for.
    fn used(&self) -> usize {
        let used = self.global.fixed.processes_used.load(Ordering::Acquire) as usize;
        let room = self.first.chain().last().map_or(0, |last| last.first + last.processes.len());
        used.min(room)
    }

    fn find(&self, process: usize) -> Option<(&'static Segment, &'static ProcessCells)> {
        let holds = |segment: &&Segment| process < segment.first + segment.processes.len();
        let segment = self.first.chain().find(holds)?;
        let cells = segment.processes.get(process.checked_sub(segment.first)?)?;
        Some((segment, cells))
    }
}

/// The supervisor's side.
impl Scoreboard {
    /// Claims the first free process slot for a child that is about to be forked. `None` only if
    /// the board is full and there is no memory to grow it.
    pub(crate) fn claim(&self, generation: u32, slot: usize, shape: &Shape) -> Option<usize> {
        let (fixed, loops) = (&self.global.fixed, shape.loops_of(slot));
        let used = self.used();
        let room = |segment: &'static Segment| {
            let (process, first_loop) = segment.room(loops, used)?;
            Some((segment, process, first_loop))
        };
        let found = self.first.chain().find_map(room).or_else(|| room(self.grow(loops)?));
        let (segment, process, first_loop) = found?;
        let living = (0..used).filter_map(|index| Some(self.find(index)?.1));
        let (first_row, hosts) = self.hosts.room(living, loops).unwrap_or_default();
        let cells = segment.processes.get(process)?;
        cells.clear();
        cells.first_row.store(first_row as u64, Ordering::Relaxed);
        cells.hosts.store(hosts as u64, Ordering::Relaxed);
        cells.generation.store(u64::from(generation), Ordering::Relaxed);
        cells.slot.store(slot as u64, Ordering::Relaxed);
        cells.shape.store(ShapeKind::of(shape) as u64, Ordering::Relaxed);
        cells.first_loop.store(first_loop as u64, Ordering::Relaxed);
        cells.loops.store(loops as u64, Ordering::Relaxed);
        cells.started_us.store(now_us(), Ordering::Relaxed);
        for cells in segment.loops(cells) {
            cells.clear();
            cells.status.store(Status::Starting as u64, Ordering::Relaxed);
        }
        cells.state.store(ProcessState::Starting as u64, Ordering::Release);
        let index = segment.first + process;
        fixed.processes_used.store(used.max(index + 1) as u64, Ordering::Release);
        Some(index)
    }

    /// Counts the hosts with these labels from now on, in children that are forked later. Does
    /// nothing without labels.
    pub(crate) fn know_hosts(&self, labels: &[Vec<u8>]) -> io::Result<()> {
        self.hosts.know(labels)
    }

    /// Adds a segment, as large as the first one, or large enough for a process with `loops`.
    fn grow(&self, loops: usize) -> Option<&'static Segment> {
        let last = self.first.chain().take(SEGMENTS_MAX).last()?;
        let room = self.first.loops.len().max(loops);
        let first = last.first + last.processes.len();
        let segment = Segment::map(first, self.first.processes.len(), room).ok()?;
        // Fails if the board already has its last segment.
        last.next.set(segment).is_ok().then_some(segment)
    }

    pub(crate) fn set_pid(&self, index: usize, pid: i32) {
        if let Some((_, cells)) = self.find(index) {
            cells.pid.store(u64::try_from(pid).unwrap_or(0), Ordering::Relaxed);
        }
    }

    pub(crate) fn set_state(&self, index: usize, state: ProcessState) {
        if let Some((_, cells)) = self.find(index) {
            cells.state.store(state as u64, Ordering::Relaxed);
        }
    }

    /// Frees the slot of a dead process; its counts are kept.
    pub(crate) fn release(&self, index: usize) {
        let Some((segment, process)) = self.find(index) else { return };
        let fixed = &self.global.fixed;
        let reap_sequence = fixed.reap_sequence.load(Ordering::Relaxed) | 1;
        fixed.reap_sequence.store(reap_sequence, Ordering::Relaxed);
        fence(Ordering::Release);
        for (index, cells) in segment.loops(process).iter().enumerate() {
            self.hosts.retire(self.hosts.row(process, index));
            for (total, part) in fixed.retired.iter().zip(cells.counters()) {
                total.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            cells.clear();
        }
        for (total, part) in [
            (&fixed.retired_cpu_user_us, &process.own.cpu_user_us),
            (&fixed.retired_cpu_system_us, &process.own.cpu_system_us),
        ] {
            total.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        process.clear();
        fixed.reap_sequence.store(reap_sequence.wrapping_add(1), Ordering::Release);
    }

    /// The last published pulses of a process's loops.
    pub(crate) fn pulses(&self, index: usize) -> Vec<Pulse> {
        let Some((segment, process)) = self.find(index) else { return Vec::new() };
        let loops = segment.loops(process).iter();
        loops
            .map(|cells| Pulse {
                beat: cells.heartbeat_us.load(Ordering::Relaxed),
                is_at_a_job: cells.jobs.load(Ordering::Relaxed) > 0,
            })
            .collect()
    }

    /// Whether the loops of a process have many connections each.
    pub(crate) fn is_async(&self, index: usize) -> bool {
        let process = self.find(index).map(|(_, process)| process);
        process.is_some_and(|process| {
            ShapeKind::from_number(process.shape.load(Ordering::Relaxed)).is_async()
        })
    }

    /// Records that a generation has taken over; the previous one is sent `retire_order`. An
    /// immediate restart begins a new count for status pages, as Apache's does.
    pub(crate) fn begin_generation(
        &self,
        generation: u32,
        settings: &Settings,
        retire_order: Order,
    ) {
        let (fixed, shape) = (&self.global.fixed, &settings.shape);
        let now = now_us();
        let limit = settings.spare.map_or(0, |spare| spare.processes_max);
        for (cell, value) in [
            (&fixed.generation, u64::from(generation)),
            (&fixed.shape, ShapeKind::of(shape) as u64),
            (&fixed.planned_processes, shape.processes() as u64),
            (&fixed.planned_loops, shape.total_loops() as u64),
            (&fixed.process_limit, limit.max(shape.processes()) as u64),
            (&fixed.loops_each, shape.loops_per_process() as u64),
            (&fixed.generation_us, now),
        ] {
            cell.store(value, Ordering::Relaxed);
        }
        if retire_order == Order::Stop {
            fixed.restarted_us.store(now, Ordering::Relaxed);
            for (before, sum) in fixed.before_restart.iter().zip(self.snapshot().sums()) {
                before.store(sum, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn set_stopping(&self) {
        self.global.fixed.stopping.store(1, Ordering::Relaxed);
    }

    /// Publishes the supervisor's own CPU time, in microseconds.
    pub(crate) fn set_supervisor_cpu_times(&self, user_us: u64, system_us: u64) {
        self.global.fixed.cpu_user_us.store(user_us, Ordering::Relaxed);
        self.global.fixed.cpu_system_us.store(system_us, Ordering::Relaxed);
    }
}

/// The signs of life of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Pulse {
    /// Changes whenever the loop turns.
    pub beat: u64,
    /// The loop's thread runs a job, so the loop is not expected to turn.
    pub is_at_a_job: bool,
}

/// Microseconds since the epoch.
pub fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn board() -> Scoreboard {
        Scoreboard::new(3, 2).unwrap()
    }

    fn threads(threads: usize) -> Shape {
        Shape::Worker { processes: 1, threads }
    }

    #[test]
    fn a_slot_is_claimed_once_and_its_counts_outlive_it() {
        let board = board();
        assert_eq!(board.claim(1, 0, &threads(2)), Some(0));
        assert_eq!(board.claim(1, 1, &threads(2)), Some(1));
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
        assert_eq!(board.claim(2, 0, &threads(2)), Some(0));
        assert_eq!(board.claim(2, 1, &threads(2)), Some(2));
    }

    #[test]
    fn no_value_that_a_child_may_write_stops_the_supervisor() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..64 {
            let board = board();
            board.know_hosts(&[b"a.test".to_vec(), b"b.test".to_vec()]).unwrap();
            (0..3).for_each(|slot| assert!(board.claim(1, slot, &threads(2)).is_some()));
            for words in board.words() {
                for word in words {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    let value = match round % 4 {
                        0 => u64::MAX,
                        1 => u64::MAX >> (random >> 58),
                        2 => random >> (random >> 58),
                        _ => random % 9,
                    };
                    word.store(value, Ordering::Relaxed);
                }
            }
            let _ = (board.snapshot(), board.hosts());
            for index in 0..4 {
                let _ = (board.pulses(index), board.is_async(index), board.loop_slot(index, 1));
                board.set_state(index, ProcessState::Serving);
                board.release(index);
            }
            (0..4).for_each(|slot| {
                board.claim(2, slot, &threads(2));
            });
            let _ = (board.snapshot(), board.hosts());
        }
    }

    impl Scoreboard {
        /// What a child can write to: all cells, and the beginnings of the hosts' memory.
        #[allow(unsafe_code)]
        fn words(&self) -> Vec<&'static [AtomicU64]> {
            fn words<T>(cells: &'static [T]) -> &'static [AtomicU64] {
                let count = size_of_val(cells) / size_of::<AtomicU64>();
                // SAFETY: cells consist of AtomicU64s, and of padding in memory that was mapped.
                unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), count) }
            }
            let segments = self
                .first
                .chain()
                .flat_map(|segment| [words(segment.processes), words(segment.loops)]);
            let global = words(std::slice::from_ref(self.global));
            segments.chain([global]).chain(self.hosts.beginnings()).collect()
        }
    }

    #[test]
    fn old_generations_that_never_end_do_not_block_new_ones() {
        let board = board();
        for generation in 1..=20 {
            for slot in 0..3 {
                let index = board.claim(generation, slot, &threads(2)).unwrap();
                board.loop_slot(index, 1).unwrap().request_end(1, 1);
            }
        }
        let snapshot = board.snapshot();
        assert_eq!((snapshot.processes.len(), snapshot.accesses), (60, 60));
        assert!(snapshot.processes.iter().enumerate().all(|(at, seen)| at == seen.index));
        (0..60).for_each(|index| board.release(index));
        let snapshot = board.snapshot();
        assert_eq!((snapshot.processes.len(), snapshot.accesses), (0, 60));
        assert_eq!(board.claim(21, 0, &threads(2)), Some(0), "the first segment is reused");
    }

    #[test]
    fn loops_of_unequal_processes_do_not_overlap() {
        let board = Scoreboard::new(8, 4).unwrap();
        let counts = [1, 16, 3, 2, 4, 1, 30];
        let mut indices: Vec<usize> =
            counts.iter().map(|loops| board.claim(1, 0, &threads(*loops)).unwrap()).collect();
        board.release(indices[2]);
        indices[2] = board.claim(2, 0, &threads(3)).unwrap();
        for (at, loops) in indices.iter().zip(counts) {
            (0..loops).for_each(|index| board.loop_slot(*at, index).unwrap().add_accepted(1));
            assert!(board.loop_slot(*at, loops).is_none());
        }
        for process in board.snapshot().processes {
            assert!(process.loops.iter().all(|seen| seen.accepted == 1), "{}", process.index);
        }
    }

    #[test]
    fn large_shapes_fit_and_room_alone_costs_nothing() {
        let prefork = Scoreboard::new(400 * 4, 64).unwrap();
        for slot in 0..400 {
            assert!(prefork.claim(1, slot, &threads(1)).is_some());
        }
        let worker = Scoreboard::new(20_000 * 4, 1024).unwrap();
        for generation in 1..=5 {
            for slot in 0..16 {
                assert!(worker.claim(generation, slot, &threads(64)).is_some());
            }
        }
        let snapshot = worker.snapshot();
        assert_eq!(snapshot.processes.iter().map(|seen| seen.loops.len()).sum::<usize>(), 5120);
    }

    #[test]
    fn the_note_of_a_request_reads_back_whole() {
        let board = board();
        board.claim(1, 0, &threads(1));
        let slot = board.loop_slot(0, 0).unwrap();
        slot.request_begin(Some(&RequestNote {
            client: b"192.0.2.1",
            vhost: b"example.org:80",
            request: &[b'x'; 300],
            protocol: b"http/1.1",
        }));
        slot.set_status(Status::Ready);
        (0..9).for_each(|_| slot.connections().open.up());
        slot.connections().writing.up();
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
    fn a_dns_lookup_is_shown_unless_another_response_is_sent() {
        let board = board();
        board.claim(1, 0, &threads(1));
        let slot = board.loop_slot(0, 0).unwrap();
        slot.set_status(Status::Ready);
        let gauges = slot.connections();
        let letter = || board.snapshot().processes[0].loops[0].status.letter();
        for gauge in [gauges.open, gauges.writing, gauges.resolving] {
            gauge.up();
        }
        assert_eq!(letter(), 'D');
        gauges.writing.up();
        assert_eq!(letter(), 'W');
        gauges.writing.down();
        gauges.resolving.down();
        assert_eq!(letter(), 'W');
    }

    #[test]
    fn slots_outside_the_board_are_none() {
        let board = board();
        board.claim(1, 0, &threads(2));
        assert!(board.loop_slot(0, 1).is_some() && board.loop_slot(0, 2).is_none());
        assert!(board.loop_slot(3, 0).is_none());
        assert!(board.loop_slot(usize::MAX, 1).is_none());
        assert!(board.process(3).is_none());
    }
}
