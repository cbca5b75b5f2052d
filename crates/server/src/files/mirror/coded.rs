//! What is made of files: coded contents, such as gzip's, and parsed ones, such as mod_include's.
//! Each is made once for all URLs, hosts and loops of a process.

use std::any::Any;
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

/// Most bytes of the parsed contents that a process caches.
pub const PARSED_BYTES_LIMIT: usize = 16 * 1024 * 1024;

/// The content of a file, parsed.
#[derive(Clone)]
pub struct ParsedContent {
    /// A type of the parser's.
    pub value: Arc<dyn Any + Send + Sync>,
    /// Its memory in bytes.
    pub bytes: usize,
}

/// A value with a known use of memory.
pub(super) trait Weighed: Clone {
    /// In bytes.
    fn bytes(&self) -> usize;
}

impl Weighed for CodedContent {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl Weighed for ParsedContent {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Values in two generations: when the young one reaches half of the limit it becomes the old one,
/// and a use makes a value young again.
pub(super) struct MadeOfFiles<T> {
    generations: Mutex<Generations<T>>,
    limit: AtomicUsize,
}

struct Generations<T> {
    young: HashMap<Key, Slot<T>>,
    old: HashMap<Key, Slot<T>>,
    young_bytes: usize,
}

impl<T> Default for Generations<T> {
    fn default() -> Generations<T> {
        Generations { young: HashMap::new(), old: HashMap::new(), young_bytes: 0 }
    }
}

/// A fact, by its address, and a number of the maker's. A fact never changes; one that is no longer
/// true is replaced, and what was made of it is not found any more.
type Key = (usize, u64);

struct Slot<T> {
    /// Keeps the address from being used for another fact.
    fact: Arc<Fact>,
    content: T,
}

impl<T: Weighed> MadeOfFiles<T> {
    pub fn new(limit: usize) -> MadeOfFiles<T> {
        MadeOfFiles { generations: Mutex::default(), limit: AtomicUsize::new(limit) }
    }

    pub fn limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub fn get(&self, fact: &Arc<Fact>, coding: u64) -> Option<T> {
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

    pub fn put(&self, fact: Arc<Fact>, coding: u64, content: T) {
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

impl<T: Weighed> Generations<T> {
    fn put(&mut self, key: Key, slot: Slot<T>, limit: usize) {
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

impl<T: Weighed> Slot<T> {
    fn bytes(&self) -> usize {
        self.content.bytes() + self.fact.bytes() + size_of::<(Key, Slot<T>)>()
    }
}
