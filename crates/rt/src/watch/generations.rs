//! Generation counters that any loop reads without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use super::block::{BLOCK_SLOTS, BLOCKS_MAX, Block};

/// The words that the counters take.
pub(super) const GENERATION_WORDS: usize = BLOCKS_MAX * BLOCK_SLOTS as usize;

/// The counters of all blocks.
#[derive(Clone, Copy)]
pub(super) struct Generations<'m>(pub &'m [AtomicU64]);

impl Generations<'_> {
    #[inline]
    pub fn load(self, slot: u32) -> u64 {
        self.counter(slot).map_or(u64::MAX, |counter| counter.load(Ordering::Acquire))
    }

    /// Records that a cached fact depends on `slot` from now on.
    pub fn depend_on(self, slot: u32) {
        let Some(used) = self.counter(Block::of(slot).used()) else { return };
        let bit = 1 << (slot % BLOCK_SLOTS);
        if used.load(Ordering::Relaxed) & bit == 0 {
            used.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Advances one counter.
    pub fn bump(self, slot: u32) {
        if let Some(counter) = self.counter(slot) {
            counter.fetch_add(1, Ordering::Release);
        }
    }

    /// Advances one counter if a fact depends on it, and returns whether one does. A fact that
    /// begins to depend on it concurrently is read from the file system after the change.
    pub fn bump_used(self, slot: u32) -> bool {
        let used = self.load(Block::of(slot).used()) & (1 << (slot % BLOCK_SLOTS)) != 0;
        if used {
            self.bump(slot);
        }
        used
    }

    /// Advances all counters of a directory that facts depend on; returns whether there are any.
    pub fn bump_block(self, block: Block) -> bool {
        block.dependents().fold(false, |moved, slot| self.bump_used(slot) | moved)
    }

    /// Advances every counter of these blocks. The directories stay watched.
    pub fn bump_all(self, blocks: impl Iterator<Item = Block>) {
        for block in blocks {
            block.dependents().for_each(|slot| self.bump(slot));
        }
    }

    #[inline]
    fn counter(&self, slot: u32) -> Option<&AtomicU64> {
        self.0.get(slot as usize)
    }
}
