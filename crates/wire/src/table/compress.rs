//! Joins pairs of the same key (`apr_table_compress`).

use super::seen::Seen;
use super::{Entry, Overlap, Table};

/// Most pairs for which duplicates are found by pairwise comparison.
const COMPRESS_BY_SCAN: usize = 64;

impl Table {
    /// Reduces each key to one pair, at the position of its first (`apr_table_compress`).
    pub fn compress(&mut self, how: Overlap) {
        if self.entries.len() > COMPRESS_BY_SCAN {
            return self.compress_sorted(how);
        }
        if !self.has_duplicates() {
            return;
        }
        let mut at = 0;
        while at < self.entries.len() {
            self.compress_one(at, how);
            at += 1;
        }
    }

    /// Whether a key occurs twice. A bitmap of marks limits comparisons to keys whose bit is
    /// already set.
    fn has_duplicates(&self) -> bool {
        let mut seen = Seen::none();
        self.entries.iter().enumerate().any(|(at, entry)| {
            seen.note(entry.mark) && {
                let key = self.key_of(*entry);
                self.entries[..at].iter().any(|before| self.matches(before, entry.mark, key))
            }
        })
    }

    /// Like [`Table::compress`] in O(n log n), for tables too large for pairwise comparison.
    pub(super) fn compress_sorted(&mut self, how: Overlap) {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_cached_key(|at| (self.key_of(self.entries[*at]).to_ascii_lowercase(), *at));
        let mut is_gone = vec![false; order.len()];
        let mut first = order.first().copied().unwrap_or(0);
        for at in order.into_iter().skip(1) {
            let (entry, kept) = (self.entries[at], self.entries[first]);
            if !self.key_of(entry).eq_ignore_ascii_case(self.key_of(kept)) {
                first = at;
                continue;
            }
            is_gone[at] = true;
            self.absorb(first, entry, how);
        }
        let mut gone = is_gone.into_iter();
        self.entries.retain(|_| !gone.next().unwrap_or(false));
    }

    fn compress_one(&mut self, at: usize, how: Overlap) {
        let first = self.entries[at];
        let mut scan = at + 1;
        while scan < self.entries.len() {
            let entry = self.entries[scan];
            if entry.mark != first.mark
                || !self.key_of(entry).eq_ignore_ascii_case(self.key_of(first))
            {
                scan += 1;
                continue;
            }
            self.entries.remove(scan);
            self.absorb(at, entry, how);
        }
    }

    /// Merges the value of `entry`, which is removed, into the one at `at`.
    fn absorb(&mut self, at: usize, entry: Entry, how: Overlap) {
        match how {
            Overlap::Set => {
                self.dead += self.entries[at].value_len as usize;
                self.entries[at].value_at = entry.value_at;
                self.entries[at].value_len = entry.value_len;
            }
            Overlap::Merge => self.join_values(at, entry),
        }
    }

    /// Writes `value(at) ", " value(other)` as the value at `at`.
    fn join_values(&mut self, at: usize, other: Entry) {
        let value = (other.value_at as usize, other.value_len as usize);
        if !self.move_value_to_end(at, 2 + value.1) {
            return;
        }
        self.arena.extend_from_slice(b", ");
        self.arena.extend_from_within(value.0..value.0 + value.1);
        self.entries[at].value_len += 2 + value.1 as u32;
        self.dead += value.1;
    }
}
