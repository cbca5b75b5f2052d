//! Which directories are watched, by inotify's watch descriptor. A descriptor stands for an inode,
//! so two paths to one directory share everything.
//!
//! The table lies in the watch's memory, and is changed under its lock. Lookups by descriptor
//! probe a field that is at most half full; a removal closes the gap that it leaves.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::inotify::ReadFlags;

use super::block::{BLOCKS_MAX, Block, NameHash};
use super::generations::Generations;

/// The share of the directories that is dropped to make room: 1/8, so that the search for the
/// oldest costs little per directory.
const EVICTED_SHARE: usize = 8;

/// Places in the field of descriptors.
const PLACES: usize = 2 * BLOCKS_MAX;
/// The words that the table takes: places, the last use and the descriptor of each block, free
/// blocks, and the counts.
pub(super) const TABLE_WORDS: usize = PLACES + 3 * BLOCKS_MAX + COUNTS;
const COUNTS: usize = 8;

/// The watched directories. All methods require the watch's lock.
#[derive(Clone, Copy)]
pub(super) struct Table<'m> {
    /// Descriptor in the upper half, block number plus 1 in the lower; 0 if empty.
    places: &'m [AtomicU64],
    /// By block number: the tick of the last use.
    used: &'m [AtomicU64],
    /// Numbers of free blocks, a stack.
    free: &'m [AtomicU64],
    counts: &'m [AtomicU64],
    limit: usize,
}

/// The counts, by their index.
#[derive(Clone, Copy)]
enum Count {
    Directories,
    Free,
    /// The blocks that were ever used.
    Blocks,
    Tick,
}

impl<'m> Table<'m> {
    /// The table in these words, which are all 0 at first.
    pub fn new(words: &'m [AtomicU64], limit: usize) -> Self {
        let (places, rest) = words.split_at(PLACES.min(words.len()));
        let (used, rest) = rest.split_at(BLOCKS_MAX.min(rest.len()));
        let (free, counts) = rest.split_at(BLOCKS_MAX.min(rest.len()));
        Self { places, used, free, counts, limit }
    }

    /// The block of a directory that is watched already, which becomes the most recently used.
    pub fn touch(self, directory: i32) -> Option<Block> {
        let (_, number) = self.find(directory)?;
        self.mark(number);
        Block::numbered(number)
    }

    /// Adds a directory. `None` if all blocks are in use.
    pub fn add(self, directory: i32) -> Option<Block> {
        let number = self.block()?;
        let place = self.probe(directory).find(|place| self.at(*place).is_none())?;
        self.set(place, Some((directory, number)));
        self.put(Count::Directories, self.count(Count::Directories) + 1);
        self.mark(number);
        Block::numbered(number)
    }

    /// Applies one event. True if a generation advanced.
    pub fn apply(
        self,
        directory: i32,
        events: ReadFlags,
        name: Option<&[u8]>,
        generations: Generations<'_>,
    ) -> bool {
        if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            return self.forget(directory, generations);
        }
        let known = self.find(directory).and_then(|(_, number)| Block::numbered(number));
        let Some(block) = known else { return false };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return generations.bump_block(block);
        };
        let mut moved = generations.bump_used(block.whole());
        moved |= generations.bump_name(block, NameHash::of(name));
        if events.intersects(MEMBERSHIP) {
            moved |= generations.bump_used(block.members());
        }
        moved
    }

    /// The directories to drop: none below the limit unless `needed`.
    pub fn surplus(self, needed: bool) -> Vec<i32> {
        if self.directories() < self.limit && !needed {
            return Vec::new();
        }
        let mut ages: Vec<(u64, i32)> =
            self.all().map(|(directory, number)| (self.age(number), directory)).collect();
        let count = ages.len().div_ceil(EVICTED_SHARE);
        if count > 0 && count < ages.len() {
            ages.select_nth_unstable(count - 1);
        }
        ages.truncate(count);
        ages.into_iter().map(|(_, directory)| directory).collect()
    }

    /// Drops a directory: everything that depends on it advances once more, and its block is free.
    pub fn forget(self, directory: i32, generations: Generations<'_>) -> bool {
        let Some((place, number)) = self.find(directory) else { return false };
        let Some(block) = Block::numbered(number) else { return false };
        // The life advances first: it tells a later reader that the generations are void.
        generations.bump(block.life());
        let moved = generations.bump_block(block);
        generations.forget_names(block);
        self.remove(place);
        self.put(Count::Directories, self.count(Count::Directories).saturating_sub(1));
        self.release(number);
        moved
    }

    /// Drops everything, whatever state an interrupted change left. Returns the descriptors.
    pub fn reset(self, generations: Generations<'_>) -> Vec<i32> {
        let watched = self.all().map(|(directory, _)| directory).collect();
        for block in self.blocks() {
            generations.bump(block.life());
        }
        generations.bump_all(self.blocks());
        self.places.iter().for_each(|place| place.store(0, Ordering::Relaxed));
        self.put(Count::Directories, 0);
        self.put(Count::Free, 0);
        (0..self.count(Count::Blocks)).for_each(|number| self.release(number));
        watched
    }

    pub fn directories(self) -> usize {
        self.count(Count::Directories) as usize
    }

    /// All blocks that have been in use.
    pub fn blocks(self) -> impl Iterator<Item = Block> {
        (0..self.count(Count::Blocks)).filter_map(Block::numbered)
    }

    fn block(self) -> Option<u32> {
        if let Some(top) = self.count(Count::Free).checked_sub(1) {
            self.put(Count::Free, top);
            let number = self.free.get(top as usize)?.load(Ordering::Relaxed);
            return u32::try_from(number).ok();
        }
        let number = self.count(Count::Blocks);
        Block::numbered(number)?;
        self.put(Count::Blocks, number + 1);
        Some(number)
    }

    fn release(self, number: u32) {
        let top = self.count(Count::Free);
        if let Some(free) = self.free.get(top as usize) {
            free.store(number.into(), Ordering::Relaxed);
            self.put(Count::Free, top + 1);
        }
    }

    fn mark(self, number: u32) {
        let tick = self.count(Count::Tick).wrapping_add(1);
        self.put(Count::Tick, tick);
        if let Some(used) = self.used.get(number as usize) {
            used.store(tick.into(), Ordering::Relaxed);
        }
    }

    fn age(self, number: u32) -> u64 {
        self.used.get(number as usize).map_or(0, |used| used.load(Ordering::Relaxed))
    }

    fn all(self) -> impl Iterator<Item = (i32, u32)> {
        (0..self.places.len()).filter_map(move |place| self.at(place))
    }

    fn find(self, directory: i32) -> Option<(usize, u32)> {
        for place in self.probe(directory) {
            match self.at(place) {
                Some((known, number)) if known == directory => return Some((place, number)),
                Some(_) => {}
                None => return None,
            }
        }
        None
    }

    /// Closes the gap at `place`: whatever was displaced by it moves up.
    fn remove(self, place: usize) {
        let mut gap = place;
        self.set(gap, None);
        for next in (1..self.places.len()).map(|step| (place + step) % self.places.len()) {
            let Some((directory, number)) = self.at(next) else { return };
            let home = self.home(directory);
            let distance = |from: usize| (next + self.places.len() - from) % self.places.len();
            if distance(home) >= distance(gap) {
                self.set(gap, Some((directory, number)));
                self.set(next, None);
                gap = next;
            }
        }
    }

    fn probe(self, directory: i32) -> impl Iterator<Item = usize> {
        let (home, count) = (self.home(directory), self.places.len());
        (0..count).map(move |step| (home + step) % count)
    }

    /// Descriptors are given out in turn, so they spread by themselves.
    fn home(self, directory: i32) -> usize {
        directory.cast_unsigned() as usize % self.places.len().max(1)
    }

    fn at(self, place: usize) -> Option<(i32, u32)> {
        let word = self.places.get(place)?.load(Ordering::Relaxed);
        let number = (word as u32).checked_sub(1)?;
        Some((((word >> 32) as u32).cast_signed(), number))
    }

    fn set(self, place: usize, entry: Option<(i32, u32)>) {
        let word = entry.map_or(0, |(directory, number)| {
            u64::from(directory.cast_unsigned()) << 32 | (u64::from(number) + 1)
        });
        if let Some(place) = self.places.get(place) {
            place.store(word, Ordering::Relaxed);
        }
    }

    fn count(self, count: Count) -> u32 {
        self.counts.get(count as usize).map_or(0, |word| word.load(Ordering::Relaxed)) as u32
    }

    fn put(self, count: Count, value: u32) {
        if let Some(word) = self.counts.get(count as usize) {
            word.store(value.into(), Ordering::Relaxed);
        }
    }
}

/// Events that change the set of names in a directory.
const MEMBERSHIP: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::generations::GENERATION_WORDS;
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn descriptors_that_collide_are_kept_apart_and_found_after_removals() {
        let (table, generations) = (words(TABLE_WORDS), words(GENERATION_WORDS));
        let (table, generations) = (Table::new(&table, 100), Generations::new(&generations));
        let step = i32::try_from(PLACES).unwrap();
        let mut known = HashMap::new();
        // Descriptors with few homes, the last of the field among them.
        let descriptor = |number: i32| (number % 7) * step + number / 7 + step - 3;
        for round in 0..4 {
            for number in 0..40 {
                let directory = descriptor(number);
                if (number + round) % 3 == 0 {
                    assert_eq!(known.remove(&directory).is_some(), table.find(directory).is_some());
                    table.forget(directory, generations);
                } else {
                    known.entry(directory).or_insert_with(|| table.add(directory).unwrap());
                }
                for (directory, block) in &known {
                    assert_eq!(table.touch(*directory), Some(*block));
                }
                assert_eq!(table.directories(), known.len());
            }
        }
        assert_eq!(table.touch(5), None);
        let mut watched = table.reset(generations);
        watched.sort_unstable();
        let mut all: Vec<i32> = known.into_keys().collect();
        all.sort_unstable();
        assert_eq!(watched, all);
        assert_eq!(table.directories(), 0);
        assert_eq!(table.all().count(), 0);
    }

    #[test]
    fn blocks_end_at_their_number() {
        let table = words(TABLE_WORDS);
        let table = Table::new(&table, BLOCKS_MAX);
        for directory in 1..=i32::try_from(BLOCKS_MAX).unwrap() {
            assert!(table.add(directory).is_some());
        }
        assert_eq!(table.add(i32::MAX), None);
    }
}
