//! The readers' side of the scoreboard.

use std::sync::atomic::{Ordering, fence};

use super::hosts::HostCounts;
use super::layout::{COUNTERS, Counter, LoopCells, MASK_WORDS};
use super::slots::ConnectionCounts;
use super::tally::{DECISIONS, Decision, EVENTS, Event};
use super::{ProcessState, Scoreboard, ShapeKind, Status};
use crate::shared::load_bytes;

/// How often a reader tries to read the texts of a request consistently.
const TEXT_TRIES_MAX: usize = 16;

/// How often a reader retries because a process was reaped meanwhile.
const BOARD_TRIES_MAX: usize = 16;

/// The scoreboard at one moment, approximately: its counters keep counting while it is read.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When the server was started, microseconds since the epoch.
    pub started_us: u64,
    /// When the server was started, or restarted at once (`SIGHUP`).
    pub restarted_us: u64,
    /// When the serving generation took over.
    pub generation_us: u64,
    /// The serving generation, from 1.
    pub generation: u32,
    /// The shape that serves.
    pub shape: ShapeKind,
    /// Processes planned for the serving generation.
    pub planned_processes: usize,
    /// Loops planned for the serving generation.
    pub planned_loops: usize,
    /// The most processes that the serving generation may have (`ServerLimit`).
    pub process_limit: usize,
    /// Loops (or threads) per process of the serving generation.
    pub loops_each: usize,
    /// The server is stopping.
    pub is_stopping: bool,
    /// The number of rare events, by [`Event`].
    events: [u64; EVENTS],
    /// The number of decisions on affinity, by [`Decision`].
    decisions: [u64; DECISIONS],
    sums: [u64; COUNTERS],
    /// Log lines dropped because a pipe or disk was full.
    pub log_lines_dropped: u64,
    /// Requests of the whole server since its start, those of dead children included.
    pub accesses: u64,
    /// Bytes sent, likewise.
    pub bytes: u64,
    /// Time that loops were busy, likewise.
    pub busy_us: u64,
    /// Sum of the requests' durations, likewise.
    pub duration_us: u64,
    /// Connections accepted, likewise.
    pub accepted: u64,
    /// How often the kernel moved loops to another CPU, likewise.
    pub migrations: u64,
    /// Time that loops waited for a CPU, likewise.
    pub run_delay_us: u64,
    /// Accepted connections handed to another loop, likewise.
    pub handed_over: u64,
    /// Connections taken over from another loop, new or idle, likewise.
    pub taken_over: u64,
    /// Idle connections that migrated to another loop, likewise.
    pub moved: u64,
    /// User CPU time of the supervisor.
    pub supervisor_cpu_user_us: u64,
    /// System CPU time of the supervisor.
    pub supervisor_cpu_system_us: u64,
    /// Requests at the last immediate restart, where the counts of Apache's status page start.
    pub accesses_before: u64,
    /// Bytes at that moment.
    pub bytes_before: u64,
    /// Durations at that moment.
    pub duration_us_before: u64,
    /// User CPU time of the existing children.
    pub cpu_user_us: u64,
    /// System CPU time of the existing children.
    pub cpu_system_us: u64,
    /// User CPU time of the children that have ended.
    pub ended_cpu_user_us: u64,
    /// System CPU time of the children that have ended.
    pub ended_cpu_system_us: u64,
    /// The existing processes.
    pub processes: Vec<ProcessSnapshot>,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct ProcessSnapshot {
    /// Its slot in the scoreboard.
    pub index: usize,
    /// The shape it was started in.
    pub shape: ShapeKind,
    /// Its place in the shape.
    pub slot: usize,
    /// Process id.
    pub pid: u32,
    /// The generation that it belongs to.
    pub generation: u32,
    /// Its state.
    pub state: ProcessState,
    /// When it was forked, microseconds since the epoch.
    pub started_us: u64,
    /// User CPU time, as it has published.
    pub cpu_user_us: u64,
    /// System CPU time, as it has published.
    pub cpu_system_us: u64,
    /// Its loops.
    pub loops: Vec<LoopSnapshot>,
}

/// One loop.
#[derive(Clone, Debug, Default)]
pub struct LoopSnapshot {
    /// Its state.
    pub status: Status,
    /// Requests served.
    pub accesses: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Time that it was busy.
    pub busy_us: u64,
    /// Sum of the requests' durations.
    pub duration_us: u64,
    /// The last request's duration.
    pub last_duration_us: u64,
    /// When it was last used, microseconds since the epoch; 0 if never.
    pub last_used_us: u64,
    /// When it last turned, microseconds since the epoch; 0 if never.
    pub heartbeat_us: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// How often the kernel moved it to another CPU.
    pub migrations: u64,
    /// How long it waited for a CPU.
    pub run_delay_us: u64,
    /// Accepted connections handed to another loop.
    pub handed_over: u64,
    /// Connections taken over from another loop, new or idle.
    pub taken_over: u64,
    /// Idle connections that migrated to another loop.
    pub moved: u64,
    /// The CPU that it last ran on.
    pub cpu: Option<usize>,
    /// The CPU that the plan assigned.
    pub planned_cpu: Option<usize>,
    /// Its mask was widened because another process uses its CPU.
    pub is_widened: bool,
    /// The CPUs it may run on, one bit each; all 0 if no mask was set.
    pub mask: [u64; MASK_WORDS],
    /// Its connections now.
    pub connections: ConnectionCounts,
    /// Requests of the connection last recorded.
    pub connection_accesses: u64,
    /// Bytes of the connection last recorded.
    pub connection_bytes: u64,
    /// The client last recorded.
    pub client: Vec<u8>,
    /// The virtual host last recorded.
    pub vhost: Vec<u8>,
    /// The request line last recorded.
    pub request: Vec<u8>,
    /// The protocol last recorded.
    pub protocol: Vec<u8>,
}

impl Snapshot {
    /// How often `event` has happened.
    pub fn event(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    /// The counters that survive restarts, in the order of their cells.
    pub(super) fn sums(&self) -> [u64; COUNTERS] {
        self.sums
    }

    /// How often the server has made this decision.
    pub fn decision(&self, decision: Decision) -> u64 {
        self.decisions[decision as usize]
    }
}

impl Scoreboard {
    /// Reads the board. Never blocks and never returns a torn text: a text that is being written
    /// throughout is left out. Counters never decrease from one snapshot to the next.
    pub fn snapshot(&self) -> Snapshot {
        self.consistent(Self::read)
    }

    /// Reads the counters by virtual host, in the order in which the hosts were added. Empty if no
    /// configuration required them. Counters never decrease, as in [`Scoreboard::snapshot`].
    pub fn hosts(&self) -> Vec<HostCounts> {
        self.consistent(|board| {
            let rows = (0..board.used()).filter_map(|index| {
                let (segment, cells) = board.find(index)?;
                let loops = segment.loops(cells).len();
                Some((0..loops).map(|index| board.hosts.row(cells, index)))
            });
            board.hosts.sums(rows.flatten())
        })
    }

    /// Runs `read` so that no process is reaped meanwhile.
    fn consistent<T>(&self, read: impl Fn(&Self) -> T) -> T {
        let reap_sequence = &self.global.fixed.reap_sequence;
        for _ in 0..BOARD_TRIES_MAX {
            let before = reap_sequence.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let result = read(self);
                fence(Ordering::Acquire);
                if reap_sequence.load(Ordering::Relaxed) == before {
                    return result;
                }
            }
            std::hint::spin_loop();
        }
        // The supervisor died while it was moving counters.
        read(self)
    }

    fn read(&self) -> Snapshot {
        let (fixed, tallies) = (&self.global.fixed, &self.global.tallies);
        let before = |at: Counter| fixed.before_restart[at as usize].load(Ordering::Relaxed);
        let mut snapshot = Snapshot {
            started_us: fixed.started_us.load(Ordering::Relaxed),
            restarted_us: fixed.restarted_us.load(Ordering::Relaxed),
            generation_us: fixed.generation_us.load(Ordering::Relaxed),
            generation: narrow(fixed.generation.load(Ordering::Relaxed)),
            shape: ShapeKind::from_number(fixed.shape.load(Ordering::Relaxed)),
            planned_processes: fixed.planned_processes.load(Ordering::Relaxed) as usize,
            planned_loops: fixed.planned_loops.load(Ordering::Relaxed) as usize,
            process_limit: fixed.process_limit.load(Ordering::Relaxed) as usize,
            loops_each: fixed.loops_each.load(Ordering::Relaxed) as usize,
            is_stopping: fixed.stopping.load(Ordering::Relaxed) != 0,
            events: tallies.events.each_ref().map(|cell| cell.load(Ordering::Relaxed)),
            decisions: tallies.decisions.each_ref().map(|cell| cell.load(Ordering::Relaxed)),
            log_lines_dropped: tallies.log_lines_dropped.load(Ordering::Relaxed),
            supervisor_cpu_user_us: fixed.cpu_user_us.load(Ordering::Relaxed),
            supervisor_cpu_system_us: fixed.cpu_system_us.load(Ordering::Relaxed),
            ended_cpu_user_us: fixed.retired_cpu_user_us.load(Ordering::Relaxed),
            ended_cpu_system_us: fixed.retired_cpu_system_us.load(Ordering::Relaxed),
            accesses_before: before(Counter::Accesses),
            bytes_before: before(Counter::Bytes),
            duration_us_before: before(Counter::DurationUs),
            ..Snapshot::default()
        };
        let mut sums = fixed.retired.each_ref().map(|cell| cell.load(Ordering::Relaxed));
        for index in 0..self.used() {
            let Some(process) = self.process_snapshot(index, &mut sums) else { continue };
            for (sum, part) in [
                (&mut snapshot.cpu_user_us, process.cpu_user_us),
                (&mut snapshot.cpu_system_us, process.cpu_system_us),
            ] {
                *sum = sum.wrapping_add(part);
            }
            snapshot.processes.push(process);
        }
        let sum = |counter: Counter| sums[counter as usize];
        Snapshot {
            accesses: sum(Counter::Accesses),
            bytes: sum(Counter::Bytes),
            busy_us: sum(Counter::BusyUs),
            duration_us: sum(Counter::DurationUs),
            accepted: sum(Counter::Accepted),
            migrations: sum(Counter::Migrations),
            run_delay_us: sum(Counter::RunDelayUs),
            handed_over: sum(Counter::HandedOver),
            taken_over: sum(Counter::TakenOver),
            moved: sum(Counter::Moved),
            sums,
            ..snapshot
        }
    }

    fn process_snapshot(
        &self,
        index: usize,
        sums: &mut [u64; COUNTERS],
    ) -> Option<ProcessSnapshot> {
        let (segment, cells) = self.find(index)?;
        let kind = ShapeKind::from_number(cells.shape.load(Ordering::Relaxed));
        let state = ProcessState::from_number(cells.state.load(Ordering::Acquire));
        if state == ProcessState::Free {
            return None;
        }
        let loops = segment.loops(cells).iter().map(|cells| {
            let mut counters = [0; COUNTERS];
            for ((sum, counter), cell) in sums.iter_mut().zip(&mut counters).zip(cells.counters()) {
                *counter = cell.load(Ordering::Relaxed);
                *sum = sum.wrapping_add(*counter);
            }
            let mut seen = loop_snapshot(cells, &counters);
            seen.status = shown(seen.status, seen.connections, kind, state);
            seen
        });
        Some(ProcessSnapshot {
            index,
            shape: kind,
            slot: cells.slot.load(Ordering::Relaxed) as usize,
            pid: narrow(cells.pid.load(Ordering::Relaxed)),
            generation: narrow(cells.generation.load(Ordering::Relaxed)),
            state,
            started_us: cells.started_us.load(Ordering::Relaxed),
            cpu_user_us: cells.own.cpu_user_us.load(Ordering::Relaxed),
            cpu_system_us: cells.own.cpu_system_us.load(Ordering::Relaxed),
            loops: loops.collect(),
        })
    }
}

fn loop_snapshot(cells: &LoopCells, counters: &[u64; COUNTERS]) -> LoopSnapshot {
    let [client, vhost, request, protocol] = texts(cells);
    let counter = |counter: Counter| counters[counter as usize];
    LoopSnapshot {
        status: Status::from_letter(cells.status.load(Ordering::Relaxed)),
        accesses: counter(Counter::Accesses),
        bytes: counter(Counter::Bytes),
        busy_us: counter(Counter::BusyUs),
        duration_us: counter(Counter::DurationUs),
        accepted: counter(Counter::Accepted),
        migrations: counter(Counter::Migrations),
        run_delay_us: counter(Counter::RunDelayUs),
        handed_over: counter(Counter::HandedOver),
        taken_over: counter(Counter::TakenOver),
        moved: counter(Counter::Moved),
        last_duration_us: cells.last_duration_us.load(Ordering::Relaxed),
        last_used_us: cells.last_used_us.load(Ordering::Relaxed),
        heartbeat_us: cells.heartbeat_us.load(Ordering::Relaxed),
        connections: ConnectionCounts::of(cells),
        connection_accesses: cells.connection_accesses.load(Ordering::Relaxed),
        connection_bytes: cells.connection_bytes.load(Ordering::Relaxed),
        cpu: one_less(cells.cpu.load(Ordering::Relaxed)),
        planned_cpu: one_less(cells.place.planned_cpu.load(Ordering::Relaxed)),
        is_widened: cells.place.is_widened.load(Ordering::Relaxed) != 0,
        mask: cells.place.mask.each_ref().map(|cell| cell.load(Ordering::Relaxed)),
        client,
        vhost,
        request,
        protocol,
    }
}

/// The letter of a loop. In shapes whose loops have many connections, idle and closing ones occupy
/// no thread: the loop waits, as a thread of Apache's event does.
fn shown(
    status: Status,
    connections: ConnectionCounts,
    kind: ShapeKind,
    state: ProcessState,
) -> Status {
    if status != Status::Ready {
        return status;
    }
    match connections {
        _ if matches!(state, ProcessState::Quiescing | ProcessState::Stopping) => Status::Graceful,
        // If any response is being sent, the loop counts as writing instead.
        ConnectionCounts { writing: all @ 1.., resolving, .. } if resolving >= all => Status::Dns,
        ConnectionCounts { writing: 1.., .. } => Status::Writing,
        ConnectionCounts { reading: 1.., .. } => Status::Reading,
        _ if kind.is_async() => Status::Ready,
        ConnectionCounts { keep_alive: 1.., .. } => Status::KeepAlive,
        ConnectionCounts { closing: 1.., .. } => Status::Closing,
        _ => Status::Ready,
    }
}

/// A CPU's number as cells store it: 0 for none.
fn one_less(cell: u64) -> Option<usize> {
    cell.checked_sub(1)?.try_into().ok()
}

/// The four texts of a loop, all from the same request.
fn texts(cells: &LoopCells) -> [Vec<u8>; 4] {
    for _ in 0..TEXT_TRIES_MAX {
        let before = cells.sequence.load(Ordering::Acquire);
        if before.is_multiple_of(2) {
            let texts = [
                load_bytes(&cells.client),
                load_bytes(&cells.vhost),
                load_bytes(&cells.request),
                load_bytes(&cells.protocol),
            ];
            fence(Ordering::Acquire);
            if cells.sequence.load(Ordering::Relaxed) == before {
                return texts;
            }
        }
        std::hint::spin_loop();
    }
    Default::default()
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ConnectionCounts = ConnectionCounts {
        total: 0,
        reading: 0,
        writing: 0,
        keep_alive: 0,
        closing: 0,
        resolving: 0,
        http2: 0,
        streams: 0,
    };
    const READING: ConnectionCounts = ConnectionCounts { total: 1, reading: 1, ..NONE };
    const WRITING: ConnectionCounts = ConnectionCounts { total: 1, writing: 1, ..NONE };
    const RESOLVING: ConnectionCounts = ConnectionCounts { resolving: 1, ..WRITING };
    const KEPT: ConnectionCounts = ConnectionCounts { total: 1, keep_alive: 1, ..NONE };
    const CLOSING: ConnectionCounts = ConnectionCounts { total: 1, closing: 1, ..NONE };

    const ALONE: [ConnectionCounts; 6] = [NONE, READING, WRITING, RESOLVING, KEPT, CLOSING];
    const KINDS: [ShapeKind; 4] =
        [ShapeKind::Prefork, ShapeKind::Worker, ShapeKind::Event, ShapeKind::Loop];

    fn sum(one: ConnectionCounts, other: ConnectionCounts) -> ConnectionCounts {
        ConnectionCounts {
            total: one.total + other.total,
            reading: one.reading + other.reading,
            writing: one.writing + other.writing,
            keep_alive: one.keep_alive + other.keep_alive,
            closing: one.closing + other.closing,
            resolving: one.resolving + other.resolving,
            http2: one.http2 + other.http2,
            streams: one.streams + other.streams,
        }
    }

    fn letters(all: &[ConnectionCounts], kind: ShapeKind, state: ProcessState) -> String {
        let letter = |seen: &ConnectionCounts| shown(Status::Ready, *seen, kind, state).letter();
        all.iter().map(letter).collect()
    }

    #[test]
    fn a_thread_is_shown_by_its_connection_and_a_loop_by_what_keeps_it_busy() {
        for (kind, all) in KINDS.into_iter().zip(["_RWDKC", "_RWDKC", "_RWD__", "_RWD__"]) {
            assert_eq!(letters(&ALONE, kind, ProcessState::Serving), all, "{kind:?}");
        }
    }

    #[test]
    fn of_many_connections_the_busiest_is_shown() {
        let busy = [
            (WRITING, READING, 'W'),
            (WRITING, RESOLVING, 'W'),
            (RESOLVING, RESOLVING, 'D'),
            (RESOLVING, READING, 'D'),
            (WRITING, KEPT, 'W'),
            (READING, KEPT, 'R'),
            (READING, CLOSING, 'R'),
        ];
        for (one, other, letter) in busy {
            let both = [sum(one, other), sum(other, one)];
            for kind in KINDS {
                let seen = letters(&both, kind, ProcessState::Serving);
                assert_eq!(seen, format!("{letter}{letter}"), "{kind:?}: {one:?}, {other:?}");
            }
        }
        let idle = [sum(KEPT, CLOSING)];
        assert_eq!(letters(&idle, ShapeKind::Event, ProcessState::Serving), "_");
        assert_eq!(letters(&idle, ShapeKind::Prefork, ProcessState::Serving), "K");
    }

    #[test]
    fn a_process_that_finishes_and_a_status_of_its_own_go_before_connections() {
        for (kind, connections) in KINDS.into_iter().flat_map(|kind| ALONE.map(|one| (kind, one))) {
            for state in [ProcessState::Quiescing, ProcessState::Stopping] {
                assert_eq!(letters(&[connections], kind, state), "G", "{kind:?}");
            }
            let of = |status| shown(status, connections, kind, ProcessState::Starting).letter();
            let own = [Status::Dead, Status::Starting, Status::Logging, Status::Graceful];
            assert_eq!(own.map(of), ['.', 'S', 'L', 'G'], "{kind:?}");
        }
    }

    #[test]
    fn every_letter_reads_back() {
        for letter in *b".S_RWKDCLGI" {
            assert_eq!(Status::from_letter(u64::from(letter)) as u8, letter);
        }
        assert_eq!(Status::from_letter(u64::from(b'X')), Status::Dead);
    }
}
