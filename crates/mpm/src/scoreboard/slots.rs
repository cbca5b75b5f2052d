//! The writers' side of the scoreboard.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::hosts::Row;
use super::layout::{Counter, LoopCells, MASK_WORDS, ProcessCells};
use super::{Status, now_us};
use crate::shared::store_bytes;

/// The process's own slot.
#[derive(Clone, Copy)]
pub struct ProcessSlot {
    pub(super) cells: &'static ProcessCells,
    pub(super) index: usize,
}

impl ProcessSlot {
    /// Its index in the scoreboard. Unlike its place in the shape, which children of two
    /// generations share, the slot is its own.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Publishes the process's CPU time (getrusage), in microseconds.
    pub fn set_cpu_times(&self, user_us: u64, system_us: u64) {
        self.cells.own.cpu_user_us.store(user_us, Ordering::Relaxed);
        self.cells.own.cpu_system_us.store(system_us, Ordering::Relaxed);
    }
}

/// A loop's own slot. It has a single writer, so every update is a plain load and store.
#[derive(Clone, Copy)]
pub struct LoopSlot {
    pub(super) cells: &'static LoopCells,
    /// Its counters by virtual host.
    pub(super) row: Row,
}

/// A gauge on the board; the loop that owns the slot is its only writer.
#[derive(Clone, Copy)]
pub struct Gauge(&'static AtomicU64);

impl Gauge {
    /// Adds one.
    pub fn up(self) {
        self.0.store(self.now().wrapping_add(1), Ordering::Relaxed);
    }

    /// Subtracts one, down to 0.
    pub fn down(self) {
        self.0.store(self.now().saturating_sub(1), Ordering::Relaxed);
    }

    /// The current value.
    pub fn now(self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A loop's connections by state, on the board itself: a reader sees the current state. The
/// connections in no other state are idle between two requests.
#[derive(Clone, Copy)]
pub struct ConnectionGauges {
    /// All connections.
    pub open: Gauge,
    /// Reading a request.
    pub reading: Gauge,
    /// Sending a response.
    pub writing: Gauge,
    /// Closing (lingering).
    pub closing: Gauge,
    /// Part of `writing`: waiting for a name server.
    pub resolving: Gauge,
    /// Part of `open`: those of HTTP/2.
    pub http2: Gauge,
    /// Requests in progress on them.
    pub streams: Gauge,
}

/// A loop's connections by state, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// All connections.
    pub total: u64,
    /// Reading a request.
    pub reading: u64,
    /// Sending a response.
    pub writing: u64,
    /// Idle between two requests.
    pub keep_alive: u64,
    /// Closing (lingering).
    pub closing: u64,
    /// Part of `writing`: waiting for a name server.
    pub resolving: u64,
    /// Part of `total`: those of HTTP/2.
    pub http2: u64,
    /// Requests in progress on them.
    pub streams: u64,
}

impl ConnectionCounts {
    pub(super) fn of(cells: &LoopCells) -> Self {
        let [total, reading, writing, closing, resolving] =
            [&cells.connections, &cells.reading, &cells.writing, &cells.closing, &cells.resolving]
                .map(|cell| cell.load(Ordering::Relaxed));
        let keep_alive =
            total.saturating_sub(reading).saturating_sub(writing).saturating_sub(closing);
        let [http2, streams] =
            [&cells.http2, &cells.streams].map(|cell| cell.load(Ordering::Relaxed));
        Self { total, reading, writing, keep_alive, closing, resolving, http2, streams }
    }
}

/// The request fields that `ExtendedStatus` shows. Texts are truncated to their room.
#[derive(Clone, Copy, Debug)]
pub struct RequestNote<'a> {
    /// The client's address or name.
    pub client: &'a [u8],
    /// The virtual host, `name:port`.
    pub vhost: &'a [u8],
    /// The request line.
    pub request: &'a [u8],
    /// The protocol (`http/1.1`, `h2`).
    pub protocol: &'a [u8],
}

impl LoopSlot {
    /// The loop's connection gauges.
    pub fn connections(&self) -> ConnectionGauges {
        let cells = self.cells;
        ConnectionGauges {
            open: Gauge(&cells.connections),
            reading: Gauge(&cells.reading),
            writing: Gauge(&cells.writing),
            closing: Gauge(&cells.closing),
            resolving: Gauge(&cells.resolving),
            http2: Gauge(&cells.http2),
            streams: Gauge(&cells.streams),
        }
    }

    /// Sets the status letter. A loop that is [`Status::Ready`] is shown by the state of its
    /// connections.
    pub fn set_status(&self, status: Status) {
        self.cells.status.store(u64::from(status as u8), Ordering::Relaxed);
    }

    /// Records that a request's head is read and its response begins. `note` only with
    /// `ExtendedStatus`.
    pub fn request_begin(&self, note: Option<&RequestNote<'_>>) {
        if let Some(note) = note {
            self.write_note(note);
            self.cells.last_used_us.store(now_us(), Ordering::Relaxed);
        }
    }

    /// Records that a response of `bytes` was sent, `duration_us` after the request's first byte.
    pub fn request_end(&self, bytes: u64, duration_us: u64) {
        self.add(Counter::Accesses, 1);
        self.add(Counter::Bytes, bytes);
        self.add(Counter::DurationUs, duration_us);
        self.cells.last_duration_us.store(duration_us, Ordering::Relaxed);
    }

    /// Counts many responses at once, for loops that keep their own counters and publish them once
    /// a turn.
    pub fn add_requests(&self, accesses: u64, bytes: u64, duration_us: u64) {
        self.add(Counter::Accesses, accesses);
        self.add(Counter::Bytes, bytes);
        self.add(Counter::DurationUs, duration_us);
    }

    /// Sets the duration of the last request, in microseconds.
    pub fn set_last_duration_us(&self, duration_us: u64) {
        self.cells.last_duration_us.store(duration_us, Ordering::Relaxed);
    }

    /// Sets when the slot was last used, in microseconds since the epoch.
    pub fn set_last_used_us(&self, time_us: u64) {
        self.cells.last_used_us.store(time_us, Ordering::Relaxed);
    }

    /// Sets requests and bytes of the connection whose request the slot shows.
    pub fn set_connection_counts(&self, accesses: u64, bytes: u64) {
        self.cells.connection_accesses.store(accesses, Ordering::Relaxed);
        self.cells.connection_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Counts accepted connections.
    pub fn add_accepted(&self, connections: u64) {
        self.add(Counter::Accepted, connections);
    }

    /// Adds time that the loop did not spend waiting.
    pub fn add_busy_us(&self, busy_us: u64) {
        self.add(Counter::BusyUs, busy_us);
    }

    /// Records that the loop still turns; called about once a second.
    pub fn heartbeat(&self, time_us: u64) {
        self.cells.heartbeat_us.store(time_us, Ordering::Relaxed);
    }

    /// The time of the loop's last heartbeat; 0 if there was none.
    pub fn heartbeat_us(&self) -> u64 {
        self.cells.heartbeat_us.load(Ordering::Relaxed)
    }

    /// The number of jobs that the loop's thread currently runs itself, having no other threads for
    /// them (worker, prefork): while it runs one, the loop is not expected to turn.
    pub fn jobs(&self) -> &'static AtomicU64 {
        &self.cells.jobs
    }

    /// Publishes how often the kernel has moved the loop's thread to another CPU since it started.
    pub fn set_migrations(&self, migrations: u64) {
        self.set(Counter::Migrations, migrations);
    }

    /// Publishes how long the loop's thread has waited for a CPU since it started (schedstat), in
    /// microseconds.
    pub fn set_run_delay_us(&self, run_delay_us: u64) {
        self.set(Counter::RunDelayUs, run_delay_us);
    }

    /// Publishes the CPU that the loop runs on.
    pub fn set_cpu(&self, cpu: Option<usize>) {
        self.cells.cpu.store(one_more(cpu), Ordering::Relaxed);
    }

    /// Publishes the id of the loop's thread (gettid).
    pub fn set_thread(&self, thread: u32) {
        self.cells.thread.store(u64::from(thread), Ordering::Release);
    }

    /// The loop's thread; `None` before it runs.
    pub fn thread(&self) -> Option<u32> {
        let thread = self.cells.thread.load(Ordering::Acquire);
        u32::try_from(thread).ok().filter(|thread| *thread > 0)
    }

    /// Where the loop may run, as set by [`LoopSlot::set_place`].
    pub fn mask(&self) -> [u64; MASK_WORDS] {
        std::array::from_fn(|index| self.cells.place.mask[index].load(Ordering::Relaxed))
    }

    /// Counts accepted connections that were handed to another loop.
    pub fn add_handed_over(&self, connections: u64) {
        self.add(Counter::HandedOver, connections);
    }

    /// Counts connections that were taken over from another loop, new or idle.
    pub fn add_taken_over(&self, connections: u64) {
        self.add(Counter::TakenOver, connections);
    }

    /// Counts idle connections that migrated to another loop.
    pub fn add_moved(&self, connections: u64) {
        self.add(Counter::Moved, connections);
    }

    /// Publishes where the loop may run; called by the loop or the supervisor, whichever sets its
    /// mask. `mask` has one bit per CPU, 64 in a word. `planned_cpu` is the CPU that the plan pins
    /// it to.
    pub fn set_place(&self, mask: &[u64], planned_cpu: Option<usize>, is_widened: bool) {
        let place = &self.cells.place;
        for (index, cell) in place.mask.iter().enumerate().take(MASK_WORDS) {
            cell.store(mask.get(index).copied().unwrap_or(0), Ordering::Relaxed);
        }
        place.planned_cpu.store(one_more(planned_cpu), Ordering::Relaxed);
        place.is_widened.store(u64::from(is_widened), Ordering::Relaxed);
    }

    /// Adds without a locked instruction: the loop is the only writer.
    fn add(&self, counter: Counter, amount: u64) {
        let cell = self.cells.counter(counter);
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    fn set(&self, counter: Counter, value: u64) {
        self.cells.counter(counter).store(value, Ordering::Relaxed);
    }

    fn write_note(&self, note: &RequestNote<'_>) {
        let cells = self.cells;
        let before = cells.sequence.load(Ordering::Relaxed);
        cells.sequence.store(before | 1, Ordering::Relaxed);
        fence(Ordering::Release);
        store_bytes(&cells.client, note.client);
        store_bytes(&cells.vhost, note.vhost);
        store_bytes(&cells.request, note.request);
        store_bytes(&cells.protocol, note.protocol);
        cells.sequence.store((before | 1).wrapping_add(1), Ordering::Release);
    }
}

/// A CPU's number as cells store it: 0 for none.
fn one_more(cpu: Option<usize>) -> u64 {
    cpu.and_then(|cpu| u64::try_from(cpu).ok()?.checked_add(1)).unwrap_or(0)
}
