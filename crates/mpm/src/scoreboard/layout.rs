//! The cells of the scoreboard, as they lie in memory.

#![expect(unsafe_code, reason = "memory shared between processes")]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::shared::Cells;

/// Longest client address shown.
pub(super) const CLIENT_BYTES_MAX: usize = 64;
/// Longest virtual host shown.
pub(super) const VHOST_BYTES_MAX: usize = 64;
/// Longest request line shown.
pub(super) const REQUEST_BYTES_MAX: usize = 128;
/// Longest protocol shown.
pub(super) const PROTOCOL_BYTES_MAX: usize = 16;

/// Words of a text of `bytes`: its length and the bytes.
const fn text_words(bytes: usize) -> usize {
    1 + bytes / 8
}

/// One per server.
#[repr(C, align(64))]
pub(super) struct GlobalCells {
    pub started_us: AtomicU64,
    pub restarted_us: AtomicU64,
    pub generation: AtomicU64,
    pub planned_loops: AtomicU64,
    pub stopping: AtomicU64,
    pub crashes: AtomicU64,
    pub log_lines_dropped: AtomicU64,
    pub retired_accesses: AtomicU64,
    pub retired_bytes: AtomicU64,
    pub retired_busy_us: AtomicU64,
    pub retired_duration_us: AtomicU64,
    pub retired_cpu_user_us: AtomicU64,
    pub retired_cpu_system_us: AtomicU64,
}

/// One per process.
#[repr(C, align(64))]
pub(super) struct ProcessCells {
    pub pid: AtomicU64,
    pub generation: AtomicU64,
    pub slot: AtomicU64,
    pub state: AtomicU64,
    pub loops: AtomicU64,
    pub started_us: AtomicU64,
    pub cpu_user_us: AtomicU64,
    pub cpu_system_us: AtomicU64,
}

/// One per loop. Aligned to two cache lines, because processors fetch them in pairs.
#[repr(C, align(128))]
pub(super) struct LoopCells {
    pub status: AtomicU64,
    pub accesses: AtomicU64,
    pub bytes: AtomicU64,
    pub busy_us: AtomicU64,
    pub duration_us: AtomicU64,
    pub last_duration_us: AtomicU64,
    pub last_used_us: AtomicU64,
    pub heartbeat_us: AtomicU64,
    pub accepted: AtomicU64,
    pub connections: AtomicU64,
    pub reading: AtomicU64,
    pub writing: AtomicU64,
    pub keep_alive: AtomicU64,
    pub closing: AtomicU64,
    pub connection_accesses: AtomicU64,
    pub connection_bytes: AtomicU64,
    /// Even when the texts are whole, odd while they are written.
    pub sequence: AtomicU64,
    pub client: [AtomicU64; text_words(CLIENT_BYTES_MAX)],
    pub vhost: [AtomicU64; text_words(VHOST_BYTES_MAX)],
    pub request: [AtomicU64; text_words(REQUEST_BYTES_MAX)],
    pub protocol: [AtomicU64; text_words(PROTOCOL_BYTES_MAX)],
}

// SAFETY: atomics of integers and padding only.
unsafe impl Cells for GlobalCells {}
// SAFETY: atomics of integers and padding only.
unsafe impl Cells for ProcessCells {}
// SAFETY: atomics of integers and padding only.
unsafe impl Cells for LoopCells {}

impl ProcessCells {
    pub(super) fn clear(&self) {
        for cell in [
            &self.pid,
            &self.generation,
            &self.slot,
            &self.loops,
            &self.started_us,
            &self.cpu_user_us,
            &self.cpu_system_us,
        ] {
            cell.store(0, Ordering::Relaxed);
        }
        self.state.store(0, Ordering::Release);
    }
}

impl LoopCells {
    pub(super) fn clear(&self) {
        let counters = [
            &self.status,
            &self.accesses,
            &self.bytes,
            &self.busy_us,
            &self.duration_us,
            &self.last_duration_us,
            &self.last_used_us,
            &self.heartbeat_us,
            &self.accepted,
            &self.connections,
            &self.reading,
            &self.writing,
            &self.keep_alive,
            &self.closing,
            &self.connection_accesses,
            &self.connection_bytes,
            &self.sequence,
        ];
        let lengths = [&self.client, &self.vhost].map(|text| &text[0]);
        for cell in counters.into_iter().chain(lengths) {
            cell.store(0, Ordering::Relaxed);
        }
        self.request[0].store(0, Ordering::Relaxed);
        self.protocol[0].store(0, Ordering::Relaxed);
    }
}
