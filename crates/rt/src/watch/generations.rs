//! Generation counters that any loop reads without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters per chunk; chunks are made as they are needed and stay.
const CHUNK: usize = 1024;
/// Counters at most: 512 KiB.
pub(super) const SLOTS_MAX: usize = 64 * CHUNK;

pub(super) struct Generations {
    chunks: [OnceLock<Box<[AtomicU64]>>; SLOTS_MAX / CHUNK],
}

impl Generations {
    pub fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; SLOTS_MAX / CHUNK] }
    }

    /// Makes the counter of `slot` exist; called before the slot is handed out.
    pub fn ensure(&self, slot: u32) {
        if let Some(chunk) = self.chunks.get(slot as usize / CHUNK) {
            chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicU64::new(0)).collect());
        }
    }

    #[inline]
    pub fn load(&self, slot: u32) -> u64 {
        self.counter(slot).map_or(u64::MAX, |counter| counter.load(Ordering::Acquire))
    }

    /// Moves one counter. Only under the watcher's lock, so that none moves twice at once.
    pub fn bump(&self, slot: u32) {
        if let Some(counter) = self.counter(slot) {
            counter.fetch_add(1, Ordering::Release);
        }
    }

    pub fn bump_all(&self) {
        for chunk in self.chunks.iter().filter_map(OnceLock::get) {
            for counter in chunk {
                counter.fetch_add(1, Ordering::Release);
            }
        }
    }

    #[inline]
    fn counter(&self, slot: u32) -> Option<&AtomicU64> {
        self.chunks.get(slot as usize / CHUNK)?.get()?.get(slot as usize % CHUNK)
    }
}
