//! Generation counters that any loop reads without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::block::{BLOCK_SLOTS, BLOCKS_MAX, Block};

/// Counters per chunk; chunks are allocated on demand and never freed.
const CHUNK: usize = 1024;
/// The most counters.
const SLOTS_MAX: usize = BLOCKS_MAX * BLOCK_SLOTS as usize;

pub(super) struct Generations {
    chunks: [OnceLock<Box<[AtomicU64]>>; SLOTS_MAX / CHUNK],
}

impl Generations {
    pub fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; SLOTS_MAX / CHUNK] }
    }

    /// Allocates the counters of `block`; called before one is handed out.
    pub fn ensure(&self, block: Block) {
        if let Some(chunk) = self.chunks.get(block.whole() as usize / CHUNK) {
            chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicU64::new(0)).collect());
        }
    }

    #[inline]
    pub fn load(&self, slot: u32) -> u64 {
        self.counter(slot).map_or(u64::MAX, |counter| counter.load(Ordering::Acquire))
    }

    /// Records that a cached fact depends on `slot` from now on.
    pub fn depend_on(&self, slot: u32) {
        let Some(used) = self.counter(Block::of(slot).used()) else { return };
        let bit = 1 << (slot % BLOCK_SLOTS);
        if used.load(Ordering::Relaxed) & bit == 0 {
            used.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Advances one counter. Requires the watcher's lock, so that no counter is advanced
    /// concurrently.
    pub fn bump(&self, slot: u32) {
        if let Some(counter) = self.counter(slot) {
            counter.fetch_add(1, Ordering::Release);
        }
    }

    /// Advances one counter if a fact depends on it, and returns whether one does. A fact that
    /// begins to depend on it concurrently is read from the file system after the change.
    pub fn bump_used(&self, slot: u32) -> bool {
        let used = self.load(Block::of(slot).used()) & (1 << (slot % BLOCK_SLOTS)) != 0;
        if used {
            self.bump(slot);
        }
        used
    }

    /// Advances all counters of a directory that facts depend on; returns whether there are any.
    pub fn bump_block(&self, block: Block) -> bool {
        block.dependents().fold(false, |moved, slot| self.bump_used(slot) | moved)
    }

    /// Advances every counter. The directories stay watched.
    pub fn bump_all(&self) {
        let slots = (0u32..).step_by(CHUNK).zip(&self.chunks);
        for (first, _) in slots.filter(|(_, chunk)| chunk.get().is_some()) {
            let blocks = (first..).step_by(BLOCK_SLOTS as usize).take(CHUNK / BLOCK_SLOTS as usize);
            for block in blocks.map(Block::of) {
                block.dependents().for_each(|slot| self.bump(slot));
            }
        }
    }

    #[inline]
    fn counter(&self, slot: u32) -> Option<&AtomicU64> {
        self.chunks.get(slot as usize / CHUNK)?.get()?.get(slot as usize % CHUNK)
    }
}
