//! Generation counters that any loop reads without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use super::block::{BLOCK_SLOTS, BLOCKS_MAX, Block, NameHash};

/// The number of counters.
const COUNTERS: usize = BLOCKS_MAX * BLOCK_SLOTS as usize;
/// The words that the counters take, and the hashes of names behind them.
pub(super) const GENERATION_WORDS: usize = 2 * COUNTERS;

/// The counters of all blocks.
#[derive(Clone, Copy)]
pub(super) struct Generations<'m> {
    counters: &'m [AtomicU64],
    /// By counter: the hash of the name that facts depend on.
    names: &'m [AtomicU64],
}

impl<'m> Generations<'m> {
    /// The counters in these words, which are all 0 at first.
    #[inline]
    pub fn new(words: &'m [AtomicU64]) -> Self {
        let (counters, names) = words.split_at(COUNTERS.min(words.len()));
        Self { counters, names }
    }

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

    /// The same for the counter of a name. A second name takes all of the class along.
    pub fn depend_on_name(self, slot: u32, name: NameHash) {
        if let Some(known) = self.name(slot) {
            let (none, relaxed) = (NameHash::NONE.number(), Ordering::Relaxed);
            let other = match known.load(relaxed) {
                0 => known.compare_exchange(none, name.number(), Ordering::SeqCst, relaxed).err(),
                other => Some(other),
            };
            if other.is_some_and(|other| !NameHash::numbered(other).covers(name)) {
                known.store(NameHash::ALL.number(), Ordering::SeqCst);
            }
        }
        self.depend_on(slot);
    }

    /// Advances the counter of a name if a fact depends on that name.
    pub fn bump_name(self, block: Block, name: NameHash) -> bool {
        let slot = block.name(name);
        let known = self.name(slot).map(|known| known.load(Ordering::Acquire));
        known.is_none_or(|known| NameHash::numbered(known).covers(name)) && self.bump_used(slot)
    }

    /// Forgets the names of a block that becomes another directory's.
    pub fn forget_names(self, block: Block) {
        for slot in block.dependents() {
            if let Some(known) = self.name(slot) {
                known.store(NameHash::NONE.number(), Ordering::SeqCst);
            }
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
        self.counters.get(slot as usize)
    }

    fn name(&self, slot: u32) -> Option<&AtomicU64> {
        self.names.get(slot as usize)
    }
}
