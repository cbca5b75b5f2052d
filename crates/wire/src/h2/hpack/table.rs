//! The dynamic table (RFC 7541 section 2.3.2).

use std::collections::VecDeque;

use super::static_table::FIELDS;
use super::{DEFAULT_TABLE_BYTES, ENTRY_OVERHEAD_BYTES};

/// Fields, the newest first. Memory is allocated with the first entry.
#[derive(Debug)]
pub(super) struct Table {
    /// Names and values of the entries, the oldest at `start`.
    texts: Vec<u8>,
    /// Where the oldest entry begins in `texts`.
    start: usize,
    /// Bytes that were removed from the beginning of `texts`, modulo 2³².
    removed: u32,
    /// From the newest to the oldest.
    entries: VecDeque<Entry>,
    /// The number of entries that there have been, modulo 2³².
    inserted: u32,
    /// Size by RFC 7541 section 4.1.
    bytes: usize,
    limit_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where it begins among the texts of all entries that there have been, modulo 2³².
    begin: u32,
    name_len: u16,
    value_len: u16,
    /// A fingerprint of the field.
    mark: u32,
    note: bool,
}

/// A field of either table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found<'t> {
    pub name: &'t [u8],
    pub value: &'t [u8],
    /// What was noted of it when it was inserted.
    pub note: bool,
}

impl Entry {
    fn len(self) -> usize {
        usize::from(self.name_len) + usize::from(self.value_len)
    }
}

impl Table {
    pub fn new() -> Table {
        Table {
            texts: Vec::new(),
            start: 0,
            removed: 0,
            entries: VecDeque::new(),
            inserted: 0,
            bytes: 0,
            limit_bytes: DEFAULT_TABLE_BYTES,
        }
    }

    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Changes the size; entries that no longer fit are evicted. The limit is at most 65,535.
    pub fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes.min(usize::from(u16::MAX));
        self.evict_to(self.limit_bytes);
    }

    /// Adds a field. One that is larger than the table empties it.
    pub fn insert(&mut self, name: &[u8], value: &[u8], note: bool) {
        let needed = name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        let Some(room) = self.limit_bytes.checked_sub(needed) else {
            self.evict_to(0);
            return;
        };
        self.evict_to(room);
        if self.start > self.limit_bytes {
            self.texts.drain(..self.start);
            self.removed = self.removed.wrapping_add(self.start as u32);
            self.start = 0;
        }
        let begin = self.removed.wrapping_add(self.texts.len() as u32);
        self.texts.extend_from_slice(name);
        self.texts.extend_from_slice(value);
        let (name_len, value_len) = (name.len() as u16, value.len() as u16);
        let mark = mark(name, value);
        self.entries.push_front(Entry { begin, name_len, value_len, mark, note });
        self.inserted = self.inserted.wrapping_add(1);
        self.bytes += needed;
    }

    fn evict_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.bytes -= oldest.len() + ENTRY_OVERHEAD_BYTES;
            self.start += oldest.len();
        }
        if self.entries.is_empty() {
            self.removed = self.removed.wrapping_add(self.texts.len() as u32);
            self.texts.clear();
            self.start = 0;
        }
    }

    /// The field at an index of both tables together, from 1 on.
    pub fn get(&self, index: usize) -> Option<Found<'_>> {
        let (name, value, note) = match index.checked_sub(FIELDS.len() + 1) {
            Some(at) => {
                let entry = *self.entries.get(at)?;
                let (name, value) = self.text(entry)?;
                (name, value, entry.note)
            }
            None => {
                let (name, value) = FIELDS.get(index.checked_sub(1)?).copied()?;
                (name, value, false)
            }
        };
        Some(Found { name, value, note })
    }

    /// Name and value of an entry.
    fn text(&self, entry: Entry) -> Option<(&[u8], &[u8])> {
        let begin = entry.begin.wrapping_sub(self.removed) as usize;
        let text = self.texts.get(begin..begin + entry.len())?;
        text.split_at_checked(usize::from(entry.name_len))
    }

    /// The index of a field that is in the dynamic table. `mark` is its fingerprint; `number`, of
    /// the entry that is tried first, becomes that of the entry that has the field.
    pub fn find(&self, name: &[u8], value: &[u8], mark: u32, number: &mut u32) -> Option<usize> {
        let is_it = |entry: &Entry| entry.mark == mark && self.text(*entry) == Some((name, value));
        // The newest one has the number of all.
        let guess = self.inserted.wrapping_sub(*number) as usize;
        let at = match self.entries.get(guess) {
            Some(entry) if is_it(entry) => guess,
            _ => self.entries.iter().position(is_it)?,
        };
        *number = self.inserted.wrapping_sub(at as u32);
        Some(FIELDS.len() + 1 + at)
    }
}

/// A fingerprint of a field: lengths, and the last bytes of its value.
pub fn mark(name: &[u8], value: &[u8]) -> u32 {
    let last = value.last_chunk::<4>().map_or(0, |last| u32::from_le_bytes(*last));
    last ^ (name.len() as u32) << 24 ^ (value.len() as u32).wrapping_mul(0x0101_0193)
}
