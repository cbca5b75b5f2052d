//! What comes of a match.

use pcre2_sys as sys;

/// Whether a pattern matches a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Matched {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// That could not be found out within the limits: neither of the two may be assumed where
    /// something is forbidden or allowed by it.
    Undecided(Why),
}

/// Why a match is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// More steps than [`MATCH_LIMIT`](crate::MATCH_LIMIT).
    #[error("match limit")]
    Steps,
    /// More memory than [`HEAP_LIMIT_KIB`](crate::HEAP_LIMIT_KIB).
    #[error("memory limit")]
    Memory,
    /// It was not done in time.
    #[error("time limit")]
    Time,
    /// No thread could be had for it.
    #[error("no thread to make the match")]
    Busy,
    /// The request has more such matches than one may have.
    #[error("too many costly matches in one request")]
    Number,
    /// A refusal of libpcre2, as of a subject that is not UTF-8 where the pattern wants that.
    #[error("libpcre2's error {0}")]
    Refused(i32),
}

/// The match takes more than a loop may spend on it: it has to be made with
/// [`Regex::decide`](crate::Regex::decide), on a thread that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later;

impl Why {
    /// What one of libpcre2's numbers means.
    pub(crate) fn of(number: i32) -> Why {
        match number {
            sys::PCRE2_ERROR_CALLOUT => Why::Time,
            sys::PCRE2_ERROR_MATCHLIMIT | sys::PCRE2_ERROR_DEPTHLIMIT => Why::Steps,
            sys::PCRE2_ERROR_HEAPLIMIT
            | sys::PCRE2_ERROR_JIT_STACKLIMIT
            | sys::PCRE2_ERROR_NOMEMORY => Why::Memory,
            other => Why::Refused(other),
        }
    }
}

impl Matched {
    /// Whether it surely matches; for places where a match only adds something.
    pub fn surely(self) -> bool {
        self == Matched::Yes
    }
}

impl From<bool> for Matched {
    fn from(matched: bool) -> Matched {
        if matched { Matched::Yes } else { Matched::No }
    }
}
