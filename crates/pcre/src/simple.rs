//! Patterns that need no engine: those that match every subject, and those of one text.
//!
//! Rule sets are full of them (`.*`, `^`, `^index\.php$`), and each request for a name that was
//! never requested before asks several.

use crate::captures::Captures;
use crate::flags::Flags;
use crate::prefix::literals;

/// A pattern whose matches are known without the engine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Simple {
    /// The empty text at the start of any subject.
    Start,
    /// The first byte.
    First,
    /// All of a subject of at least `least` bytes, which is also the first group if there is one.
    All { least: usize, is_group: bool },
    /// A subject of these bytes.
    Exactly(Box<[u8]>),
}

impl Simple {
    /// Recognises a pattern under Apache's default options; under others nothing is simple.
    pub fn of(pattern: &[u8], flags: Flags) -> Option<Simple> {
        if flags != (Flags { interpreted: flags.interpreted, ..Flags::default() }) {
            return None;
        }
        let all = |least, is_group| Some(Simple::All { least, is_group });
        match pattern {
            b"" | b"^" => Some(Simple::Start),
            b"." | b"^." => Some(Simple::First),
            b".*" | b"^.*" | b".*$" | b"^.*$" => all(0, false),
            b".+" | b"^.+" | b".+$" | b"^.+$" => all(1, false),
            b"(.*)" | b"^(.*)" | b"(.*)$" | b"^(.*)$" => all(0, true),
            b"(.+)" | b"^(.+)" | b"(.+)$" | b"^(.+)$" => all(1, true),
            [b'^', text @ .., b'$'] => {
                let (found, rest) = literals(text);
                rest.is_empty().then(|| Simple::Exactly(found.into()))
            }
            _ => None,
        }
    }

    /// Whether it matches `subject`, and the positions of the groups.
    #[inline]
    pub fn matches(&self, subject: &[u8], captures: Option<&mut Captures>) -> bool {
        let (matched, end, is_group) = match self {
            Simple::Start => (true, 0, false),
            Simple::First => (!subject.is_empty(), 1, false),
            Simple::All { least, is_group } => (subject.len() >= *least, subject.len(), *is_group),
            Simple::Exactly(text) => (*subject == **text, subject.len(), false),
        };
        if let Some(captures) = captures {
            captures.clear();
            if matched {
                captures.set(0, 0, end);
            }
            if matched && is_group {
                captures.set(1, 0, end);
            }
        }
        matched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Matched, Regex};

    #[test]
    fn a_literal_between_the_ends_is_simple() {
        let of = |pattern: &str| Simple::of(pattern.as_bytes(), Flags::default());
        let exactly = |text: &str| Some(Simple::Exactly(text.as_bytes().into()));
        assert_eq!(of("^index\\.php$"), exactly("index.php"));
        assert_eq!(of("^/a b$"), exactly("/a b"));
        assert_eq!(of("^$"), exactly(""));
        let others =
            ["^a.b$", "^ab?$", "^a\\$", "^(a)$", "^a|b$", "a$", "^a", "^\\d$", "^a\\\\d$$", "$"];
        for other in others {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(of("^a\\\\$"), exactly("a\\"));
        assert_eq!(Simple::of(b"^a$", Flags::default().ignoring_case()), None);
        assert_eq!(Simple::of(b"^a$", Flags { dollar_endonly: false, ..Flags::default() }), None);
        assert_eq!(Simple::of(b".*", Flags { dotall: false, ..Flags::default() }), None);
        assert_eq!(Simple::of(b"(.*)", Flags { no_sub: true, ..Flags::default() }), None);
    }

    const PATTERNS: [&str; 30] = [
        "",
        "^",
        ".",
        "^.",
        ".*",
        "^.*",
        ".*$",
        "^.*$",
        ".+",
        "^.+",
        ".+$",
        "^.+$",
        "(.*)",
        "^(.*)",
        "(.*)$",
        "^(.*)$",
        "(.+)",
        "^(.+)",
        "(.+)$",
        "^(.+)$",
        "^$",
        "^a$",
        "^a\\.b$",
        "^\\\\$",
        "^\\$$",
        "^a\\/b$",
        "^a b#$",
        "^\u{e9}$",
        "^a\\^$",
        "^-~,;:=@%&!'\"<>`$",
    ];

    const SUBJECTS: [&[u8]; 16] = [
        b"",
        b"a",
        b"\n",
        b"a\n",
        b"\na",
        b"a.b",
        b"axb",
        b"a.b\n",
        b"\\",
        b"$",
        b"a/b",
        b"a b#",
        b"\xc3\xa9",
        b"\xe9",
        b"a^",
        b"-~,;:=@%&!'\"<>`",
    ];

    #[test]
    fn the_engine_decides_alike() {
        for pattern in PATTERNS {
            let simple = Simple::of(pattern.as_bytes(), Flags::default());
            let simple = simple.unwrap_or_else(|| panic!("{pattern}"));
            // A group that takes no part asks the engine.
            let engine = Regex::new(format!("{pattern}(?:)").as_bytes(), Flags::default()).unwrap();
            for subject in SUBJECTS {
                let [mut own, mut other] = [Captures::new(); 2];
                let matched = simple.matches(subject, Some(&mut own));
                let expected = engine.matches(subject, Some(&mut other));
                assert_eq!(Matched::from(matched), expected, "{pattern:?} {subject:?}");
                assert_eq!(own, other, "{pattern:?} {subject:?}");
            }
        }
    }
}
