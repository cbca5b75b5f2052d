//! The argument line of `RewriteRule` and `RewriteCond`, which has a syntax of its own.
//!
//! Source: `parseargline`, `cmd_parseflagfield`.

use conf::word::{blanks, is_blank};

/// The words of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    /// The pattern of a rule, or the test string of a condition.
    pub first: &'t [u8],
    /// The substitution, or the pattern of a condition.
    pub second: &'t [u8],
    /// The flags, in brackets.
    pub flags: Option<&'t [u8]>,
}

impl<'t> Line<'t> {
    /// Splits a line; `None` if it has no second word.
    pub fn parse(text: &'t [u8]) -> Option<Line<'t>> {
        let (first, rest) = word(skip_blanks(text));
        let (second, rest) = word(skip_blanks(rest?));
        let third = rest.map(skip_blanks).filter(|rest| !rest.is_empty());
        Some(Line { first, second, flags: third.map(|rest| word(rest).0) })
    }
}

/// A word, and the text after the byte that ends it; `None` if the line ends first. A quote is
/// special only at the start of the word, and a backslash escapes a blank.
fn word(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let (quote, text) = match text {
        [quote @ (b'"' | b'\''), rest @ ..] => (Some(*quote), rest),
        _ => (None, text),
    };
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let is_end = match quote {
            Some(quote) => *byte == quote,
            None => is_blank(*byte),
        };
        if is_end {
            return (text.get(..at).unwrap_or_default(), text.get(at + 1..));
        }
        let keeps_blank = *byte == b'\\' && text.get(at + 1).is_some_and(|next| is_blank(*next));
        at += if keeps_blank { 2 } else { 1 };
    }
    (text, None)
}

/// The items of a flags field: `[name=value,…]`, without surrounding blanks. `None` if it is not in
/// brackets.
pub(super) fn flags(field: &[u8]) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
    let items = field.strip_prefix(b"[")?.strip_suffix(b"]")?;
    Some(items.split(|byte| *byte == b',').map(|item| {
        let item = trim(item);
        match item.iter().position(|byte| *byte == b'=') {
            Some(at) => {
                (item.get(..at).unwrap_or_default(), item.get(at + 1..).unwrap_or_default())
            }
            None => (item, &[][..]),
        }
    }))
}

fn trim(text: &[u8]) -> &[u8] {
    let text = skip_blanks(text);
    let end = text.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    text.get(..end).unwrap_or_default()
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    text.get(blanks(text)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(String, String, Option<String>)> {
        let line = Line::parse(text.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(line.first), text(line.second), line.flags.map(text)))
    }

    fn line(
        first: &str,
        second: &str,
        flags: Option<&str>,
    ) -> Option<(String, String, Option<String>)> {
        Some((first.to_owned(), second.to_owned(), flags.map(str::to_owned)))
    }

    #[test]
    fn words_end_at_blanks() {
        assert_eq!(parsed("^a$ /b [L]"), line("^a$", "/b", Some("[L]")));
        assert_eq!(parsed("  ^a$\t/b  "), line("^a$", "/b", None));
        assert_eq!(parsed("a b c d"), line("a", "b", Some("c")));
        assert_eq!(parsed("a"), None);
        assert_eq!(parsed(""), None);
        assert_eq!(parsed("a "), line("a", "", None));
    }

    #[test]
    fn quotes_count_at_the_start() {
        assert_eq!(parsed("\"a b\" 'c d' \"[R, L]\""), line("a b", "c d", Some("[R, L]")));
        assert_eq!(parsed("a\"b c"), line("a\"b", "c", None));
        assert_eq!(parsed("'a b"), None);
        assert_eq!(parsed("a \"\" [R]"), line("a", "", Some("[R]")));
    }

    #[test]
    fn a_backslash_keeps_the_blank_and_stays() {
        assert_eq!(parsed("a\\ b c"), line("a\\ b", "c", None));
        assert_eq!(parsed("a\\b c"), line("a\\b", "c", None));
    }

    #[test]
    fn flags_stand_in_brackets() {
        let all = |field: &'static [u8]| flags(field).map(Iterator::collect::<Vec<_>>);
        assert_eq!(all(b"[ R=301 , L]"), Some(vec![(&b"R"[..], &b"301"[..]), (b"L", b"")]));
        assert_eq!(all(b"[E=a:b=c]"), Some(vec![(&b"E"[..], &b"a:b=c"[..])]));
        assert_eq!(all(b"[]"), Some(vec![(&b""[..], &b""[..])]));
        assert_eq!(all(b"[L"), None);
        assert_eq!(all(b"["), None);
        assert_eq!(all(b""), None);
    }
}
