//! Logical lines: continuations joined and blanks trimmed, as in `ap_cfg_getline`.

use std::sync::Arc;

use bstr::ByteSlice;

use crate::source::FileId;
use crate::text::Text;
use crate::word::is_blank;

/// Most bytes of a logical line; Apache's `VARBUF_MAX_LEN`.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// A logical line without leading and trailing blanks.
#[derive(Clone, Debug)]
pub struct Line {
    /// The contents; may be empty.
    pub text: Text,
    /// The number of its last physical line, which Apache's messages name.
    pub number: u32,
    /// Whether the line contained a NUL byte; as in Apache, the rest was cut off.
    pub cut_at_nul: bool,
}

/// The line exceeds [`MAX_LINE_BYTES`]; reading ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong {
    /// The number of its first physical line.
    pub number: u32,
}

/// An iterator over the logical lines of a text.
#[derive(Clone, Debug)]
pub struct Lines {
    file: FileId,
    text: Arc<[u8]>,
    at: usize,
    number: u32,
}

impl Lines {
    /// Starts at the text's first byte.
    pub fn new(file: FileId, text: Arc<[u8]>) -> Lines {
        Lines { file, text, at: 0, number: 0 }
    }

    /// The text being read.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The number of the last physical line read; 0 before the first.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Reads a physical line: its bytes without the line end, and whether it had one.
    fn physical(&mut self) -> Option<(usize, usize, bool)> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let start = self.at;
        let (length, has_end) = match rest.find_byte(b'\n') {
            Some(length) => (length, true),
            None => (rest.len(), false),
        };
        self.at = start + length + usize::from(has_end);
        self.number = self.number.saturating_add(1);
        Some((start, start + length, has_end))
    }
}

impl Iterator for Lines {
    type Item = Result<Line, LineTooLong>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut joined = Text::new(self.file);
        let mut cut_at_nul = false;
        let first = self.number.saturating_add(1);
        let mut any = false;
        while let Some((start, end, has_end)) = self.physical() {
            any = true;
            let text = Arc::clone(&self.text);
            let bytes = text.get(start..end).unwrap_or(&[]);
            if joined.len() + bytes.len() >= MAX_LINE_BYTES {
                self.at = self.text.len();
                return Some(Err(LineTooLong { number: first }));
            }
            if let Some(nul) = bytes.find_byte(0) {
                cut_at_nul = true;
                joined.push_source(bytes.get(..nul).unwrap_or(&[]), self.number, 1);
                break;
            }
            let content = bytes.strip_suffix(b"\r").filter(|_| has_end).unwrap_or(bytes);
            match content.strip_suffix(b"\\").filter(|_| has_end) {
                Some(part) => joined.push_source(part, self.number, 1),
                None => {
                    joined.push_source(content, self.number, 1);
                    break;
                }
            }
        }
        any.then(|| Ok(Line { text: trimmed(joined), number: self.number, cut_at_nul }))
    }
}

/// Trims blanks at both ends.
fn trimmed(text: Text) -> Text {
    let bytes = text.bytes();
    let blank = |byte: &u8| is_blank(*byte);
    let start = bytes.iter().take_while(|byte| blank(byte)).count();
    let end = bytes.len() - bytes.iter().rev().take_while(|byte| blank(byte)).count();
    if start == 0 && end == bytes.len() {
        return text;
    }
    text.slice(start..end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<(String, u32)> {
        Lines::new(FileId::default(), text.into())
            .map(|line| line.map(|line| (line.text.bytes().to_string(), line.number)).unwrap())
            .collect()
    }

    #[test]
    fn continuation_joins_and_counts_the_last_line() {
        let found = lines(b"  a \\\n  b\\\r\nc  \n\nd");
        assert_eq!(found, [("a   bc".into(), 3), (String::new(), 4), ("d".into(), 5)]);
    }

    #[test]
    fn a_backslash_at_the_very_end_stays() {
        assert_eq!(lines(b"a\\"), [("a\\".into(), 1)]);
        assert_eq!(lines(b"a\\\n"), [("a".into(), 1)]);
        assert_eq!(lines(b"a\\\\\nb"), [("a\\b".into(), 2)]);
    }

    #[test]
    fn a_line_is_cut_at_nul() {
        assert_eq!(lines(b"a b\0 c\\\nd"), [("a b".into(), 1), ("d".into(), 2)]);
        let mut all = Lines::new(FileId::default(), b"a\0b"[..].into());
        assert!(all.next().unwrap().unwrap().cut_at_nul);
    }

    #[test]
    fn places_follow_the_source() {
        let mut all = Lines::new(FileId::default(), b"  one \\\n   tw\xc3\xb6 three\n"[..].into());
        let line = all.next().unwrap().unwrap();
        let at = line.text.bytes().find("three").unwrap();
        let span = line.text.span(at..at + 5);
        assert_eq!((span.line, span.column, span.length), (2, 8, 5));
        let whole = line.text.whole_span();
        assert_eq!((whole.line, whole.column, whole.length), (1, 3, 4));
    }

    #[test]
    fn a_line_without_an_end_of_reason_is_refused() {
        let text = vec![b'x'; MAX_LINE_BYTES];
        let mut all = Lines::new(FileId::default(), text.into());
        assert_eq!(all.next().unwrap().unwrap_err(), LineTooLong { number: 1 });
        assert!(all.next().is_none());
    }
}
