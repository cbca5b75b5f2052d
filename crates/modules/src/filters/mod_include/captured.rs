//! `$0`–`$9` of a page: the groups of the last regular expression.

use conf::expr::Backrefs;

/// The groups of the last match.
#[derive(Default)]
pub struct Captured {
    /// The groups; unset if nothing has matched.
    pub groups: Backrefs,
    /// The pattern, if it was one of the old syntax.
    pub pattern: Option<Vec<u8>>,
    /// The number of groups that elements can name: only 0 for patterns of the new syntax, whose
    /// number Apache does not know.
    pub count: usize,
}

/// Why a group has no value.
pub enum Missing {
    /// Nothing has matched.
    NoMatch,
    /// The pattern has not as many groups.
    OutOfRange,
    /// The group took no part in the match.
    Unused,
}

impl Captured {
    /// The text of a group.
    ///
    /// # Errors
    /// Why there is none.
    pub fn get(&self, index: usize) -> Result<&[u8], Missing> {
        let captures = self.groups.captures();
        if captures.is_empty() {
            return Err(Missing::NoMatch);
        }
        if index > self.count {
            return Err(Missing::OutOfRange);
        }
        captures.text(index, self.groups.subject()).ok_or(Missing::Unused)
    }
}
