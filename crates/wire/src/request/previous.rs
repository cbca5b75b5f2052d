//! The fields of a connection's previous head. Clients repeat most of their field lines, byte by
//! byte; such a line need not be parsed again.

use super::{HeadFlags, HeadLimits};
use crate::table::{Field, Table};

/// Longest text of fields that is kept.
const KEPT_BYTES: usize = 4096;

/// Most lines that a client leaves out of its next head, between two that it repeats.
const LEFT_OUT: usize = 2;

/// The fields of the previous head.
#[derive(Clone, Debug, Default)]
pub(super) struct Previous {
    /// The fields, no two of the same name. Empty if there is no previous head.
    headers: Table,
    flags: HeadFlags,
    /// The limits that they were checked for.
    limits: HeadLimits,
}

impl Previous {
    pub(super) fn clear(&mut self) {
        self.headers.clear();
    }

    /// Fills the table, if `text` begins with the same lines. Returns their length and their flags.
    pub(super) fn repeat(
        &self,
        headers: &mut Table,
        text: &[u8],
        limits: &HeadLimits,
    ) -> Option<(usize, HeadFlags)> {
        let is_same = !self.headers.is_empty()
            && text.starts_with(self.headers.text())
            && *limits == self.limits;
        if !is_same {
            return None;
        }
        headers.copy_from(&self.headers);
        Some((self.headers.text().len(), self.flags))
    }

    /// The length of the line at the beginning of `rest` and its field, if it is the previous
    /// head's line number `line`.
    #[inline]
    pub(super) fn repeated_line(&self, line: usize, rest: &[u8]) -> Option<(usize, Field)> {
        let (text, field) = self.headers.line(line)?;
        rest.starts_with(text).then_some((text.len(), field))
    }

    /// The number of the line after the one with this name, near `line`; otherwise `line`.
    #[inline]
    pub(super) fn after(&self, line: usize, mark: u32) -> usize {
        match self.headers.find_mark(line, LEFT_OUT + 1, mark) {
            Some(same) => same + 1,
            None => line,
        }
    }

    /// Keeps the fields of the current head, which were added as lines of one text.
    pub(super) fn keep(&mut self, headers: &Table, flags: HeadFlags, limits: &HeadLimits) {
        if headers.text().len() > KEPT_BYTES {
            return self.clear();
        }
        self.headers.copy_from(headers);
        self.flags = flags;
        self.limits = *limits;
    }
}
