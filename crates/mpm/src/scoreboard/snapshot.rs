//! The readers' side of the scoreboard.

use std::sync::atomic::{Ordering, fence};

use super::layout::LoopCells;
use super::slots::ConnectionCounts;
use super::{ProcessState, Scoreboard, Status};
use crate::shared::load_bytes;

/// How often a reader tries to read a request's texts whole.
const TEXT_TRIES_MAX: usize = 16;

/// The scoreboard at one moment, as far as counters that go on counting have a moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When the server was started, microseconds since the epoch.
    pub started_us: u64,
    /// When the serving generation took over.
    pub restarted_us: u64,
    /// The serving generation, from 1.
    pub generation: u32,
    /// Loops that the serving generation is to have.
    pub planned_loops: usize,
    /// The server is stopping.
    pub is_stopping: bool,
    /// Children that died of a signal or a failure.
    pub crashes: u64,
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
    /// User CPU time of all children, likewise.
    pub cpu_user_us: u64,
    /// System CPU time of all children, likewise.
    pub cpu_system_us: u64,
    /// The processes that there are.
    pub processes: Vec<ProcessSnapshot>,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct ProcessSnapshot {
    /// Its slot in the scoreboard.
    pub index: usize,
    /// Its place in the shape.
    pub slot: usize,
    /// Process id.
    pub pid: u32,
    /// The generation that it belongs to.
    pub generation: u32,
    /// What it is doing.
    pub state: ProcessState,
    /// When it was forked, microseconds since the epoch.
    pub started_us: u64,
    /// User CPU time that it has published.
    pub cpu_user_us: u64,
    /// System CPU time that it has published.
    pub cpu_system_us: u64,
    /// Its loops.
    pub loops: Vec<LoopSnapshot>,
}

/// One loop.
#[derive(Clone, Debug, Default)]
pub struct LoopSnapshot {
    /// What it is doing.
    pub status: Status,
    /// Requests answered.
    pub accesses: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Time that it was busy.
    pub busy_us: u64,
    /// Sum of the requests' durations.
    pub duration_us: u64,
    /// The last request's duration.
    pub last_duration_us: u64,
    /// When it was last used, microseconds since the epoch; 0 never.
    pub last_used_us: u64,
    /// When it last turned, microseconds since the epoch; 0 never.
    pub heartbeat_us: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Its connections now.
    pub connections: ConnectionCounts,
    /// Requests of the connection last noted.
    pub connection_accesses: u64,
    /// Bytes of the connection last noted.
    pub connection_bytes: u64,
    /// The client last noted.
    pub client: Vec<u8>,
    /// The virtual host last noted.
    pub vhost: Vec<u8>,
    /// The request line last noted.
    pub request: Vec<u8>,
    /// The protocol last noted.
    pub protocol: Vec<u8>,
}

impl Scoreboard {
    /// Reads the board. Never blocks and never sees half-written text: a text that is being
    /// written all the while is left out.
    pub fn snapshot(&self) -> Snapshot {
        let global = self.global;
        let mut snapshot = Snapshot {
            started_us: global.started_us.load(Ordering::Relaxed),
            restarted_us: global.restarted_us.load(Ordering::Relaxed),
            generation: narrow(global.generation.load(Ordering::Relaxed)),
            planned_loops: global.planned_loops.load(Ordering::Relaxed) as usize,
            is_stopping: global.stopping.load(Ordering::Relaxed) != 0,
            crashes: global.crashes.load(Ordering::Relaxed),
            log_lines_dropped: global.log_lines_dropped.load(Ordering::Relaxed),
            accesses: global.retired_accesses.load(Ordering::Relaxed),
            bytes: global.retired_bytes.load(Ordering::Relaxed),
            busy_us: global.retired_busy_us.load(Ordering::Relaxed),
            duration_us: global.retired_duration_us.load(Ordering::Relaxed),
            cpu_user_us: global.retired_cpu_user_us.load(Ordering::Relaxed),
            cpu_system_us: global.retired_cpu_system_us.load(Ordering::Relaxed),
            processes: Vec::new(),
        };
        for index in 0..self.processes.len() {
            let Some(process) = self.process_snapshot(index) else { continue };
            snapshot.cpu_user_us += process.cpu_user_us;
            snapshot.cpu_system_us += process.cpu_system_us;
            for seen in &process.loops {
                snapshot.accesses += seen.accesses;
                snapshot.bytes += seen.bytes;
                snapshot.busy_us += seen.busy_us;
                snapshot.duration_us += seen.duration_us;
            }
            snapshot.processes.push(process);
        }
        snapshot
    }

    fn process_snapshot(&self, index: usize) -> Option<ProcessSnapshot> {
        let cells = self.processes.get(index)?;
        let state = ProcessState::from_number(cells.state.load(Ordering::Acquire));
        if state == ProcessState::Free {
            return None;
        }
        let loops = cells.loops.load(Ordering::Relaxed) as usize;
        Some(ProcessSnapshot {
            index,
            slot: cells.slot.load(Ordering::Relaxed) as usize,
            pid: narrow(cells.pid.load(Ordering::Relaxed)),
            generation: narrow(cells.generation.load(Ordering::Relaxed)),
            state,
            started_us: cells.started_us.load(Ordering::Relaxed),
            cpu_user_us: cells.cpu_user_us.load(Ordering::Relaxed),
            cpu_system_us: cells.cpu_system_us.load(Ordering::Relaxed),
            loops: self.loops_of(index).iter().take(loops).map(loop_snapshot).collect(),
        })
    }
}

fn loop_snapshot(cells: &LoopCells) -> LoopSnapshot {
    let [client, vhost, request, protocol] = texts(cells);
    LoopSnapshot {
        status: Status::from_letter(cells.status.load(Ordering::Relaxed)),
        accesses: cells.accesses.load(Ordering::Relaxed),
        bytes: cells.bytes.load(Ordering::Relaxed),
        busy_us: cells.busy_us.load(Ordering::Relaxed),
        duration_us: cells.duration_us.load(Ordering::Relaxed),
        last_duration_us: cells.last_duration_us.load(Ordering::Relaxed),
        last_used_us: cells.last_used_us.load(Ordering::Relaxed),
        heartbeat_us: cells.heartbeat_us.load(Ordering::Relaxed),
        accepted: cells.accepted.load(Ordering::Relaxed),
        connections: ConnectionCounts {
            total: cells.connections.load(Ordering::Relaxed),
            reading: cells.reading.load(Ordering::Relaxed),
            writing: cells.writing.load(Ordering::Relaxed),
            keep_alive: cells.keep_alive.load(Ordering::Relaxed),
            closing: cells.closing.load(Ordering::Relaxed),
        },
        connection_accesses: cells.connection_accesses.load(Ordering::Relaxed),
        connection_bytes: cells.connection_bytes.load(Ordering::Relaxed),
        client,
        vhost,
        request,
        protocol,
    }
}

/// The four texts of a loop, all of the same request.
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
