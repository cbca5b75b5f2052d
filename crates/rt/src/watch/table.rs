//! Which directories are watched, by inotify's watch descriptor. A descriptor stands for an inode,
//! so two paths to one directory share everything.

use std::collections::HashMap;

use rustix::fs::inotify::ReadFlags;

use super::block::{BLOCKS_MAX, Block};
use super::generations::Generations;

/// The share of the directories that is dropped to make room: 1/8, so that the search for the
/// oldest costs little per directory.
const EVICTED_SHARE: usize = 8;

pub(super) struct Table {
    limit: usize,
    directories: HashMap<i32, Directory>,
    free: Vec<Block>,
    next: u32,
    tick: u64,
}

struct Directory {
    block: Block,
    used: u64,
}

impl Table {
    pub fn new(limit: usize) -> Self {
        let limit = limit.min(BLOCKS_MAX);
        Self { limit, directories: HashMap::new(), free: Vec::new(), next: 0, tick: 0 }
    }

    /// Adds the directory, or marks it as the most recently used. `None` if all blocks are in use.
    pub fn touch(&mut self, directory: i32) -> Option<Block> {
        self.tick += 1;
        if let Some(known) = self.directories.get_mut(&directory) {
            known.used = self.tick;
            return Some(known.block);
        }
        let block = self.block()?;
        self.directories.insert(directory, Directory { block, used: self.tick });
        Some(block)
    }

    /// Applies one event. True if a generation advanced.
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
            return generations.bump_block(known.block);
        };
        let of_name = [known.block.whole(), known.block.name(name)];
        let mut moved = false;
        for slot in of_name {
            moved |= generations.bump_used(slot);
        }
        if events.intersects(MEMBERSHIP) {
            moved |= generations.bump_used(known.block.members());
        }
        moved
    }

    /// The directories to drop: none below the limit unless `needed`.
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

    /// Drops a directory: everything that depends on it advances once more, and its block is free.
    pub fn forget(&mut self, directory: i32, generations: &Generations) -> bool {
        let Some(known) = self.directories.remove(&directory) else { return false };
        // The life advances first: it tells a later reader that the generations are void.
        generations.bump(known.block.life());
        let moved = generations.bump_block(known.block);
        self.free.push(known.block);
        moved
    }

    pub fn directories(&self) -> usize {
        self.directories.len()
    }

    fn block(&mut self) -> Option<Block> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        let block = Block::numbered(self.next)?;
        self.next += 1;
        Some(block)
    }
}

/// Events that change the set of names in a directory.
const MEMBERSHIP: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);
