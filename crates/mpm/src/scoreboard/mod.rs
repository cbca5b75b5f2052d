//! The scoreboard: what every process and loop is doing, in memory that all of them share.
//!
//! Every cell is an atomic. A loop's cells are written by that loop alone, with relaxed stores;
//! readers take a [`Snapshot`] at any time, from any process.

mod hosts;
mod layout;
mod segment;
mod slots;
mod snapshot;
mod tally;

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::child::Order;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::shared::map_cells;
use hosts::Hosts;
use layout::{GlobalCells, ProcessCells};
use segment::Segment;

pub use hosts::{BUCKETS, CLASSES, HostCounters, HostCounts, LATENCY_BOUNDS_US};
pub use layout::MASK_WORDS;
pub use slots::{ConnectionCounts, ConnectionGauges, Gauge, LoopSlot, ProcessSlot, RequestNote};
pub use snapshot::{LoopSnapshot, ProcessSnapshot, Snapshot};
pub use tally::{Decision, Event};

/// No scoreboard begins with room for more processes than this (Apache's limit on `ServerLimit`,
/// four generations of them).
pub const PROCESSES_MAX: usize = 80_000;

/// No segment of the scoreboard has room for more loops than this: half a GiB of addresses.
const SEGMENT_LOOPS_MAX: usize = 512 * 1024;

/// A board has no more segments than this.
const SEGMENTS_MAX: usize = 64;

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

/// The shape that serves, by name alone.
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

    /// The MPM's name in Apache's words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Worker => "worker",
            Self::Prefork => "prefork",
            Self::Loop => "loop",
        }
    }

    /// Whether a loop has many connections, and not one at a time.
    pub fn is_async(self) -> bool {
        matches!(self, Self::Event | Self::Loop)
    }
}

/// A handle on the scoreboard; copies are the same board.
#[derive(Clone, Copy)]
pub struct Scoreboard {
    global: &'static GlobalCells,
    first: &'static Segment,
    hosts: &'static Hosts,
}

impl Scoreboard {
    /// A board that begins with room for `processes` (counting those of old generations that are
    /// still finishing) of `loops_each` loops, and grows when they are not enough. Room that is
    /// never used costs no memory.
    pub fn new(processes: usize, loops_each: usize) -> io::Result<Self> {
        let processes = processes.clamp(1, PROCESSES_MAX);
        let loops = processes.saturating_mul(loops_each.max(1)).min(SEGMENT_LOOPS_MAX);
        let [global] = map_cells::<GlobalCells>(1)? else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        global.fixed.started_us.store(now_us(), Ordering::Relaxed);
        global.fixed.restarted_us.store(now_us(), Ordering::Relaxed);
        let first = Segment::map(0, processes, loops.max(loops_each))?;
        Ok(Self { global, first, hosts: Box::leak(Box::default()) })
    }

    /// A board of one process with one loop, and that loop's slot: for a loop without a supervisor.
    pub fn of_one_loop() -> io::Result<(Self, LoopSlot)> {
        let board = Self::new(1, 1)?;
        let slot = board.claim(1, 0, &Shape::Loop).and_then(|index| board.loop_slot(index, 0));
        Ok((board, slot.ok_or(io::ErrorKind::OutOfMemory)?))
    }

    /// The writer's handle on process slot `index`, if there is such a slot.
    pub fn process(&self, index: usize) -> Option<ProcessSlot> {
        let (_, cells) = self.find(index)?;
        Some(ProcessSlot { cells, index })
    }

    /// The writer's handle on a loop of process slot `process`, if that process has such a loop.
    pub fn loop_slot(&self, process: usize, index: usize) -> Option<LoopSlot> {
        let (segment, cells) = self.find(process)?;
        let row = self.hosts.row(cells, index);
        Some(LoopSlot { cells: segment.loops(cells).get(index)?, row })
    }

    /// The counters of a loop for the hosts with these labels, in their order; `None` where the
    /// configuration that its process was made for wanted none.
    pub fn host_counters(&self, slot: &LoopSlot, labels: &[Vec<u8>]) -> Option<HostCounters> {
        self.hosts.counters(slot.row, labels)
    }

    fn used(&self) -> usize {
        self.global.fixed.processes_used.load(Ordering::Acquire) as usize
    }

    fn find(&self, process: usize) -> Option<(&'static Segment, &'static ProcessCells)> {
        let holds = |segment: &&Segment| process < segment.first + segment.processes.len();
        let segment = self.first.chain().find(holds)?;
        let cells = segment.processes.get(process.checked_sub(segment.first)?)?;
        Some((segment, cells))
    }
}

/// The supervisor's part.
impl Scoreboard {
    /// The first free process slot, now taken by a child that is about to be forked. `None` only
    /// when the board is full and there is no memory to let it grow.
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

    /// Counts by virtual host from now on, for the hosts with these labels; does nothing where
    /// there are none. For children that are forked later.
    pub(crate) fn know_hosts(&self, labels: &[Vec<u8>]) -> io::Result<()> {
        self.hosts.know(labels)
    }

    /// Another segment, as large as the first one or as a process with `loops` needs.
    fn grow(&self, loops: usize) -> Option<&'static Segment> {
        let last = self.first.chain().take(SEGMENTS_MAX).last()?;
        let room = self.first.loops.len().max(loops);
        let first = last.first + last.processes.len();
        let segment = Segment::map(first, self.first.processes.len(), room).ok()?;
        // A board of the most segments has one after its last already.
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

    /// Frees the slot of a process that is dead; what it counted lives on.
    pub(crate) fn release(&self, index: usize) {
        let Some((segment, process)) = self.find(index) else { return };
        let fixed = &self.global.fixed;
        let burials = fixed.burials.load(Ordering::Relaxed) | 1;
        fixed.burials.store(burials, Ordering::Relaxed);
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
        fixed.burials.store(burials.wrapping_add(1), Ordering::Release);
    }

    /// What the loops of a process have published last of their turning.
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

    /// A generation has taken over. `farewell`: what the one before is told. A restart at once
    /// begins a new count for status pages, as Apache's does.
    pub(crate) fn begin_generation(&self, generation: u32, settings: &Settings, farewell: Order) {
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
        if farewell == Order::Stop {
            fixed.restarted_us.store(now, Ordering::Relaxed);
            for (before, sum) in fixed.before_restart.iter().zip(self.snapshot().sums()) {
                before.store(sum, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn set_stopping(&self) {
        self.global.fixed.stopping.store(1, Ordering::Relaxed);
    }

    /// Publishes the CPU time that the supervisor itself has used, in microseconds.
    pub(crate) fn set_supervisor_cpu_times(&self, user_us: u64, system_us: u64) {
        self.global.fixed.cpu_user_us.store(user_us, Ordering::Relaxed);
        self.global.fixed.cpu_system_us.store(system_us, Ordering::Relaxed);
    }
}

/// What a loop has published of its turning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Pulse {
    /// Changes whenever it turns.
    pub beat: u64,
    /// It is not expected to turn now.
    pub is_at_a_job: bool,
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
        assert_eq!(board.claim(21, 0, &threads(2)), Some(0), "the first segment again");
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
    fn who_waits_for_a_name_server_is_shown_where_nobody_else_is_answered() {
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
