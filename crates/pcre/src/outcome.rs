//! The outcome of a match.

use pcre2_sys as sys;

/// Whether a pattern matches a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Matched {
    /// It matches.
    Yes,
    /// It does not match.
    No,
    /// The limits were reached first. If access depends on the match, assume neither outcome.
    Undecided(Why),
}

/// Why a match is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The match needs more steps than [`MATCH_LIMIT`](crate::MATCH_LIMIT).
    #[error("match limit")]
    Steps,
    /// The match needs more memory than [`HEAP_LIMIT_KIB`](crate::HEAP_LIMIT_KIB).
    #[error("memory limit")]
    Memory,
    /// The deadline passed.
    #[error("time limit")]
    Time,
    /// No thread was free for the match.
    #[error("no thread to make the match")]
    Busy,
    /// The request has reached its limit of costly matches.
    #[error("too many costly matches in one request")]
    Number,
    /// libpcre2 refused, for instance because the subject is not UTF-8 and the pattern requires it.
    #[error("libpcre2's error {0}")]
    Refused(i32),
}

/// The match takes more than a loop may spend: call [`Regex::decide`](crate::Regex::decide) on a
/// thread that may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later;

impl Why {
    /// Interprets one of libpcre2's error numbers.
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
    /// Whether it certainly matches. For uses in which a match only adds something.
    pub fn surely(self) -> bool {
        self == Matched::Yes
    }
}

impl From<bool> for Matched {
    fn from(matched: bool) -> Matched {
        if matched { Matched::Yes } else { Matched::No }
    }
}
