//! How much memory an `.htaccess` may take, which others may write than those who run the server.

use conf::Span;

use crate::config::build::Build;

/// What an `.htaccess` may take while it is parsed, bytes: a pattern of a few letters can take
/// tens of kilobytes, and a file has room for many.
pub const HTACCESS_MEMORY_LIMIT: usize = 256 * 1024 * 1024;

/// Memory that this thread may take from now on.
pub struct Budget {
    /// [`rt::memory::taken`] and [`pcre::compiled_bytes`] when it began.
    begin: (isize, usize),
    limit: usize,
}

impl Budget {
    /// So many bytes.
    pub fn of(limit: usize) -> Budget {
        Budget { begin: (rt::memory::taken(), pcre::compiled_bytes()), limit }
    }

    /// How many have been taken: those that were allocated and not given back, and all that
    /// patterns were compiled into.
    pub fn taken(&self) -> usize {
        let (taken, patterns) = self.begin;
        let taken = rt::memory::taken().wrapping_sub(taken);
        usize::try_from(taken).unwrap_or(0) + pcre::compiled_bytes().wrapping_sub(patterns)
    }

    /// Whether more has been taken.
    pub fn is_spent(&self) -> bool {
        self.taken() > self.limit
    }
}

impl Build {
    /// Whether more was taken than may be; that is an error at `span`, once.
    pub(crate) fn is_spent(&mut self, span: Span) -> bool {
        const WHY: &str = "takes too much memory; this line and what follows is not read";
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
