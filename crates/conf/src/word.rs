//! Words of a line: quoting and backslashes as `ap_getword_conf` has them.

use bstr::BString;

use crate::text::Text;
use crate::tree::Arg;

/// The words of a text, one by one.
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

    /// The byte offset where the next word or the text's end is; blanks are skipped.
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

/// The first word of `text`, which starts with no blank, and the bytes it takes; `None` at the end.
///
/// Quotes count only as a word's first byte, and what follows the closing quote is the next word.
/// Inside quotes a backslash before the same quote or a backslash is dropped.
/// Source: `ap_getword_conf`, `substring_conf`.
pub fn first_word(text: &[u8]) -> Option<(BString, usize)> {
    let (&first, inner) = text.split_first()?;
    if first != b'"' && first != b'\'' {
        let length = text.iter().position(|byte| is_blank(*byte)).unwrap_or(text.len());
        return Some((text.get(..length)?.into(), length));
    }
    let mut word = BString::default();
    let mut bytes = inner.iter().copied().enumerate();
    while let Some((index, byte)) = bytes.next() {
        match (byte, inner.get(index + 1)) {
            (b'\\', Some(&next)) if next == b'\\' || next == first => {
                word.push(next);
                bytes.next();
            }
            (byte, _) if byte == first => return Some((word, index + 2)),
            (byte, _) => word.push(byte),
        }
    }
    Some((word, text.len()))
}

/// How many blanks `text` starts with.
pub fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_blank(**byte)).count()
}

/// Is it one of C's `isspace` in the C locale?
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}
