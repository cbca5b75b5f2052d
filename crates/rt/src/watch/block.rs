//! The counters of one watched directory, side by side.
//!
//! Names share a fixed number of counters by their hash: a directory takes the same memory for any
//! number of names, and a change of one name invalidates at most a sixtieth of the others. Beside
//! each counter is the name that facts depend on, if it is only one ([`NameHash`]): the events of
//! other names do not advance it.

/// Counters of one directory: 512 bytes, and as many for the hashes of names.
pub(super) const BLOCK_SLOTS: u32 = 64;
/// The most directories: 4 MiB of counters.
pub(super) const BLOCKS_MAX: usize = 8192;

/// The groups of names that share a counter: [`class_of`].
pub const NAME_CLASSES: usize = (BLOCK_SLOTS - NAMES) as usize;

const WHOLE: u32 = 0;
const MEMBERS: u32 = 1;
const LIFE: u32 = 2;
const USED: u32 = 3;
const NAMES: u32 = 4;

/// A directory's counters, by the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Block(u32);

impl Block {
    /// The block with a number; `None` beyond [`BLOCKS_MAX`].
    pub fn numbered(number: u32) -> Option<Block> {
        ((number as usize) < BLOCKS_MAX).then(|| Block(number * BLOCK_SLOTS))
    }

    /// The block that a counter is in.
    pub fn of(slot: u32) -> Block {
        Block(slot - slot % BLOCK_SLOTS)
    }

    /// Advances with every event in the directory.
    pub fn whole(self) -> u32 {
        self.0 + WHOLE
    }

    /// Advances when a name appears or vanishes.
    pub fn members(self) -> u32 {
        self.0 + MEMBERS
    }

    /// Advances when the block becomes another directory's.
    pub fn life(self) -> u32 {
        self.0 + LIFE
    }

    /// Not a counter: a bit for each counter that a cached fact depends on.
    pub fn used(self) -> u32 {
        self.0 + USED
    }

    /// Advances with events for names that facts depend on, of those with the same class.
    pub fn name(self, name: NameHash) -> u32 {
        self.0 + NAMES + name.class()
    }

    /// The counter of one class of names; `None` beyond [`NAME_CLASSES`].
    pub fn class(self, class: usize) -> Option<u32> {
        let class = u32::try_from(class).ok().filter(|_| class < NAME_CLASSES)?;
        Some(self.0 + NAMES + class)
    }

    /// The counters that cached facts depend on.
    pub fn dependents(self) -> impl Iterator<Item = u32> {
        [self.whole(), self.members()].into_iter().chain(self.0 + NAMES..self.0 + BLOCK_SLOTS)
    }
}

/// The class of a name, below [`NAME_CLASSES`]: names of one class share their counter.
pub fn class_of(name: &[u8]) -> usize {
    NameHash::of(name).class() as usize
}

/// The hash of a name (FNV-1a): names are short, and a collision costs a stat, not a stale
/// response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameHash(u64);

impl NameHash {
    /// No name.
    pub const NONE: NameHash = NameHash(0);
    /// All names of a class.
    pub const ALL: NameHash = NameHash(u64::MAX);

    pub fn of(name: &[u8]) -> NameHash {
        let mixed = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // A name with the hash of none would never be seen.
        NameHash(mixed.max(1))
    }

    /// The hash that was stored as this number.
    pub const fn numbered(number: u64) -> NameHash {
        NameHash(number)
    }

    /// The number to store.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Whether a counter that facts with this hash depend on advances with the events of `name`.
    pub fn covers(self, name: NameHash) -> bool {
        self == name || self == NameHash::ALL
    }

    fn class(self) -> u32 {
        ((self.0 >> 32) as u32 ^ self.0 as u32) % (BLOCK_SLOTS - NAMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_one_block_stay_inside_it() {
        let block = Block::numbered(3).unwrap();
        for name in [&b"a"[..], b".htaccess", b"index.html", b""] {
            let slot = block.name(NameHash::of(name));
            assert!(slot >= block.used() && Block::of(slot) == block, "{slot}");
            assert_eq!(block.class(class_of(name)), Some(slot));
        }
        assert_eq!(block.dependents().count(), 62);
        assert_eq!(block.class(NAME_CLASSES), None);
        assert_eq!(Block::numbered(u32::try_from(BLOCKS_MAX).unwrap()), None);
    }

    #[test]
    fn names_spread_over_the_counters() {
        let block = Block::numbered(0).unwrap();
        let name = |number| NameHash::of(format!("file-{number}.html").as_bytes());
        let slots = (0..600).map(|number| block.name(name(number)));
        let mut counts = std::collections::HashMap::new();
        slots.for_each(|slot| *counts.entry(slot).or_insert(0) += 1);
        assert_eq!(counts.len(), 60);
        assert!(counts.values().all(|count| *count < 30), "{counts:?}");
    }
}
