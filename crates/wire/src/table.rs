//! `Table`: ordered, case-insensitive multimap of byte strings, with the semantics of apr_table.
//!
//! Keys and values live in one arena, so a table that is cleared and refilled for every request of
//! a connection does not allocate once it is warm.

mod block;
mod compress;
mod seen;
mod traits;

pub(crate) use block::Field;

use crate::request::HeadFlags;
use crate::words;
use seen::Seen;

/// How [`Table::overlap`] and [`Table::compress`] treat a key that occurs more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// The last value wins (`APR_OVERLAP_TABLES_SET`).
    Set,
    /// Values are joined with `", "` (`APR_OVERLAP_TABLES_MERGE`).
    Merge,
}

/// Ordered (key, value) pairs; key comparison ignores ASCII case. Used for header fields, the
/// environment and notes.
#[derive(Clone, Default)]
pub struct Table {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// Bytes of the arena that no entry refers to.
    dead: usize,
    /// The marks of all entries, and perhaps of removed ones: most look-ups are for keys that no
    /// entry has.
    seen: Seen,
}

#[derive(Clone, Copy)]
struct Entry {
    mark: u32,
    /// Of a field in a [`Block`](block::Block).
    flags: HeadFlags,
    key_at: u32,
    key_len: u32,
    value_at: u32,
    value_len: u32,
}

/// Fewer dead bytes than this never justify copying the arena.
const COMPACT_FLOOR_BYTES: usize = 4096;

/// Most bytes in a table; additions beyond it are dropped. It is far above every configured request
/// limit and only keeps the 32-bit offsets sound.
pub const TABLE_LIMIT_BYTES: usize = 1 << 30;

impl Table {
    /// Returns an empty table that owns no memory.
    pub const fn new() -> Self {
        Table { arena: Vec::new(), entries: Vec::new(), dead: 0, seen: Seen::none() }
    }

    /// Returns an empty table with room for `entries` pairs and `bytes` of keys and values.
    pub fn with_capacity(entries: usize, bytes: usize) -> Self {
        Table {
            arena: Vec::with_capacity(bytes),
            entries: Vec::with_capacity(entries),
            ..Table::new()
        }
    }

    /// The number of pairs; a key that was added twice counts twice.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.dead = 0;
        self.seen = Seen::none();
    }

    /// Bytes of memory held, including unused ones.
    pub fn capacity_bytes(&self) -> usize {
        self.arena.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Makes room for `entries` more pairs and `bytes` of keys and values.
    pub fn reserve(&mut self, entries: usize, bytes: usize) {
        self.arena.reserve(bytes);
        self.entries.reserve(entries);
    }

    /// Frees memory until about `bytes` are held. For connections that become idle.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.arena.shrink_to(bytes);
        self.entries.shrink_to(bytes / size_of::<Entry>());
    }

    /// First value of `key` (`apr_table_get`).
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.position(key).map(|at| self.value_of(self.entries[at]))
    }

    /// Whether `key` occurs.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.position(key).is_some()
    }

    /// All values of `key`, in order.
    pub fn get_all<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mark = mark_of(key);
        let entries = if self.seen.may_have(mark) { self.entries.as_slice() } else { &[] };
        entries
            .iter()
            .filter(move |entry| self.matches(entry, mark, key))
            .map(|entry| self.value_of(*entry))
    }

    /// The pair at `index`.
    pub fn at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(index).map(|entry| (self.key_of(*entry), self.value_of(*entry)))
    }

    /// All pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| (self.key_of(*entry), self.value_of(*entry)))
    }

    /// All keys with their marks, in order.
    pub(crate) fn marked(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.entries.iter().map(|entry| (self.key_of(*entry), entry.mark))
    }

    /// Appends a pair, even if the key exists (`apr_table_add`).
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let Some((key_at, value_at)) = self.store(key, value) else { return };
        let mark = mark_of(key);
        self.seen.note(mark);
        self.entries.push(Entry {
            mark,
            flags: HeadFlags::NONE,
            key_at,
            key_len: key.len() as u32,
            value_at,
            value_len: value.len() as u32,
        });
    }

    /// Appends a pair whose key is in lower case, in the usual way of HTTP/1 (`Accept-Encoding`):
    /// programs and logs expect it.
    pub fn add_lower(&mut self, key: &[u8], value: &[u8]) {
        let at = self.arena.len();
        self.add(key, value);
        let mut begins = true;
        for byte in self.arena.get_mut(at..).unwrap_or_default().iter_mut().take(key.len()) {
            *byte = if begins { byte.to_ascii_uppercase() } else { *byte };
            begins = *byte == b'-';
        }
    }

    /// Replaces the first pair of `key` and removes its others; appends if there is none
    /// (`apr_table_set`).
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        let Some(at) = self.position(key) else { return self.add(key, value) };
        self.replace_value(at, value);
        self.remove_from(at + 1, key);
    }

    /// Adds the pair unless the key exists (`apr_table_get` then `apr_table_set`).
    pub fn set_if_absent(&mut self, key: &[u8], value: &[u8]) {
        if !self.contains(key) {
            self.add(key, value);
        }
    }

    /// Appends `", "` and `value` to the first value of `key`, or adds the pair
    /// (`apr_table_merge`).
    pub fn merge(&mut self, key: &[u8], value: &[u8]) {
        match self.position(key) {
            Some(at) => self.append_value(at, b", ", value),
            None => self.add(key, value),
        }
    }

    /// Removes every pair of `key` and returns whether there was one (`apr_table_unset`).
    pub fn unset(&mut self, key: &[u8]) -> bool {
        let Some(at) = self.position(key) else { return false };
        self.remove_from(at, key);
        true
    }

    /// Keeps only the pairs for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) {
        let arena = &self.arena;
        self.entries.retain(|entry| {
            keep(
                slice(arena, entry.key_at, entry.key_len),
                slice(arena, entry.value_at, entry.value_len),
            )
        });
        self.recount_dead();
    }

    /// Appends all pairs of `other` (`apr_table_overlay` without the copy of the base).
    pub fn extend(&mut self, other: &Table) {
        self.arena.reserve(other.arena.len().saturating_sub(other.dead));
        self.entries.reserve(other.entries.len());
        for (key, value) in other.iter() {
            self.add(key, value);
        }
    }

    /// Merges the pairs of `other` (`apr_table_overlap`): with [`Overlap::Set`] they replace equal
    /// keys, with [`Overlap::Merge`] their values are joined.
    pub fn overlap(&mut self, other: &Table, how: Overlap) {
        for (key, value) in other.iter() {
            match how {
                Overlap::Set => self.set(key, value),
                Overlap::Merge => self.merge(key, value),
            }
        }
    }

    /// Whether a value of `key` contains `token` in its comma-separated list, ignoring ASCII case
    /// (`ap_find_token`).
    pub fn contains_token(&self, key: &[u8], token: &[u8]) -> bool {
        self.get_all(key).any(|value| crate::list::contains_token(value, token))
    }

    fn append_value(&mut self, at: usize, separator: &[u8], value: &[u8]) {
        if !self.move_value_to_end(at, separator.len() + value.len()) {
            return;
        }
        self.arena.extend_from_slice(separator);
        self.arena.extend_from_slice(value);
        self.entries[at].value_len += (separator.len() + value.len()) as u32;
        self.compact_if_worthwhile();
    }

    /// Moves the value at `at` to the end of the arena, so that it can grow in place. Returns false
    /// if the table's limit does not allow `more` bytes.
    fn move_value_to_end(&mut self, at: usize, more: usize) -> bool {
        let (value_at, value_len) =
            (self.entries[at].value_at as usize, self.entries[at].value_len as usize);
        if self.arena.len() + value_len + more > TABLE_LIMIT_BYTES {
            return false;
        }
        if value_at + value_len != self.arena.len() {
            self.entries[at].value_at = self.arena.len() as u32;
            self.arena.extend_from_within(value_at..value_at + value_len);
            self.dead += value_len;
        }
        true
    }

    fn replace_value(&mut self, at: usize, value: &[u8]) {
        let entry = self.entries[at];
        let old_len = entry.value_len as usize;
        if value.len() <= old_len {
            let start = entry.value_at as usize;
            self.arena[start..start + value.len()].copy_from_slice(value);
            self.dead += old_len - value.len();
        } else {
            let Some((_, value_at)) = self.store(b"", value) else { return };
            self.entries[at].value_at = value_at;
            self.dead += old_len;
        }
        self.entries[at].value_len = value.len() as u32;
        self.compact_if_worthwhile();
    }

    fn remove_from(&mut self, start: usize, key: &[u8]) {
        let mark = mark_of(key);
        let mut at = start;
        while at < self.entries.len() {
            if self.matches(&self.entries[at], mark, key) {
                let gone = self.entries.remove(at);
                self.dead += (gone.key_len + gone.value_len) as usize;
            } else {
                at += 1;
            }
        }
        self.compact_if_worthwhile();
    }

    fn position(&self, key: &[u8]) -> Option<usize> {
        let mark = mark_of(key);
        if !self.seen.may_have(mark) {
            return None;
        }
        self.entries.iter().position(|entry| self.matches(entry, mark, key))
    }

    #[inline]
    fn matches(&self, entry: &Entry, mark: u32, key: &[u8]) -> bool {
        entry.mark == mark && words::same(self.key_of(*entry), key)
    }

    fn key_of(&self, entry: Entry) -> &[u8] {
        slice(&self.arena, entry.key_at, entry.key_len)
    }

    fn value_of(&self, entry: Entry) -> &[u8] {
        slice(&self.arena, entry.value_at, entry.value_len)
    }

    fn store(&mut self, key: &[u8], value: &[u8]) -> Option<(u32, u32)> {
        let key_at = self.arena.len();
        if key_at + key.len() + value.len() > TABLE_LIMIT_BYTES {
            return None;
        }
        self.arena.extend_from_slice(key);
        let value_at = self.arena.len();
        self.arena.extend_from_slice(value);
        Some((key_at as u32, value_at as u32))
    }

    fn recount_dead(&mut self) {
        let live: usize =
            self.entries.iter().map(|entry| (entry.key_len + entry.value_len) as usize).sum();
        self.dead = self.arena.len().saturating_sub(live);
        self.compact_if_worthwhile();
    }

    fn compact_if_worthwhile(&mut self) {
        if self.dead < COMPACT_FLOOR_BYTES || self.dead < self.arena.len() / 2 {
            return;
        }
        let mut fresh = Vec::with_capacity(self.arena.len() - self.dead + COMPACT_FLOOR_BYTES);
        for entry in &mut self.entries {
            let key_at = fresh.len() as u32;
            fresh.extend_from_slice(slice(&self.arena, entry.key_at, entry.key_len));
            let value_at = fresh.len() as u32;
            fresh.extend_from_slice(slice(&self.arena, entry.value_at, entry.value_len));
            entry.key_at = key_at;
            entry.value_at = value_at;
        }
        self.arena = fresh;
        self.dead = 0;
    }
}

#[inline]
fn slice(arena: &[u8], at: u32, len: u32) -> &[u8] {
    arena.get(at as usize..at as usize + len as usize).unwrap_or_default()
}

/// A cheap case-insensitive fingerprint of length, first byte and last four bytes. It needs no loop
/// over the key, so storing a field stays cheap; equality is always checked as well.
#[inline]
pub(crate) const fn mark_of(key: &[u8]) -> u32 {
    let last = match key {
        [.., a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
        [a, b, c] => u32::from_le_bytes([*a, *b, *c, 0]),
        [a, b] => u32::from_le_bytes([*a, *b, 0, 0]),
        [a] => *a as u32,
        [] => 0,
    };
    let first = match key {
        [first, ..] => *first as u32 | 0x20,
        [] => 0,
    };
    (last | 0x2020_2020) ^ (key.len() as u32).wrapping_mul(0x0100_0193) ^ first << 13
}

#[cfg(test)]
mod tests;
