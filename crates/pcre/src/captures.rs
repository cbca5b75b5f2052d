//! The positions of a match's groups in the subject.

use std::ops::Range;

/// Groups that a match reports: `$0` to `$9`, as Apache's `AP_MAX_REG_MATCH`.
pub const MAX_GROUPS: usize = 10;

/// The byte ranges of the whole match (group 0) and of up to nine groups.
///
/// A plain value without heap memory; keep one and pass it to every match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    ranges: [Option<(usize, usize)>; MAX_GROUPS],
    count: usize,
}

impl Captures {
    /// Returns captures in which every group is unset.
    pub const fn new() -> Captures {
        Captures { ranges: [None; MAX_GROUPS], count: 0 }
    }

    /// The number of groups reported, including group 0; 0 before the first match.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing has matched.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The byte range of group `index`, or `None` if it took no part in the match.
    pub fn range(&self, index: usize) -> Option<Range<usize>> {
        let (start, end) = (*self.ranges.get(index)?)?;
        Some(start..end)
    }

    /// The text of group `index` in the subject that was matched.
    ///
    /// `None` when the group is unset or `subject` is not the one that was matched.
    pub fn text<'s>(&self, index: usize, subject: &'s [u8]) -> Option<&'s [u8]> {
        subject.get(self.range(index)?)
    }

    pub(crate) fn clear(&mut self) {
        *self = Captures::new();
    }

    /// Sets the group. `\K` in a look-ahead can put the start behind the end; such a group is
    /// unset.
    pub(crate) fn set(&mut self, index: usize, start: usize, end: usize) {
        if let Some(slot) = self.ranges.get_mut(index) {
            let known = start != pcre2_sys::PCRE2_UNSET && start <= end;
            *slot = known.then_some((start, end));
            self.count = self.count.max(index + 1);
        }
    }
}
