//! A `RewriteCond`.
//!
//! Source: `cmd_rewritecond`.

use std::cmp::Ordering;
use std::sync::Arc;

use conf::Span;
use conf::expr::Expr;
use pcre::Regex;

use super::line;
use super::template::Template;

/// A condition of a rule.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    /// Its position.
    pub span: Span,
    /// The test string; unused with [`Test::Expression`].
    pub input: Template,
    /// The pattern as written, for the log.
    pub pattern: Vec<u8>,
    /// The test.
    pub test: Test,
    /// `!`: whether the test is negated.
    pub negated: bool,
    /// `[NC]`
    pub ignores_case: bool,
    /// `[OR]`
    pub or_next: bool,
    /// `[NV]`
    pub no_vary: bool,
}

/// A kind of test.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// A regular expression.
    Regex(Regex),
    /// A test of a file.
    File(FileTest),
    /// `-U`: a subrequest for a URL.
    Url,
    /// `-F`: a subrequest for a file.
    LookUpFile,
    /// A comparison of texts: the shorter one is less.
    Text(Compare, Vec<u8>),
    /// A comparison of numbers.
    Number(Compare, i32),
    /// `expr`
    Expression(Arc<Expr>),
}

/// A test of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileTest {
    /// `-f`
    Regular,
    /// `-s`
    NotEmpty,
    /// `-d`
    Directory,
    /// `-h`, `-l`, `-L`
    Link,
    /// `-x`
    Executable,
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    /// `<`, `-lt`
    Less,
    /// `<=`, `-le`
    NotGreater,
    /// `=`, `-eq`
    Equal,
    /// `>=`, `-ge`
    NotLess,
    /// `>`, `-gt`
    Greater,
}

impl Compare {
    /// Whether the operator holds for this ordering.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Less => order.is_lt(),
            Compare::NotGreater => order.is_le(),
            Compare::Equal => order.is_eq(),
            Compare::NotLess => order.is_ge(),
            Compare::Greater => order.is_gt(),
        }
    }
}

/// Compares two texts: by length first, if case matters (`compare_lexicography`, `strcasecmp`).
pub(super) fn order(a: &[u8], b: &[u8], ignores_case: bool) -> Ordering {
    if ignores_case {
        let lower = |text: &[u8]| text.to_ascii_lowercase();
        return lower(a).cmp(&lower(b));
    }
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The flags of a condition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// `[NC]`
    pub ignores_case: bool,
    /// `[OR]`
    pub or_next: bool,
    /// `[NV]`
    pub no_vary: bool,
}

impl Flags {
    /// Parses a flags field.
    ///
    /// # Errors
    /// Apache's message, without the directive's name.
    pub fn parse(field: &[u8]) -> Result<Flags, String> {
        let mut flags = Flags::default();
        for (name, _) in line::flags(field).ok_or("bad flag delimiters")? {
            match name.to_ascii_uppercase().as_slice() {
                b"NC" | b"NOCASE" => flags.ignores_case = true,
                b"OR" | b"ORNEXT" => flags.or_next = true,
                b"NV" | b"NOVARY" => flags.no_vary = true,
                _ => return Err(format!("unknown flag '{}'", bstr::BStr::new(name))),
            }
        }
        Ok(flags)
    }
}

/// The kind of a condition's pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// [`Test::Regex`]
    Regex(&'t [u8]),
    /// [`Test::File`]
    File(FileTest),
    /// [`Test::Url`]
    Url,
    /// [`Test::LookUpFile`]
    LookUpFile,
    /// [`Test::Text`]
    Text(Compare, &'t [u8]),
    /// [`Test::Number`], with the number; the flag negates the result.
    Number(Compare, &'t [u8], bool),
}

impl<'t> Kind<'t> {
    /// Parses a pattern, without the leading `!`. A single character is always a regular
    /// expression.
    pub fn of(pattern: &'t [u8]) -> Kind<'t> {
        let number = |compare, text| Kind::Number(compare, text, false);
        match pattern {
            [] | [_] => Kind::Regex(pattern),
            [b'-', letter] => Kind::of_letter(*letter).unwrap_or(Kind::Regex(pattern)),
            [b'-', a, b, rest @ ..] if !rest.is_empty() => match [*a, *b] {
                [b'l', b't'] => number(Compare::Less, rest),
                [b'l', b'e'] => number(Compare::NotGreater, rest),
                [b'g', b't'] => number(Compare::Greater, rest),
                [b'g', b'e'] => number(Compare::NotLess, rest),
                [b'e', b'q'] => number(Compare::Equal, rest),
                [b'n', b'e'] => Kind::Number(Compare::Equal, rest, true),
                _ => Kind::Regex(pattern),
            },
            [b'>', b'=', rest @ ..] => Kind::Text(Compare::NotLess, rest),
            [b'>', rest @ ..] => Kind::Text(Compare::Greater, rest),
            [b'<', b'=', rest @ ..] => Kind::Text(Compare::NotGreater, rest),
            [b'<', rest @ ..] => Kind::Text(Compare::Less, rest),
            b"=\"\"" => Kind::Text(Compare::Equal, b""),
            [b'=', rest @ ..] => Kind::Text(Compare::Equal, rest),
            _ => Kind::Regex(pattern),
        }
    }

    fn of_letter(letter: u8) -> Option<Kind<'t>> {
        Some(match letter {
            b'f' => Kind::File(FileTest::Regular),
            b's' => Kind::File(FileTest::NotEmpty),
            b'd' => Kind::File(FileTest::Directory),
            b'x' => Kind::File(FileTest::Executable),
            b'h' | b'l' | b'L' => Kind::File(FileTest::Link),
            b'U' => Kind::Url,
            b'F' => Kind::LookUpFile,
            _ => return None,
        })
    }

    /// Whether `[NC]` applies to it.
    pub fn heeds_case(&self) -> bool {
        matches!(self, Kind::Regex(_) | Kind::Text(..))
    }

    /// The part of a pattern that the warning about `[NC]` shows.
    pub fn shown<'p>(&self, pattern: &'p [u8]) -> &'p [u8]
    where
        't: 'p,
    {
        match self {
            Kind::Number(_, number, _) => number,
            _ => pattern,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_tests_or_regular_expressions() {
        assert_eq!(Kind::of(b"-f"), Kind::File(FileTest::Regular));
        assert_eq!(Kind::of(b"-L"), Kind::File(FileTest::Link));
        assert_eq!(Kind::of(b"-ip"), Kind::Regex(b"-ip"));
        assert_eq!(Kind::of(b"-lt"), Kind::Regex(b"-lt"));
        assert_eq!(Kind::of(b"-lt5"), Kind::Number(Compare::Less, b"5", false));
        assert_eq!(Kind::of(b"-ne5"), Kind::Number(Compare::Equal, b"5", true));
        assert_eq!(Kind::of(b">=b"), Kind::Text(Compare::NotLess, b"b"));
        assert_eq!(Kind::of(b"=\"\""), Kind::Text(Compare::Equal, b""));
        assert_eq!(Kind::of(b"=\""), Kind::Text(Compare::Equal, b"\""));
        for single in [&b"-"[..], b"=", b"<", b">", b"."] {
            assert_eq!(Kind::of(single), Kind::Regex(single));
        }
        assert_eq!(Kind::of(b""), Kind::Regex(b""));
    }

    #[test]
    fn the_shorter_text_is_the_lesser_where_case_counts() {
        assert_eq!(order(b"10", b"9", false), Ordering::Greater);
        assert_eq!(order(b"10", b"9", true), Ordering::Less);
        assert_eq!(order(b"B", b"a", false), Ordering::Less);
        assert_eq!(order(b"B", b"a", true), Ordering::Greater);
        assert_eq!(order(b"", b"", false), Ordering::Equal);
    }

    #[test]
    fn flags_have_long_forms() {
        let flags = Flags::parse(b"[nocase,OR]").unwrap();
        assert!(flags.ignores_case && flags.or_next && !flags.no_vary);
        assert_eq!(Flags::parse(b"[X]").unwrap_err(), "unknown flag 'X'");
    }
}
