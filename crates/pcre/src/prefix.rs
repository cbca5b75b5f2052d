//! The bytes that every match of a pattern begins with, as far as they are easily seen.
//!
//! This decides which patterns are not tried, so it gives up at whatever it does not know: a prefix
//! that is too short costs time, one that is too long would hide a match.

use crate::flags::Flags;
use crate::regex::Regex;

impl Regex {
    /// Bytes that every subject begins with that this pattern matches; empty where nothing is
    /// known. For a subject that begins with other bytes the outcome is [`Matched::No`].
    ///
    /// [`Matched::No`]: crate::Matched::No
    pub fn prefix(&self) -> Vec<u8> {
        prefix(self.pattern(), self.flags())
    }
}

fn prefix(pattern: &[u8], flags: Flags) -> Vec<u8> {
    let means_more = flags.caseless || flags.multi_line || flags.extended;
    // What these leave out may stand between a byte and its quantifier.
    let leaves_out = [&b"\\E"[..], b"\\Q", b"(?#"]
        .iter()
        .any(|mark| pattern.windows(mark.len()).any(|part| part == *mark));
    match pattern.strip_prefix(b"^") {
        Some(rest) if !means_more && !leaves_out && !may_begin_otherwise(rest) => literals(rest).0,
        _ => Vec::new(),
    }
}

/// Whether a bar may stand outside of all groups. Where classes, quoted texts and special groups
/// could hide what a parenthesis means nothing is known.
fn may_begin_otherwise(pattern: &[u8]) -> bool {
    if !pattern.contains(&b'|') {
        return false;
    }
    let mut depth = 0usize;
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (*first, after.first()) {
            (b'[', _) | (b'\\', None) | (b'(', Some(b'?' | b'*')) => return true,
            (b'\\', Some(escaped)) if !is_whole_escape(*escaped) => return true,
            (b'\\', _) => rest = after.get(1..).unwrap_or_default(),
            (b'(', _) => depth += 1,
            (b')', _) => depth = depth.saturating_sub(1),
            (b'|', _) if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// Whether an escape ends with this byte. Others may continue: `\c(` is a control character.
fn is_whole_escape(byte: u8) -> bool {
    byte.is_ascii_punctuation() || byte.is_ascii_digit() || b"dDsSwWbBhHvVAzZ".contains(&byte)
}

/// The bytes up to the first that means more than itself, and the rest of the pattern. One that a
/// quantifier may follow is left out with it.
pub(crate) fn literals(pattern: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut found = Vec::new();
    let mut rest = pattern;
    loop {
        let (byte, after) = match rest {
            [b'\\', byte, after @ ..] if byte.is_ascii_punctuation() => (*byte, after),
            [byte, after @ ..] if is_plain(*byte) => (*byte, after),
            _ => break,
        };
        if matches!(after.first(), Some(b'*' | b'+' | b'?' | b'{')) {
            break;
        }
        found.push(byte);
        rest = after;
    }
    (found, rest)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"/_-~,;:=@%&!'\"<>#` ".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matched;

    #[test]
    fn a_prefix_ends_where_something_means_more() {
        let of = |pattern: &str| {
            String::from_utf8(prefix(pattern.as_bytes(), Flags::default())).unwrap()
        };
        assert_eq!(of("^/a/b$"), "/a/b");
        assert_eq!(of("^/a\\.b(c|d)"), "/a.b");
        assert_eq!(of("^/ab?c"), "/a");
        assert_eq!(of("^/ab{2}"), "/a");
        assert_eq!(of("^/a\\d"), "/a");
        assert_eq!(of("^/a|^/b"), "");
        assert_eq!(of("^/a\\(|b"), "");
        assert_eq!(of("^/a[(]|b)"), "");
        assert_eq!(of("^/a\\Q(\\E|b"), "");
        assert_eq!(of("^/a(?#()|b"), "");
        assert_eq!(of("^/a\\E*b"), "");
        assert_eq!(of("^/a\\c(|b"), "");
        assert_eq!(of("^/a\\cx(|b)"), "");
        assert_eq!(of("^/a\\d(c|b)\\.$"), "/a");
        assert_eq!(of("^*/a"), "");
        assert_eq!(of("^^/a"), "");
        for none in ["/a", "(^/a)", "", "^", "^(a)", "(?i)^/a"] {
            assert_eq!(of(none), "", "{none}");
        }
    }

    #[test]
    fn flags_that_change_letters_or_lines_leave_nothing() {
        for flags in [
            Flags::default().ignoring_case(),
            Flags { multi_line: true, ..Flags::NONE },
            Flags { extended: true, ..Flags::NONE },
        ] {
            assert!(prefix(b"^/a", flags).is_empty());
        }
    }

    /// Of these patterns are made.
    const PIECES: [&[u8]; 42] = [
        b"/",
        b"a",
        b"b",
        b"c",
        b".",
        b"\\.",
        b"\\/",
        b"\\d",
        b"\\Q",
        b"\\E",
        b"(",
        b")",
        b"|",
        b"[",
        b"]",
        b"^",
        b"$",
        b"*",
        b"+",
        b"?",
        b"{",
        b"}",
        b"{1}",
        b"{0}",
        b",",
        b"(?:",
        b"(?i)",
        b"(?m)",
        b"(?#",
        b"(?=",
        b"(*",
        b"\xff",
        b"\xc3\xa9",
        b" ",
        b"#",
        b"\\K",
        b"\\c",
        b"\\1",
        b"\\b",
        b"-",
        b"\n",
        b"\\",
    ];
    /// Of these subjects are made.
    const BYTES: [&[u8]; 16] = [
        b"/",
        b"a",
        b"b",
        b"c",
        b"A",
        b".",
        b"(",
        b")",
        b"|",
        b"[",
        b"1",
        b"\xff",
        b"\xc3\xa9",
        b"\n",
        b" ",
        b"\x80",
    ];

    /// A sequence of numbers that is the same in each run (splitmix64).
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }

        fn below(&mut self, count: usize) -> usize {
            usize::try_from(self.next() % count as u64).unwrap()
        }

        /// Up to `most` pieces of `from`.
        fn text(&mut self, from: &[&[u8]], most: usize) -> Vec<u8> {
            let count = self.below(most + 1);
            (0..count).flat_map(|_| from[self.below(from.len())].to_vec()).collect()
        }
    }

    /// Over a million subjects, bytes that are no text among them.
    #[test]
    fn no_match_begins_otherwise() {
        let mut numbers = Numbers(1);
        let (mut subjects, mut guarded) = (0, 0);
        while subjects < 1_000_000 {
            let pattern = [&b"^"[..], &numbers.text(&PIECES, 8)].concat();
            let Ok(regex) = Regex::new(&pattern, Flags { interpreted: true, ..Flags::default() })
            else {
                continue;
            };
            let prefix = regex.prefix();
            if prefix.is_empty() {
                continue;
            }
            guarded += 1;
            for _ in 0..200 {
                let mut subject = numbers.text(&BYTES, 6);
                if numbers.below(2) == 0 {
                    subject.splice(..0, prefix.iter().copied().skip(numbers.below(2)));
                }
                subjects += 1;
                if !subject.starts_with(&prefix) {
                    let matched = regex.matches(&subject, None);
                    assert_eq!(matched, Matched::No, "{regex:?} {subject:?}");
                }
            }
        }
        assert!(guarded > 1000);
    }
}
