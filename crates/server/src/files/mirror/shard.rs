//! The facts and contents of some paths, within limits in bytes.
//!
//! Facts and contents have a limit each. Facts that were not used since the last pass are dropped
//! first. A content replaces only others that are requested less often: a scan of more files than
//! fit evicts nothing.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashTable;

use super::fact::Fact;

/// A content needs this many more uses than another one to replace it, so that files that are
/// requested equally often do not evict each other.
const USES_MORE: u8 = 2;
/// Most contents that are examined for room.
const LOOKED_AT: usize = 4;
/// Uses are halved after this many requested contents per path.
const ASKED_PER_PATH: usize = 8;

/// The limits in bytes.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub facts: usize,
    pub contents: usize,
}

#[derive(Default)]
pub(super) struct Shard {
    /// Indexes of `slots`.
    by_path: HashTable<u32>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    facts: Hand,
    contents: Hand,
    /// Contents requested since uses were halved.
    asked: usize,
}

/// A position that cycles through the slots, and the bytes that it limits.
#[derive(Default)]
struct Hand {
    at: usize,
    bytes: usize,
}

struct Slot {
    hash: u64,
    fact: Arc<Fact>,
    bytes: usize,
    content: Option<Bytes>,
    is_used: bool,
    /// How often its content was requested recently.
    uses: u8,
}

impl Shard {
    pub fn fact(&mut self, hash: u64, path: &[u8]) -> Option<Arc<Fact>> {
        let slot = self.slot(hash, path)?;
        slot.is_used = true;
        Some(slot.fact.clone())
    }

    /// A fact with its content, if that is cached.
    pub fn content(&mut self, hash: u64, path: &[u8]) -> Option<(Arc<Fact>, Option<Bytes>)> {
        self.asked += 1;
        if self.asked > self.slots.len().saturating_mul(ASKED_PER_PATH) {
            self.asked = 0;
            self.slots.iter_mut().flatten().for_each(|slot| slot.uses /= 2);
        }
        let slot = self.slot(hash, path)?;
        slot.is_used = true;
        slot.uses = slot.uses.saturating_add(1);
        Some((slot.fact.clone(), slot.content.clone()))
    }

    /// Stores a fact, replacing the previous one of its path.
    pub fn keep(&mut self, hash: u64, fact: &Arc<Fact>, limits: Limits) {
        let mut uses = 0;
        if let Some(index) = self.index(hash, &fact.path) {
            uses = self.remove(index).map_or(0, |slot| slot.uses);
        }
        let bytes = fact.bytes() + size_of::<Option<Slot>>() + 2 * size_of::<u32>();
        self.make_room(bytes, limits.facts);
        self.facts.bytes += bytes;
        let slot = Slot { hash, fact: fact.clone(), bytes, content: None, is_used: false, uses };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(None);
                self.slots.len() as u32 - 1
            }
        };
        if let Some(free) = self.slots.get_mut(index as usize) {
            *free = Some(slot);
        }
        let slots = &self.slots;
        let rehash = |index: &u32| at(slots, *index).map_or(0, |slot| slot.hash);
        self.by_path.insert_unique(hash, index, rehash);
    }

    /// Stores a content with its fact, if it fits or is requested more often than others.
    pub fn keep_content(&mut self, hash: u64, fact: &Arc<Fact>, content: &Bytes, limits: Limits) {
        let Some(index) = self.index(hash, &fact.path) else { return };
        let Some(slot) = at(&self.slots, index) else { return };
        let is_new = slot.content.is_none() && Arc::ptr_eq(&slot.fact, fact);
        let uses = slot.uses;
        if is_new && self.make_room_for_content(content.len(), uses, limits.contents) {
            self.contents.bytes += content.len();
            if let Some(Some(slot)) = self.slots.get_mut(index as usize) {
                slot.content = Some(content.clone());
            }
        }
    }

    /// The bytes of facts and of contents.
    #[cfg(test)]
    pub fn bytes(&self) -> (usize, usize) {
        (self.facts.bytes, self.contents.bytes)
    }

    fn index(&self, hash: u64, path: &[u8]) -> Option<u32> {
        let is_it = |index: &u32| at(&self.slots, *index).is_some_and(|it| *it.fact.path == *path);
        self.by_path.find(hash, is_it).copied()
    }

    fn slot(&mut self, hash: u64, path: &[u8]) -> Option<&mut Slot> {
        let index = self.index(hash, path)?;
        self.slots.get_mut(index as usize)?.as_mut()
    }

    fn remove(&mut self, index: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(index as usize)?.take()?;
        if let Ok(entry) = self.by_path.find_entry(slot.hash, |it| *it == index) {
            entry.remove();
        }
        self.free.push(index);
        self.facts.bytes -= slot.bytes;
        self.contents.bytes -= slot.content.as_ref().map_or(0, Bytes::len);
        Some(slot)
    }

    fn make_room(&mut self, bytes: usize, limit: usize) {
        // Two passes: one that finds all in use, and one that drops them.
        for _ in 0..2 * self.slots.len() {
            if self.facts.bytes + bytes <= limit {
                return;
            }
            let at = self.facts.next(self.slots.len());
            match self.slots.get_mut(at) {
                Some(Some(slot)) if slot.is_used => slot.is_used = false,
                Some(Some(_)) => drop(self.remove(at as u32)),
                _ => {}
            }
        }
    }

    fn make_room_for_content(&mut self, bytes: usize, uses: u8, limit: usize) -> bool {
        let mut looked_at = 0;
        for _ in 0..self.slots.len() {
            if self.contents.bytes + bytes <= limit {
                return true;
            }
            let at = self.contents.next(self.slots.len());
            let Some(Some(slot)) = self.slots.get_mut(at) else { continue };
            if slot.content.is_none() {
                continue;
            }
            if slot.uses.saturating_add(USES_MORE) <= uses
                && let Some(content) = slot.content.take()
            {
                self.contents.bytes -= content.len();
            }
            looked_at += 1;
            if looked_at > LOOKED_AT {
                break;
            }
        }
        self.contents.bytes + bytes <= limit
    }
}

impl Hand {
    fn next(&mut self, count: usize) -> usize {
        let at = if self.at < count { self.at } else { 0 };
        self.at = at + 1;
        at
    }
}

fn at(slots: &[Option<Slot>], index: u32) -> Option<&Slot> {
    slots.get(index as usize)?.as_ref()
}
