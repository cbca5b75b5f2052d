//! A compiled pattern that every thread may use.

use std::fmt;
use std::sync::Arc;

use pcre2_sys as sys;

use crate::captures::Captures;
use crate::engine::{self, Code};
use crate::flags::Flags;

/// A pattern that libpcre2 refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at offset {offset}")]
pub struct Error {
    /// libpcre2's own words.
    pub message: String,
    /// Byte offset in the pattern where it was noticed.
    pub offset: usize,
}

/// A compiled regular expression. Cloning shares it.
#[derive(Clone)]
pub struct Regex(Arc<Inner>);

struct Inner {
    code: Code,
    pattern: Box<[u8]>,
    flags: Flags,
    names: Box<[(Box<[u8]>, usize)]>,
    groups: usize,
}

impl Regex {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// libpcre2's message and the byte offset when the pattern is not one.
    pub fn new(pattern: &[u8], flags: Flags) -> Result<Regex, Error> {
        let code = Code::compile(pattern, flags.bits())
            .map_err(|(number, offset)| Error { message: engine::message(number), offset })?;
        let groups = code.info_u32(sys::PCRE2_INFO_CAPTURECOUNT) as usize;
        let names = named_groups(&code);
        Ok(Regex(Arc::new(Inner { code, pattern: pattern.into(), flags, names, groups })))
    }

    /// Does the pattern match anywhere in `subject`? Reaching a limit counts as no match.
    pub fn is_match(&self, subject: &[u8]) -> bool {
        self.0.code.run(subject, None)
    }

    /// As [`Regex::is_match`], and tells where the groups lie. Without a match `captures` is
    /// cleared.
    pub fn captures(&self, subject: &[u8], captures: &mut Captures) -> bool {
        let matched = self.0.code.run(subject, Some(captures));
        if !matched {
            captures.clear();
        }
        matched
    }

    /// The named groups with their indexes, in the order of the names.
    pub fn names(&self) -> &[(Box<[u8]>, usize)] {
        &self.0.names
    }

    /// How many groups the pattern has, group 0 not counted.
    pub fn group_count(&self) -> usize {
        self.0.groups
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &[u8] {
        &self.0.pattern
    }

    /// The options it was compiled with.
    pub fn flags(&self) -> Flags {
        self.0.flags
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", String::from_utf8_lossy(&self.0.pattern))
    }
}

/// Two patterns are equal when they were written alike: that is what configurations compare.
impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.0.pattern == other.0.pattern && self.0.flags == other.0.flags
    }
}

impl Eq for Regex {}

fn named_groups(code: &Code) -> Box<[(Box<[u8]>, usize)]> {
    let entry_size = code.info_u32(sys::PCRE2_INFO_NAMEENTRYSIZE) as usize;
    if entry_size < 3 {
        return Box::default();
    }
    code.name_table()
        .chunks_exact(entry_size)
        .filter_map(|entry| {
            let (index, name) = entry.split_at_checked(2)?;
            let index = usize::from(u16::from_be_bytes(index.try_into().ok()?));
            let name = name.split(|byte| *byte == 0).next()?;
            Some((name.into(), index))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(pattern: &str) -> Regex {
        Regex::new(pattern.as_bytes(), Flags::default()).unwrap()
    }

    #[test]
    fn apaches_defaults_are_dotall_and_dollar_endonly() {
        assert!(regex("^a.b$").is_match(b"a\nb"));
        assert!(!regex("b$").is_match(b"ab\n"));
        assert!(Regex::new(b"b$", Flags::NONE).unwrap().is_match(b"ab\n"));
        assert!(!Regex::new(b"^a.b$", Flags::NONE).unwrap().is_match(b"a\nb"));
    }

    #[test]
    fn groups_are_reported_by_byte_range() {
        let mut captures = Captures::new();
        assert!(regex("(b)(x)?(c)").captures(b"abc", &mut captures));
        assert_eq!(captures.range(0), Some(1..3));
        assert_eq!(captures.text(1, b"abc"), Some(&b"b"[..]));
        assert_eq!(captures.range(2), None);
        assert_eq!(captures.range(3), Some(2..3));
        assert!(!regex("z").captures(b"abc", &mut captures));
        assert!(captures.is_empty());
    }

    #[test]
    fn more_groups_than_reported_are_cut_off() {
        let mut captures = Captures::new();
        assert!(regex("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)").captures(b"abcdefghijk", &mut captures));
        assert_eq!(captures.len(), crate::MAX_GROUPS);
        assert_eq!(captures.text(9, b"abcdefghijk"), Some(&b"i"[..]));
    }

    #[test]
    fn names_come_with_their_index() {
        let found = regex("(?<year>\\d+)-(?<day>\\d+)");
        let names: Vec<_> = found.names().iter().map(|(n, i)| (&n[..], *i)).collect();
        assert_eq!(names, [(&b"day"[..], 2), (&b"year"[..], 1)]);
        assert_eq!(found.group_count(), 2);
    }

    #[test]
    fn a_bad_pattern_says_where() {
        let error = Regex::new(b"a(b", Flags::default()).unwrap_err();
        assert_eq!(error.offset, 3);
        assert!(error.message.contains("parenthesis"), "{error}");
    }

    #[test]
    fn a_pattern_that_explodes_does_not_match_and_ends() {
        let subject = vec![b'a'; 40];
        assert!(!regex("^(a|a|aa)+$x").is_match(&subject));
        assert!(!regex("^(([a-z])+.)+[A-Z]([a-z])+$").is_match(&vec![b'a'; 4000]));
    }

    #[test]
    fn threads_share_one_pattern() {
        let shared = regex("^x(y*)$");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let shared = shared.clone();
                scope.spawn(move || assert!(shared.is_match(b"xyyy")));
            }
        });
    }
}
