//! Compiled patterns, shared by all threads.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pcre2_sys as sys;

use crate::captures::Captures;
use crate::counted::{self, Limits, Until, Watch};
use crate::engine::{self, Code};
use crate::flags::Flags;
use crate::limits::{
    HEAP_LIMIT_KIB, LOOP_HEAP_LIMIT_KIB, LOOP_WORK, MATCH_LIMIT, SHORT_BYTES, Shape, is_unbounded,
};
use crate::outcome::{Later, Matched, Why};
use crate::simple::Simple;

/// How long [`Regex::matches`] tries. No client waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// libpcre2's error for an invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at offset {offset}")]
pub struct Error {
    /// libpcre2's message.
    pub message: String,
    /// Byte offset of the error in the pattern.
    pub offset: usize,
}

/// A compiled regular expression. Clones share it.
#[derive(Clone)]
pub struct Regex(Arc<Inner>);

struct Inner {
    code: Code,
    shape: Shape,
    simple: Option<Simple>,
    /// The step limit from each place of a short subject.
    short_steps: Option<u32>,
    /// The same pattern with callouts, compiled when a match first needs it. `None` if libpcre2
    /// refuses it: it takes four times the space, which may be too much for a pattern of 10 KB.
    counted: OnceLock<Option<Code>>,
    pattern: Box<[u8]>,
    flags: Flags,
    names: Box<[(Box<[u8]>, usize)]>,
    groups: usize,
}

thread_local! {
    static COMPILED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Total size in bytes of the patterns that this thread has compiled, machine code included.
/// Compare two values to measure a pattern.
pub fn compiled_bytes() -> usize {
    COMPILED_BYTES.get()
}

impl Regex {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// libpcre2's message and the byte offset if the pattern is invalid.
    pub fn new(pattern: &[u8], flags: Flags) -> Result<Regex, Error> {
        let compile = if flags.interpreted { Code::interpreted } else { Code::compile };
        let code = compile(pattern, flags.bits())
            .map_err(|(number, offset)| Error { message: engine::message(number), offset })?;
        COMPILED_BYTES.set(COMPILED_BYTES.get().wrapping_add(code.bytes()));
        let groups = code.info_u32(sys::PCRE2_INFO_CAPTURECOUNT) as usize;
        let names = named_groups(&code);
        let shape = Shape {
            anchored: code.info_u32(sys::PCRE2_INFO_ALLOPTIONS) & sys::PCRE2_ANCHORED != 0,
            unbounded: is_unbounded(pattern),
            compiled: code.is_machine_code(),
        };
        Ok(Regex(Arc::new(Inner {
            code,
            shape,
            simple: Simple::of(pattern, flags),
            short_steps: shape.quick_steps(SHORT_BYTES),
            counted: OnceLock::new(),
            pattern: pattern.into(),
            flags,
            names,
            groups,
        })))
    }

    /// Whether the pattern matches anywhere in `subject`, and the positions of the groups. Takes at
    /// most about 10 ms, so a loop may call it. Without a match `captures` is cleared.
    ///
    /// # Errors
    /// [`Later`] if the match takes longer.
    #[inline]
    pub fn glance(
        &self,
        subject: &[u8],
        mut captures: Option<&mut Captures>,
    ) -> Result<bool, Later> {
        match self.quick(subject, captures.as_deref_mut()) {
            Some(matched) => Ok(matched),
            None => self.count_on_loop(subject, captures).0,
        }
    }

    /// The first half of [`Regex::glance`], which suffices for nearly all matches; otherwise
    /// `None`.
    #[inline]
    pub fn quick(&self, subject: &[u8], mut captures: Option<&mut Captures>) -> Option<bool> {
        if let Some(simple) = &self.0.simple {
            return Some(simple.matches(subject, captures));
        }
        let steps = match subject.len() {
            0..=SHORT_BYTES => self.0.short_steps,
            length => self.0.shape.quick_steps(length),
        }?;
        let matched = self.0.code.run(subject, captures.as_deref_mut(), steps).ok()?;
        if let (false, Some(captures)) = (matched, captures) {
            captures.clear();
        }
        Some(matched)
    }

    /// Like [`Regex::glance`] under Apache's limits, until `watch` ends it.
    pub fn decide(
        &self,
        subject: &[u8],
        mut captures: Option<&mut Captures>,
        watch: &Watch,
    ) -> Matched {
        let found = match self.counted() {
            Some(code) => {
                let until = Until::Watch(watch);
                let limits = Limits { steps: MATCH_LIMIT, heap_kib: HEAP_LIMIT_KIB, until };
                counted::run(code, subject, captures.as_deref_mut(), limits)
            }
            // Without a watch only the limit ends the match.
            None => {
                let steps = self.0.shape.steps_of_all(subject.len());
                self.0.code.run(subject, captures.as_deref_mut(), steps).map_err(Why::of)
            }
        };
        if found != Ok(true) {
            clear(captures);
        }
        found.map_or_else(Matched::Undecided, Matched::from)
    }

    /// [`Regex::glance`], followed by [`Regex::decide`] for up to half a minute if necessary. For
    /// callers that do not block a loop.
    pub fn matches(&self, subject: &[u8], mut captures: Option<&mut Captures>) -> Matched {
        match self.glance(subject, captures.as_deref_mut()) {
            Ok(matched) => matched.into(),
            Err(Later) => {
                let watch = Watch::until(Instant::now() + PATIENCE);
                self.decide(subject, captures, &watch)
            }
        }
    }

    /// The second half of [`Regex::glance`], and the cost of both halves, each as a part of
    /// [`LOOP_WORK`].
    #[cold]
    pub fn count_on_loop(
        &self,
        subject: &[u8],
        mut captures: Option<&mut Captures>,
    ) -> (Result<bool, Later>, u64) {
        let was_tried = self.0.shape.quick_steps(subject.len().max(SHORT_BYTES)).is_some();
        let tried = if was_tried { LOOP_WORK } else { 0 };
        let Some(code) = self.counted() else { return (Err(Later), tried) };
        let mut work = 0;
        let until = Until::Work { most: LOOP_WORK, done: &mut work };
        let limits = Limits { steps: MATCH_LIMIT, heap_kib: LOOP_HEAP_LIMIT_KIB, until };
        let found = counted::run(code, subject, captures.as_deref_mut(), limits);
        if found != Ok(true) {
            clear(captures);
        }
        (found.map_err(|_| Later), tried + work)
    }

    fn counted(&self) -> Option<&Code> {
        let compile = || {
            let bits = self.0.flags.bits() | sys::PCRE2_AUTO_CALLOUT;
            Code::interpreted(&self.0.pattern, bits).ok()
        };
        self.0.counted.get_or_init(compile).as_ref()
    }

    /// The named groups with their indexes, in order of their names.
    pub fn names(&self) -> &[(Box<[u8]>, usize)] {
        &self.0.names
    }

    /// The number of groups in the pattern, without group 0.
    pub fn group_count(&self) -> usize {
        self.0.groups
    }

    /// The pattern's source.
    pub fn pattern(&self) -> &[u8] {
        &self.0.pattern
    }

    /// The options that the pattern was compiled with.
    pub fn flags(&self) -> Flags {
        self.0.flags
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", String::from_utf8_lossy(&self.0.pattern))
    }
}

/// Two patterns are equal if source and options are, which is how configurations compare.
impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.0.pattern == other.0.pattern && self.0.flags == other.0.flags
    }
}

impl Eq for Regex {}

fn clear(captures: Option<&mut Captures>) {
    if let Some(captures) = captures {
        captures.clear();
    }
}

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
        assert_eq!(regex("^a.b$").matches(b"a\nb", None), Matched::Yes);
        assert_eq!(regex("b$").matches(b"ab\n", None), Matched::No);
        assert_eq!(Regex::new(b"b$", Flags::NONE).unwrap().matches(b"ab\n", None), Matched::Yes);
        assert_eq!(Regex::new(b"^a.b$", Flags::NONE).unwrap().matches(b"a\nb", None), Matched::No);
    }

    #[test]
    fn nothing_lies_behind_an_empty_subject() {
        let empty: Vec<u8> = Vec::new();
        for (pattern, matched) in [("(?<!abcd)$", Matched::Yes), ("(?<=abcd)$", Matched::No)] {
            assert_eq!(regex(pattern).matches(&empty, None), matched);
        }
    }

    #[test]
    fn groups_are_reported_by_byte_range() {
        let mut captures = Captures::new();
        assert_eq!(regex("(b)(x)?(c)").matches(b"abc", Some(&mut captures)), Matched::Yes);
        assert_eq!(captures.range(0), Some(1..3));
        assert_eq!(captures.text(1, b"abc"), Some(&b"b"[..]));
        assert_eq!(captures.range(2), None);
        assert_eq!(captures.range(3), Some(2..3));
        assert_eq!(regex("z").matches(b"abc", Some(&mut captures)), Matched::No);
        assert!(captures.is_empty());
    }

    #[test]
    fn more_groups_than_reported_are_cut_off() {
        let mut captures = Captures::new();
        assert_eq!(
            regex("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)").matches(b"abcdefghijk", Some(&mut captures)),
            Matched::Yes
        );
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
    fn a_long_subject_is_matched_as_a_short_one() {
        for length in [10, 1359, 8000, 100_000] {
            let subject = |end: &str| [&vec![b'x'; length][..], end.as_bytes()].concat();
            for pattern in ["^(?:\\w|\\W)*BadBot", "(?:x|y)*BadBot", "^(x|y|B|a)*BadBot$"] {
                let matches = |end| regex(pattern).matches(&subject(end), None);
                assert_eq!(matches("BadBot"), Matched::Yes, "{pattern} {length}");
                if length < 8000 {
                    assert_eq!(matches("GoodBot"), Matched::No, "{pattern} {length}");
                }
            }
        }
    }

    #[test]
    fn what_takes_more_than_a_glance_is_decided_under_apaches_limits() {
        let pattern = regex("^(a+)+$|(evil)");
        let subject = |length: usize| [&vec![b'a'; length][..], b"!evil"].concat();
        let mut captures = Captures::new();
        assert_eq!(pattern.glance(&subject(20), Some(&mut captures)), Err(Later));
        assert!(captures.is_empty());
        let watch = Watch::until(Instant::now() + PATIENCE);
        let found = pattern.decide(&subject(20), Some(&mut captures), &watch);
        assert_eq!(found, Matched::Yes);
        assert_eq!(captures.range(2), Some(21..25));
        let found = pattern.decide(&subject(40), Some(&mut captures), &watch);
        assert_eq!(found, Matched::Undecided(Why::Steps));
        assert!(captures.is_empty());
    }

    #[test]
    fn an_interpreted_pattern_decides_alike() {
        let flags = Flags { interpreted: true, ..Flags::default() };
        let interpreted = |pattern: &str| Regex::new(pattern.as_bytes(), flags).unwrap();
        assert!(!interpreted("^a+$").0.shape.compiled);
        let text = [&vec![b'x'; 8000][..], b"BadBot"].concat();
        for (pattern, matched) in [("^(?:\\w|\\W)*BadBot", Matched::Yes), ("^x+$", Matched::No)] {
            assert_eq!(interpreted(pattern).matches(&text, None), matched);
            assert_eq!(regex(pattern).matches(&text, None), matched);
        }
    }

    #[test]
    fn a_watch_ends_a_match_over_all_places() {
        let watch = Watch::until(Instant::now() + Duration::from_millis(20));
        let pattern = regex("(a+)+[bc]");
        let found = pattern.decide(&vec![b'a'; 8000], None, &watch);
        assert_eq!(found, Matched::Undecided(Why::Time));
        let watch = Watch::until(Instant::now() + PATIENCE);
        watch.end();
        let found = pattern.decide(&vec![b'a'; 8000], None, &watch);
        assert_eq!(found, Matched::Undecided(Why::Time));
    }

    #[test]
    fn a_subject_that_is_refused_is_no_mismatch() {
        let pattern = regex("(*UTF)evil");
        assert_eq!(pattern.matches("é evil".as_bytes(), None), Matched::Yes);
        let found = pattern.matches(b"\xff evil", None);
        assert!(matches!(found, Matched::Undecided(Why::Refused(_))), "{found:?}");
    }

    #[test]
    fn a_pattern_too_long_to_be_counted_has_a_limit_of_its_own() {
        let words: Vec<_> = (0..2000).map(|number| format!("word{number:04}")).collect();
        let pattern = regex(&format!("^(?:{})*$|(a+)+$", words.join("|")));
        assert!(pattern.counted().is_none());
        assert_eq!(pattern.matches(&b"word1234".repeat(500), None), Matched::Yes);
        assert_eq!(pattern.matches(b"word12345", None), Matched::No);
        let found = pattern.matches(&[&vec![b'a'; 60][..], b"!"].concat(), None);
        assert_eq!(found, Matched::Undecided(Why::Steps));
    }

    #[test]
    fn threads_share_one_pattern() {
        let shared = regex("^x(y*)$");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let shared = shared.clone();
                scope.spawn(move || assert_eq!(shared.matches(b"xyyy", None), Matched::Yes));
            }
        });
    }
}
