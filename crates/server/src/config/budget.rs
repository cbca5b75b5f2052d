//! Limits the memory of an `.htaccess`, whose author may not be the server's administrator.

use conf::Span;

use crate::config::build::Build;

/// Most bytes of memory for an `.htaccess` while it is parsed: a short pattern can take tens of
/// kilobytes, and a file has room for many.
pub const HTACCESS_MEMORY_LIMIT: usize = 256 * 1024 * 1024;

/// A limit on the memory that this thread allocates from now on.
pub struct Budget {
    /// [`rt::memory::taken`] and [`pcre::compiled_bytes`] at the beginning.
    begin: (isize, usize),
    limit: usize,
}

impl Budget {
    /// Returns a budget of this many bytes.
    pub fn of(limit: usize) -> Budget {
        Budget { begin: (rt::memory::taken(), pcre::compiled_bytes()), limit }
    }

    /// The bytes used: allocations that were not freed, and all compiled patterns.
    pub fn taken(&self) -> usize {
        let (taken, patterns) = self.begin;
        let taken = rt::memory::taken().wrapping_sub(taken);
        usize::try_from(taken).unwrap_or(0) + pcre::compiled_bytes().wrapping_sub(patterns)
    }

    /// Whether the limit is exceeded.
    pub fn is_spent(&self) -> bool {
        self.taken() > self.limit
    }
}

impl Build {
    /// Whether the limit is exceeded; reports that once, as an error at `span`.
    pub(crate) fn is_spent(&mut self, span: Span) -> bool {
        const WHY: &str = "takes too much memory; this line and the rest are ignored";
        let is_spent = self.budget.as_ref().is_some_and(Budget::is_spent);
        if is_spent && self.diagnostics.last().is_none_or(|last| last.message != WHY) {
            self.error(span, WHY);
        }
        is_spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_count_with_what_they_are_compiled_into() {
        let budget = Budget::of(10_000);
        assert!(!budget.is_spent());
        let pattern = b"(ab|c){1,999}";
        let _regex = pcre::Regex::new(pattern, pcre::Flags::default()).unwrap();
        assert!(budget.taken() > 10_000);
        assert!(budget.is_spent());
    }
}
