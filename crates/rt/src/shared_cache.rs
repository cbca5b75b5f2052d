//! A cache of byte strings in memory that a process shares with those forked from it.
//!
//! Entries are written and read without a lock. Each has a sequence number, which is odd while the
//! entry is written: a reader copies the bytes and then checks that the number is unchanged. A
//! process that dies while it writes costs one entry. If two writers meet, one gives up.
//!
//! Entries are filled one behind the other, so that the cache takes as many pages as it has values,
//! and are found by a small index: each process maps pages for itself, and each look-up of a page
//! that is rarely used is a miss in the processor's caches.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::watch::SharedMemory;

const WORD: usize = size_of::<u64>();

/// The number of recently requested keys that are remembered.
const ONCE_WORDS: usize = 16 * 1024;

/// The index: groups of words, each of which is 0, or the number of an entry and a part of its
/// key's hash. A group is a cache line.
const GROUPS: usize = 8192;
const GROUP_WORDS: usize = 8;
const INDEX_WORDS: usize = GROUPS * GROUP_WORDS;
/// A word of the index has the number of an entry, plus one, in these bits.
const NUMBER_BITS: u32 = 20;

/// Words of an entry in front of its bytes.
const HEAD_WORDS: usize = 4;
const SEQUENCE: usize = 0;
const HASH: usize = 1;
const LENGTH: usize = 2;
/// Whether it was used since the hand came by.
const USED: usize = 3;

/// Most entries that are examined for one that is not in use.
const LOOKED_AT: usize = 16;

/// Entries of one size.
struct Class {
    /// The number of its first entry.
    first: usize,
    count: usize,
    /// Words of an entry, with its head.
    words: usize,
    /// The word at which it begins: the position of its hand, in a cache line of its own.
    start: usize,
}

impl Class {
    const FIRST: Class = Class { first: 0, count: 0, words: 0, start: ONCE_WORDS + INDEX_WORDS };

    /// The next class: `count` entries of `bytes`, with their heads.
    const fn then(&self, count: usize, bytes: usize) -> Class {
        Class { first: self.first + self.count, count, words: bytes / WORD, start: self.end() }
    }

    const fn end(&self) -> usize {
        self.start + GROUP_WORDS + self.count * self.words
    }
}

/// 16,384 entries of 1 KB, 12,288 of 2 KB, 2,048 of 8 KB and 512 of 40 KB: 77 MB with the index.
/// Pages that are never written take no memory.
const CLASSES: [Class; 4] = {
    let small = Class::FIRST.then(16_384, 1024);
    let medium = small.then(12_288, 2 * 1024);
    let large = medium.then(2_048, 8 * 1024);
    let largest = large.then(512, 40 * 1024);
    [small, medium, large, largest]
};
const WORDS: usize = CLASSES[3].end();

const _: () = assert!(CLASSES[3].first + CLASSES[3].count < 1 << NUMBER_BITS);

/// The most bytes of all entries.
pub const SHARED_CACHE_BYTES: usize = WORDS * WORD;

/// The cache. Keys and values are stored one behind the other.
pub struct SharedCache {
    memory: SharedMemory,
    hasher: RandomState,
}

impl SharedCache {
    /// Creates an empty cache. Errors: those of mmap(2).
    pub fn new() -> io::Result<SharedCache> {
        let memory = SharedMemory::new(WORDS)?;
        Ok(SharedCache { memory, hasher: RandomState::new() })
    }

    /// Returns what `accept` makes of a value of `key`; values that it refuses are skipped.
    /// `buffer` receives the key and the value behind it, as far as the length that `accept` gets.
    pub fn get<T>(
        &self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        mut accept: impl FnMut(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let hash = self.hash(key);
        for word in self.group(hash) {
            let entry = self.entry_at(word.load(Ordering::Acquire), hash);
            let copied = entry.as_ref().and_then(|entry| entry.copy(hash, buffer));
            let value = copied.and_then(|bytes| bytes.strip_prefix(key));
            if let Some(accepted) = value.and_then(&mut accept) {
                if let Some(entry) = entry {
                    entry.use_it();
                }
                return Some(accepted);
            }
        }
        None
    }

    /// Stores a value, and returns whether it did: it may be too long. It replaces an earlier value
    /// of the same key.
    pub fn put(&self, key: &[u8], value: &[u8]) -> bool {
        let (hash, words) = (self.hash(key), (key.len() + value.len()).div_ceil(WORD));
        let Some(class) = CLASSES.iter().find(|class| class.words - HEAD_WORDS >= words) else {
            return false;
        };
        let group = self.group(hash);
        let place = group.iter().find(|word| self.has(word.load(Ordering::Acquire), hash));
        let number = place.map(|place| number_in(place.load(Ordering::Acquire)));
        let own = number.flatten().filter(|number| is_in(class, *number));
        let Some(number) = own.or_else(|| self.make_room(class)) else { return false };
        let entry = self.entry(class, number);
        let is_written = entry.is_some_and(|entry| entry.write(hash, key, value));
        if is_written && own.is_none() {
            let place = place.or_else(|| self.place_in(group, hash));
            place.inspect(|place| place.store(index_word(hash, number), Ordering::Release));
        }
        is_written
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

    /// The words of the index where the key with this hash is.
    fn group(&self, hash: u64) -> &[AtomicU64] {
        let start = ONCE_WORDS + hash as usize % GROUPS * GROUP_WORDS;
        self.memory.words().get(start..start + GROUP_WORDS).unwrap_or_default()
    }

    /// The entry of a word of the index, if it may be that of the hash.
    fn entry_at(&self, word: u64, hash: u64) -> Option<Entry<'_>> {
        let number = number_in(word).filter(|number| index_word(hash, *number) == word)?;
        self.entry(CLASSES.iter().find(|class| is_in(class, number))?, number)
    }

    fn has(&self, word: u64, hash: u64) -> bool {
        self.entry_at(word, hash)
            .is_some_and(|entry| entry.head(HASH).load(Ordering::Relaxed) == hash)
    }

    fn entry(&self, class: &Class, number: usize) -> Option<Entry<'_>> {
        let start = class.start + GROUP_WORDS + (number - class.first) * class.words;
        self.memory.words().get(start..start + class.words).map(Entry)
    }

    /// The number of an entry that was not used lately.
    fn make_room(&self, class: &Class) -> Option<usize> {
        let hand = self.memory.words().get(class.start)?;
        let mut last = None;
        for _ in 0..LOOKED_AT {
            let at = hand.fetch_add(1, Ordering::Relaxed) as usize % class.count;
            let number = class.first + at;
            let entry = self.entry(class, number)?;
            if entry.is_being_written() {
                continue;
            }
            if entry.head(USED).swap(0, Ordering::Relaxed) == 0 {
                return Some(number);
            }
            last = Some(number);
        }
        last
    }

    /// A word of a group for a new entry: one that is unused, or whose entry has another key by
    /// now, or else any.
    fn place_in<'g>(&self, group: &'g [AtomicU64], hash: u64) -> Option<&'g AtomicU64> {
        let is_free = |word: &&AtomicU64| {
            let word = word.load(Ordering::Acquire);
            let entry = number_in(word).and_then(|number| {
                self.entry(CLASSES.iter().find(|class| is_in(class, number))?, number)
            });
            let now = entry.map_or(0, |entry| entry.head(HASH).load(Ordering::Relaxed));
            now >> NUMBER_BITS != word >> NUMBER_BITS
        };
        let any = || group.get((hash >> 32) as usize % GROUP_WORDS);
        group
            .iter()
            .find(|word| word.load(Ordering::Acquire) == 0)
            .or_else(|| group.iter().find(is_free))
            .or_else(any)
    }
}

fn index_word(hash: u64, number: usize) -> u64 {
    hash >> NUMBER_BITS << NUMBER_BITS | (number as u64 + 1)
}

/// The number of an entry in a word of the index, if there is one.
fn number_in(word: u64) -> Option<usize> {
    ((word & ((1 << NUMBER_BITS) - 1)) as usize).checked_sub(1)
}

fn is_in(class: &Class, number: usize) -> bool {
    (class.first..class.first + class.count).contains(&number)
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

    /// The word is written as rarely as possible, since other threads read it.
    fn use_it(&self) {
        if self.head(USED).load(Ordering::Relaxed) == 0 {
            self.head(USED).store(1, Ordering::Relaxed);
        }
    }

    /// Copies key and value to the beginning of `buffer`. `None` if they are of another hash, or
    /// were written meanwhile.
    fn copy<'b>(&self, hash: u64, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let sequence = self.head(SEQUENCE).load(Ordering::Acquire);
        let is_it = self.head(HASH).load(Ordering::Relaxed) == hash;
        let length = self.head(LENGTH).load(Ordering::Relaxed) as usize;
        let words = self.0.get(HEAD_WORDS..HEAD_WORDS.checked_add(length.div_ceil(WORD))?)?;
        if !is_it || !sequence.is_multiple_of(2) {
            return None;
        }
        // What the buffer has is overwritten, so it is not cleared.
        buffer.resize(words.len() * WORD, 0);
        for (word, bytes) in words.iter().zip(buffer.chunks_exact_mut(WORD)) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        fence(Ordering::Acquire);
        let is_whole = self.head(SEQUENCE).load(Ordering::Relaxed) == sequence;
        buffer.get(..length).filter(|_| is_whole)
    }

    /// Returns false if another writer is here.
    fn write(&self, hash: u64, key: &[u8], value: &[u8]) -> bool {
        let word = self.head(SEQUENCE);
        let sequence = word.load(Ordering::Relaxed);
        let begin = || {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            word.compare_exchange(sequence, sequence + 1, acquire, relaxed)
        };
        if sequence % 2 == 1 || begin().is_err() {
            return false;
        }
        fence(Ordering::Release);
        self.head(HASH).store(hash, Ordering::Relaxed);
        self.head(LENGTH).store((key.len() + value.len()) as u64, Ordering::Relaxed);
        self.head(USED).store(1, Ordering::Relaxed);
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
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &SharedCache, key: &[u8]) -> Option<Vec<u8>> {
        cache.get(key, &mut Vec::new(), |value| Some(value.to_vec()))
    }

    #[test]
    fn what_was_stored_is_found_whatever_its_length() {
        let cache = SharedCache::new().unwrap();
        for length in [0, 1, 7, 8, 2000, 2048, 8000, 30_000] {
            let value = vec![length as u8; length];
            let key = format!("/{length}");
            assert!(cache.put(key.as_bytes(), &value));
            assert_eq!(get(&cache, key.as_bytes()), Some(value), "{length}");
        }
        assert!(!cache.put(b"/long", &vec![0; 50_000]));
        assert_eq!(get(&cache, b"/long"), None);
        assert_eq!(get(&cache, b"/none"), None);
    }

    #[test]
    fn a_new_value_replaces_the_one_before() {
        let cache = SharedCache::new().unwrap();
        cache.put(b"/a", b"one");
        cache.put(b"/a", b"two");
        assert_eq!(get(&cache, b"/a"), Some(b"two".to_vec()));
        // One of another length is stored elsewhere.
        cache.put(b"/a", &[b'x'; 4000]);
        assert_eq!(get(&cache, b"/a").map(|value| value.len()), Some(4000));
        cache.put(b"/a", b"three");
        assert_eq!(get(&cache, b"/a"), Some(b"three".to_vec()));
    }

    #[test]
    fn an_entry_that_is_used_is_not_replaced() {
        let cache = SharedCache::new().unwrap();
        for number in 0..100_000_u64 {
            cache.put(number.to_string().as_bytes(), b"value");
            assert!(get(&cache, b"0").is_some(), "{number}");
        }
    }

    #[test]
    fn many_are_found_again() {
        let cache = SharedCache::new().unwrap();
        let keys = || (0..10_000_u32).map(|number| number.to_string());
        keys().for_each(|key| assert!(cache.put(key.as_bytes(), key.as_bytes())));
        let found = keys().filter(|key| get(&cache, key.as_bytes()).is_some()).count();
        assert!(found > 9_900, "{found}");
        // They are filled one behind the other.
        assert_eq!(cache.memory.words()[CLASSES[0].start].load(Ordering::Relaxed), 10_000);
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
                        cache.put(b"/a", &vec![byte; 1 + usize::from(round % 1500)]);
                    }
                });
            }
            let mut buffer = Vec::new();
            for _ in 0..20_000 {
                let is_whole = |value: &[u8]| value.iter().all(|byte| Some(byte) == value.first());
                assert_ne!(cache.get(b"/a", &mut buffer, |v| Some(is_whole(v))), Some(false));
            }
        });
    }
}
