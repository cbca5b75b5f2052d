//! A cache of byte strings in memory that a process shares with those forked from it.
//!
//! Entries are written and read without a lock. Each has a sequence number, which is odd while the
//! entry is written: a reader copies the bytes and then checks that the number is unchanged. A
//! process that dies while it writes costs one entry. If two writers meet, one gives up.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::watch::SharedMemory;

/// Entries in which a key can be stored; a new value replaces the least recently used.
const WAYS: usize = 4;
/// Words of an entry in front of its bytes.
const HEAD_WORDS: usize = 4;
const SEQUENCE: usize = 0;
const HASH: usize = 1;
const LENGTH: usize = 2;
/// When the entry was last used, in seconds.
const USED: usize = 3;

/// The number of recently requested keys that are remembered.
const ONCE_WORDS: usize = 16 * 1024;

const WORD: usize = size_of::<u64>();

/// Entries of one size.
struct Class {
    /// The word at which it begins.
    start: usize,
    /// The number of groups of [`WAYS`] entries; a power of two.
    groups: usize,
    /// Words of an entry for its bytes.
    words: usize,
}

impl Class {
    const fn after(before: usize, groups: usize, bytes: usize) -> Class {
        Class { start: before, groups, words: bytes / WORD }
    }

    const fn end(&self) -> usize {
        self.start + self.groups * WAYS * (HEAD_WORDS + self.words)
    }
}

/// 16,384 entries of 2 KB, 2,048 of 8 KB and 512 of 40 KB: 69 MB. Pages that are never written take
/// no memory.
const CLASSES: [Class; 3] = {
    let small = Class::after(ONCE_WORDS, 4096, 2 * 1024);
    let medium = Class::after(small.end(), 512, 8 * 1024);
    let large = Class::after(medium.end(), 128, 40 * 1024);
    [small, medium, large]
};

/// The most bytes of all entries.
pub const SHARED_CACHE_BYTES: usize = CLASSES[2].end() * WORD;

/// The cache. Keys and values are stored one behind the other.
pub struct SharedCache {
    memory: SharedMemory,
    hasher: RandomState,
}

impl SharedCache {
    /// Creates an empty cache. Errors: those of mmap(2).
    pub fn new() -> io::Result<SharedCache> {
        let memory = SharedMemory::new(CLASSES[2].end())?;
        Ok(SharedCache { memory, hasher: RandomState::new() })
    }

    /// Returns what `accept` makes of a value of `key`; values that it refuses are skipped.
    /// `buffer` receives the bytes, and `now_s` is the time in seconds.
    pub fn get<T>(
        &self,
        key: &[u8],
        now_s: u64,
        buffer: &mut Vec<u8>,
        mut accept: impl FnMut(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let hash = self.hash(key);
        for entry in CLASSES.iter().flat_map(|class| self.entries(class, hash)) {
            if entry.head(HASH).load(Ordering::Relaxed) != hash || !entry.copy(buffer) {
                continue;
            }
            let value = buffer.strip_prefix(key);
            if let Some(accepted) = value.and_then(&mut accept) {
                entry.use_at(now_s);
                return Some(accepted);
            }
        }
        None
    }

    /// Stores a value, unless it is too long. It replaces an earlier value of the same key.
    pub fn put(&self, key: &[u8], now_s: u64, value: &[u8]) {
        let (hash, length) = (self.hash(key), key.len() + value.len());
        let Some(class) = CLASSES.iter().find(|class| class.words * WORD >= length) else { return };
        let age = |entry: &Entry<'_>| match entry.head(HASH).load(Ordering::Relaxed) == hash {
            true => 0,
            false => entry.head(USED).load(Ordering::Relaxed).saturating_add(1),
        };
        let free = self.entries(class, hash).filter(|entry| !entry.is_being_written());
        if let Some(entry) = free.min_by_key(age) {
            entry.write(hash, now_s, key, value);
        }
    }

    /// Whether any thread or process requested `key` recently; records this request.
    pub fn is_again(&self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        let word = self.memory.words().get(hash as usize % ONCE_WORDS);
        word.is_some_and(|word| word.swap(hash, Ordering::Relaxed) == hash)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        // 0 is an entry that was never written.
        self.hasher.hash_one(key).max(1)
    }

    fn entries(&self, class: &'static Class, hash: u64) -> impl Iterator<Item = Entry<'_>> {
        let words = HEAD_WORDS + class.words;
        let group = (hash >> 32) as usize & (class.groups - 1);
        let start = class.start + group * WAYS * words;
        let all = self.memory.words().get(start..start + WAYS * words);
        all.unwrap_or_default().chunks_exact(words).map(Entry)
    }
}

/// An entry's words.
struct Entry<'m>(&'m [AtomicU64]);

impl Entry<'_> {
    fn head(&self, index: usize) -> &AtomicU64 {
        &self.0[index]
    }

    fn is_being_written(&self) -> bool {
        self.head(SEQUENCE).load(Ordering::Relaxed) % 2 == 1
    }

    /// Records a use. The word is written at most once a second, since other threads read it.
    fn use_at(&self, now_s: u64) {
        if self.head(USED).load(Ordering::Relaxed) != now_s {
            self.head(USED).store(now_s, Ordering::Relaxed);
        }
    }

    /// Copies key and value; returns false if they were written meanwhile.
    fn copy(&self, buffer: &mut Vec<u8>) -> bool {
        let sequence = self.head(SEQUENCE).load(Ordering::Acquire);
        let length = self.head(LENGTH).load(Ordering::Relaxed) as usize;
        let words = self.0.get(HEAD_WORDS..HEAD_WORDS + length.div_ceil(WORD));
        let Some(words) = words.filter(|_| sequence.is_multiple_of(2)) else { return false };
        buffer.clear();
        buffer.resize(words.len() * WORD, 0);
        for (word, bytes) in words.iter().zip(buffer.chunks_exact_mut(WORD)) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        buffer.truncate(length);
        fence(Ordering::Acquire);
        self.head(SEQUENCE).load(Ordering::Relaxed) == sequence
    }

    fn write(&self, hash: u64, now_s: u64, key: &[u8], value: &[u8]) {
        let word = self.head(SEQUENCE);
        let sequence = word.load(Ordering::Relaxed);
        let begin = || {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            word.compare_exchange(sequence, sequence + 1, acquire, relaxed)
        };
        if sequence % 2 == 1 || begin().is_err() {
            return;
        }
        fence(Ordering::Release);
        self.head(HASH).store(hash, Ordering::Relaxed);
        self.head(LENGTH).store((key.len() + value.len()) as u64, Ordering::Relaxed);
        self.head(USED).store(now_s, Ordering::Relaxed);
        let mut bytes = key.iter().chain(value).copied();
        for word in self.0.iter().skip(HEAD_WORDS) {
            let mut part = [0; WORD];
            let count = part.iter_mut().zip(&mut bytes).map(|(to, from)| *to = from).count();
            word.store(u64::from_ne_bytes(part), Ordering::Relaxed);
            if count < WORD {
                break;
            }
        }
        word.store(sequence + 2, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &SharedCache, key: &[u8]) -> Option<Vec<u8>> {
        cache.get(key, 1, &mut Vec::new(), |value| Some(value.to_vec()))
    }

    #[test]
    fn what_was_stored_is_found_whatever_its_length() {
        let cache = SharedCache::new().unwrap();
        for length in [0, 1, 7, 8, 2000, 2048, 8000, 30_000] {
            let value = vec![length as u8; length];
            let key = format!("/{length}");
            cache.put(key.as_bytes(), 1, &value);
            assert_eq!(get(&cache, key.as_bytes()), Some(value), "{length}");
        }
        cache.put(b"/long", 1, &vec![0; 50_000]);
        assert_eq!(get(&cache, b"/long"), None);
        assert_eq!(get(&cache, b"/none"), None);
    }

    #[test]
    fn a_new_value_replaces_the_one_before() {
        let cache = SharedCache::new().unwrap();
        cache.put(b"/a", 1, b"one");
        cache.put(b"/a", 1, b"two");
        assert_eq!(get(&cache, b"/a"), Some(b"two".to_vec()));
        // One of another length is stored elsewhere: the reader refuses the outdated one.
        cache.put(b"/a", 1, &[b'x'; 4000]);
        let long = |value: &[u8]| (value.len() > 3).then_some(value.len());
        assert_eq!(cache.get(b"/a", 1, &mut Vec::new(), long), Some(4000));
    }

    #[test]
    fn the_least_recently_used_entry_is_replaced() {
        let cache = SharedCache::new().unwrap();
        for number in 0..100_000_u64 {
            cache.put(number.to_string().as_bytes(), number, b"value");
            assert!(get_at(&cache, b"0", number), "{number}");
        }
    }

    fn get_at(cache: &SharedCache, key: &[u8], now_s: u64) -> bool {
        cache.get(key, now_s, &mut Vec::new(), |_| Some(())).is_some()
    }

    #[test]
    fn a_key_that_comes_again_is_known() {
        let cache = SharedCache::new().unwrap();
        assert!(!cache.is_again(b"/a"));
        assert!(cache.is_again(b"/a"));
        assert!(!cache.is_again(b"/b"));
    }

    #[test]
    fn readers_never_see_a_part_of_a_value() {
        let cache = SharedCache::new().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..2_u8 {
                let cache = &cache;
                scope.spawn(move || {
                    for round in 0..2_000_u16 {
                        let byte = writer * 100 + (round % 100) as u8;
                        cache.put(b"/a", 1, &vec![byte; 1 + usize::from(round % 1500)]);
                    }
                });
            }
            let mut buffer = Vec::new();
            for _ in 0..20_000 {
                let is_whole = |value: &[u8]| value.iter().all(|byte| Some(byte) == value.first());
                assert_ne!(cache.get(b"/a", 1, &mut buffer, |v| Some(is_whole(v))), Some(false));
            }
        });
    }
}
