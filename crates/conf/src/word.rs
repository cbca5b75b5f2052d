//! Words of a line: quoting and backslashes as in `ap_getword_conf`.

use bstr::BString;

use crate::text::Text;
use crate::tree::Arg;

/// An iterator over the words of a text.
#[derive(Clone, Debug)]
pub struct Words<'t> {
    text: &'t Text,
    at: usize,
}

impl<'t> Words<'t> {
    /// Starts at the text's first byte.
    pub fn new(text: &'t Text) -> Words<'t> {
        Words { text, at: 0 }
    }

    /// The offset of the next word or of the text's end, after blanks.
    pub fn offset(&mut self) -> usize {
        self.at += blanks(self.rest());
        self.at
    }

    fn rest(&self) -> &'t [u8] {
        self.text.bytes().get(self.at..).unwrap_or(&[])
    }
}

impl Iterator for Words<'_> {
    type Item = Arg;

    fn next(&mut self) -> Option<Arg> {
        let start = self.offset();
        let (word, length) = first_word(self.rest())?;
        self.at += length;
        Some(Arg { text: word, span: self.text.span(start..self.at) })
    }
}

/// The first word of `text`, which must not start with a blank, and its length; `None` at the end.
///
/// Only a word's first byte can be an opening quote; text after the closing quote is the next word.
/// A backslash before a backslash is dropped, and inside quotes before the same quote, too. Source:
/// `ap_getword_conf`, `substring_conf`.
pub fn first_word(text: &[u8]) -> Option<(BString, usize)> {
    let (&first, inner) = text.split_first()?;
    if first != b'"' && first != b'\'' {
        let length = text.iter().position(|byte| is_blank(*byte)).unwrap_or(text.len());
        return Some((unescaped(text.get(..length)?, None), length));
    }
    let mut end = 0;
    while let Some(&byte) = inner.get(end)
        && byte != first
    {
        end += if escapes(inner, end, Some(first)) { 2 } else { 1 };
    }
    let word = unescaped(inner.get(..end)?, Some(first));
    // The length includes the quotes; the closing one may be missing.
    Some((word, text.len().min(end + 2)))
}

/// `word` without the backslashes that escape.
fn unescaped(word: &[u8], quote: Option<u8>) -> BString {
    let mut plain = BString::new(Vec::with_capacity(word.len()));
    let mut at = 0;
    while let Some(&byte) = word.get(at) {
        at += usize::from(escapes(word, at, quote));
        plain.push(word.get(at).copied().unwrap_or(byte));
        at += 1;
    }
    plain
}

/// Whether the byte at `at` is a backslash that is dropped.
fn escapes(text: &[u8], at: usize, quote: Option<u8>) -> bool {
    let next = text.get(at + 1).copied();
    text.get(at) == Some(&b'\\') && next.is_some() && (next == Some(b'\\') || next == quote)
}

/// The number of blanks at the start of `text`.
pub fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_blank(**byte)).count()
}

/// Whether the byte is C's `isspace` in the C locale.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::first_word;

    fn word(text: &str) -> (String, usize) {
        let (word, length) = first_word(text.as_bytes()).unwrap();
        (word.to_string(), length)
    }

    #[test]
    fn a_backslash_before_a_backslash_is_dropped() {
        assert_eq!(word(r"/\\.git x"), (r"/\.git".into(), 7));
        assert_eq!(word(r"a\\\\b\\ x"), (r"a\\b\".into(), 8));
        assert_eq!(word(r#"a\"b\c\"#), (r#"a\"b\c\"#.into(), 7));
        assert_eq!(word(r#""a\\b\"c\'d" x"#), (r#"a\b"c\'d"#.into(), 12));
        assert_eq!(word(r#"'a\'b\"' x"#), (r#"a'b\""#.into(), 8));
    }

    #[test]
    fn a_quote_may_stay_open() {
        assert_eq!(word(r#""a b"#), ("a b".into(), 4));
        assert_eq!(word(r#""a\""#), (r#"a""#.into(), 4));
        assert_eq!(word("\""), (String::new(), 1));
        assert_eq!(word("\"\"x"), (String::new(), 2));
    }
}
