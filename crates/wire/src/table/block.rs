//! The fields of a head, which are lines of one text: one copy instead of two for each.

use super::seen::Seen;
use super::{Entry, TABLE_LIMIT_BYTES, Table, mark_of};
use crate::request::HeadFlags;

/// A pair in its line; positions count from the line's beginning, where the key begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The key's fingerprint.
    pub(crate) mark: u32,
    /// The flags of a request's field of this name.
    pub(crate) flags: HeadFlags,
    key_len: u32,
    value_at: u32,
    value_len: u32,
}

impl Field {
    /// The field of a line that is shorter than [`TABLE_LIMIT_BYTES`].
    #[inline(always)]
    pub(crate) fn new(key: &[u8], value_at: usize, value_len: usize) -> Field {
        let mark = mark_of(key);
        Field {
            mark,
            flags: HeadFlags::of_field(key, mark),
            key_len: key.len() as u32,
            value_at: value_at as u32,
            value_len: value_len as u32,
        }
    }
}

/// Pairs that are about to be added to an empty table as lines of one text.
pub(crate) struct Block<'a> {
    table: &'a mut Table,
    /// Bytes of keys and values.
    live: usize,
    /// That of the table, once the block is finished.
    seen: Seen,
    may_repeat: bool,
}

impl Table {
    /// Clears the table and begins to add lines. It is of no use before [`Block::finish`].
    pub(crate) fn begin_block(&mut self) -> Block<'_> {
        self.clear();
        Block { table: self, live: 0, seen: Seen::none(), may_repeat: false }
    }

    /// The line of the pair at `index`, with its end, and its field. Only for a table whose pairs
    /// are the lines of one text as before.
    #[inline]
    pub(crate) fn line(&self, index: usize) -> Option<(&[u8], Field)> {
        let entry = self.entries.get(index)?;
        let start = entry.key_at as usize;
        let end = match self.entries.get(index + 1) {
            Some(next) => next.key_at as usize,
            None => self.arena.len().checked_sub(b"\r\n".len())?,
        };
        let field = Field {
            mark: entry.mark,
            flags: entry.flags,
            key_len: entry.key_len,
            value_at: entry.value_at.wrapping_sub(entry.key_at),
            value_len: entry.value_len,
        };
        Some((self.arena.get(start..end)?, field))
    }

    /// The pair at `index` as its line with its end, `key: value`, if it was added as such.
    #[inline]
    pub(crate) fn written(&self, index: usize) -> Option<&[u8]> {
        let entry = self.entries.get(index)?;
        let start = entry.key_at as usize;
        let end = entry.value_at as usize + entry.value_len as usize + b"\r\n".len();
        let is_apart = entry.value_at == entry.key_at.wrapping_add(entry.key_len + 2);
        let line = self.arena.get(start..end).filter(|_| is_apart)?;
        let is_line =
            line.ends_with(b"\r\n") && line.get(entry.key_len as usize..)?.starts_with(b": ");
        is_line.then_some(line)
    }

    /// The index of the first pair with this mark among the `most` pairs from `index` on.
    #[inline]
    pub(crate) fn find_mark(&self, index: usize, most: usize, mark: u32) -> Option<usize> {
        let found = self.entries.get(index..)?.iter().take(most).position(|e| e.mark == mark)?;
        Some(index + found)
    }

    /// The text of such a table, with the blank line.
    pub(crate) fn text(&self) -> &[u8] {
        &self.arena
    }

    /// Replaces all pairs by those of `other` and keeps the memory.
    pub(crate) fn copy_from(&mut self, other: &Table) {
        self.clear();
        self.arena.extend_from_slice(&other.arena);
        self.entries.extend_from_slice(&other.entries);
        self.dead = other.dead;
        self.seen = other.seen;
    }
}

impl Block<'_> {
    /// The number of pairs so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.table.entries.len()
    }

    /// Adds the field of the line at `at`.
    #[inline]
    pub(crate) fn add(&mut self, field: Field, at: usize) {
        if self.seen.note(field.mark) {
            self.may_repeat |= self.table.entries.iter().any(|entry| entry.mark == field.mark);
        }
        self.live += (field.key_len + field.value_len) as usize;
        self.table.entries.push(Entry {
            mark: field.mark,
            flags: field.flags,
            key_at: at as u32,
            key_len: field.key_len,
            value_at: at as u32 + field.value_at,
            value_len: field.value_len,
        });
    }

    /// Adds the text: the lines and the blank one. Returns whether a key may occur twice, and
    /// `None` if the text is too long for a table.
    pub(crate) fn finish(self, text: &[u8]) -> Option<bool> {
        if text.len() > TABLE_LIMIT_BYTES {
            self.table.clear();
            return None;
        }
        self.table.seen = self.seen;
        self.table.arena.extend_from_slice(text);
        self.table.dead = text.len().saturating_sub(self.live);
        Some(self.may_repeat)
    }
}
