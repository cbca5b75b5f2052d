//! Which directories and names are watched, by inotify's watch descriptor. A descriptor stands for
//! an inode, so two paths to one directory share everything.

use std::collections::HashMap;

use rustix::fs::inotify::ReadFlags;

use super::generations::{Generations, SLOTS_MAX};

/// Names watched in one directory at most; clients can enumerate names that do not exist.
const NAMES_PER_DIRECTORY_MAX: usize = 4096;
/// The share of the directories that goes when room is needed: 1/8, so that finding the oldest
/// costs little per directory.
const EVICTED_SHARE: usize = 8;

pub(super) struct Table {
    limit: usize,
    directories: HashMap<i32, Directory>,
    free: Vec<u32>,
    next: u32,
    tick: u64,
    names: usize,
}

#[derive(Default)]
struct Directory {
    whole: Option<u32>,
    names: HashMap<Box<[u8]>, u32>,
    used: u64,
}

impl Table {
    pub fn new(limit: usize) -> Self {
        Self { limit, directories: HashMap::new(), free: Vec::new(), next: 0, tick: 0, names: 0 }
    }

    /// Makes the directory known, and the most recently used.
    pub fn touch(&mut self, directory: i32) {
        self.tick += 1;
        self.directories.entry(directory).or_default().used = self.tick;
    }

    /// The slot of the directory as a whole; `None` when all slots are used.
    pub fn whole(&mut self, directory: i32) -> Option<u32> {
        if let Some(slot) = self.directories.get(&directory)?.whole {
            return Some(slot);
        }
        let slot = self.slot()?;
        self.directories.get_mut(&directory)?.whole = Some(slot);
        Some(slot)
    }

    /// The slot of a name in the directory; `None` when all slots are used. A directory that has
    /// its fill of names forgets them all first.
    pub fn name(&mut self, directory: i32, name: &[u8], generations: &Generations) -> Option<u32> {
        let known = self.directories.get_mut(&directory)?;
        if let Some(slot) = known.names.get(name) {
            return Some(*slot);
        }
        if known.names.len() >= NAMES_PER_DIRECTORY_MAX {
            self.names -= known.names.len();
            for (_, slot) in known.names.drain() {
                generations.bump(slot);
                self.free.push(slot);
            }
        }
        let slot = self.slot()?;
        self.directories.get_mut(&directory)?.names.insert(name.into(), slot);
        self.names += 1;
        Some(slot)
    }

    /// Applies one event. True when a generation moved.
    pub fn apply(
        &mut self,
        directory: i32,
        events: ReadFlags,
        name: Option<&[u8]>,
        generations: &Generations,
    ) -> bool {
        if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            return self.forget(directory, generations);
        }
        let Some(known) = self.directories.get(&directory) else { return false };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return known.bump_all(generations);
        };
        let slots = known.whole.into_iter().chain(known.names.get(name).copied());
        slots.inspect(|slot| generations.bump(*slot)).count() > 0
    }

    /// The directories to let go of: none below the limit unless `needed`.
    pub fn surplus(&self, needed: bool) -> Vec<i32> {
        if self.directories.len() < self.limit && !needed {
            return Vec::new();
        }
        let mut ages: Vec<(u64, i32)> =
            self.directories.iter().map(|(id, directory)| (directory.used, *id)).collect();
        let count = ages.len().div_ceil(EVICTED_SHARE);
        if count > 0 && count < ages.len() {
            ages.select_nth_unstable(count - 1);
        }
        ages.truncate(count);
        ages.into_iter().map(|(_, id)| id).collect()
    }

    /// Drops a directory: all that depends on it moves once more and is then nobody's.
    pub fn forget(&mut self, directory: i32, generations: &Generations) -> bool {
        let Some(known) = self.directories.remove(&directory) else { return false };
        let moved = known.bump_all(generations);
        self.names -= known.names.len();
        self.free.extend(known.whole);
        self.free.extend(known.names.into_values());
        moved
    }

    pub fn load(&self) -> (usize, usize) {
        (self.directories.len(), self.names)
    }

    fn slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.next as usize >= SLOTS_MAX {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

impl Directory {
    fn bump_all(&self, generations: &Generations) -> bool {
        let slots = self.whole.iter().chain(self.names.values());
        slots.inspect(|slot| generations.bump(**slot)).count() > 0
    }
}
