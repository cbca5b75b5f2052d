//! The positions of a match's groups in the subject.

use std::ops::Range;

/// Groups that a match reports: `$0` to `$9`, as Apache's `AP_MAX_REG_MATCH`.
pub const MAX_GROUPS: usize = 10;

/// The byte ranges of the whole match (group 0) and of up to nine groups.
///
/// A plain value without heap memory; keep one and pass it to every match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captures {
    /// Start and end. No subject is so long that 32 bits do not suffice.
    ranges: [(u32, u32); MAX_GROUPS],
    count: u32,
}

/// The range of a group that took no part.
const UNSET: (u32, u32) = (u32::MAX, 0);

impl Default for Captures {
    fn default() -> Captures {
        Captures::new()
    }
}

impl Captures {
    /// Returns captures in which every group is unset.
    pub const fn new() -> Captures {
        Captures { ranges: [UNSET; MAX_GROUPS], count: 0 }
    }

    /// The number of groups reported, including group 0; 0 before the first match.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether nothing has matched.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The byte range of group `index`, or `None` if it took no part in the match.
    pub fn range(&self, index: usize) -> Option<Range<usize>> {
        let (start, end) = *self.ranges.get(index)?;
        (start <= end).then_some(start as usize..end as usize)
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
            let range = u32::try_from(start).ok().zip(u32::try_from(end).ok());
            *slot = range.filter(|_| known).unwrap_or(UNSET);
            self.count = self.count.max(index as u32 + 1);
        }
    }
}
