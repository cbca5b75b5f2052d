//! Coded contents of files, such as gzip's: made once for all URLs, hosts and loops of a process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::fact::Fact;

/// Most bytes of the coded contents that a process caches.
pub const CODED_BYTES_LIMIT: usize = 16 * 1024 * 1024;

/// The content of a file in some coding.
#[derive(Clone)]
pub struct CodedContent {
    /// The content.
    pub bytes: Bytes,
    /// Whether it was made before the head was sent, which then states its length.
    pub has_length: bool,
}

/// Coded contents in two generations: when the young one reaches half of the limit it becomes the
/// old one, and a use makes a content young again.
pub(super) struct CodedContents {
    generations: Mutex<Generations>,
    limit: AtomicUsize,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Key, Slot>,
    old: HashMap<Key, Slot>,
    young_bytes: usize,
}

/// A fact, by its address, and a coding. A fact never changes; one that is no longer true is
/// replaced, and its contents are not found any more.
type Key = (usize, u64);

struct Slot {
    /// Keeps the address from being used for another fact.
    fact: Arc<Fact>,
    content: CodedContent,
}

impl CodedContents {
    pub fn new(limit: usize) -> CodedContents {
        CodedContents { generations: Mutex::default(), limit: AtomicUsize::new(limit) }
    }

    pub fn limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub fn get(&self, fact: &Arc<Fact>, coding: u64) -> Option<CodedContent> {
        let key = (Arc::as_ptr(fact) as usize, coding);
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = generations.young.get(&key) {
            return Some(slot.content.clone());
        }
        let slot = generations.old.remove(&key)?;
        let content = slot.content.clone();
        generations.put(key, slot, self.limit.load(Ordering::Relaxed));
        Some(content)
    }

    pub fn put(&self, fact: Arc<Fact>, coding: u64, content: CodedContent) {
        let key = (Arc::as_ptr(&fact) as usize, coding);
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.old.remove(&key);
        generations.put(key, Slot { fact, content }, self.limit.load(Ordering::Relaxed));
    }

    /// The bytes of all contents.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let generations = self.generations.lock().unwrap();
        generations.young.values().chain(generations.old.values()).map(Slot::bytes).sum()
    }
}

impl Generations {
    fn put(&mut self, key: Key, slot: Slot, limit: usize) {
        let bytes = slot.bytes();
        if bytes > limit / 2 {
            return;
        }
        if self.young_bytes + bytes > limit / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        if let Some(before) = self.young.insert(key, slot) {
            self.young_bytes -= before.bytes();
        }
    }
}

impl Slot {
    fn bytes(&self) -> usize {
        self.content.bytes.len() + self.fact.bytes() + size_of::<(Key, Slot)>()
    }
}
