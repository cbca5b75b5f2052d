//! The text of a logical line, which records the source position of each byte.

use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};

use crate::source::{FileId, Span};
use crate::word::is_blank;

/// Bytes with their positions: continuation lines joined, `${NAME}` replaced.
#[derive(Clone, Debug, Default)]
pub struct Text {
    bytes: BString,
    file: FileId,
    segments: Vec<Segment>,
}

/// A run of bytes that are adjacent in the source, from `start` to the next segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: usize,
    line: u32,
    column: u32,
    /// The number of source characters that the run replaced.
    replaced: Option<u32>,
}

impl Text {
    /// Returns an empty text of `file`.
    pub fn new(file: FileId) -> Text {
        Text { bytes: BString::default(), file, segments: Vec::new() }
    }

    /// The bytes.
    pub fn bytes(&self) -> &BStr {
        self.bytes.as_bstr()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The span of a range of bytes. It is cut at the end of a line; for text that replaced a
    /// `${NAME}`, it is the span of the `${NAME}`.
    pub fn span(&self, range: Range<usize>) -> Span {
        let start = self.place(range.start);
        if range.end <= range.start {
            return Span { length: 0, ..start };
        }
        let last = self.place(self.last_char_start(range));
        let length = if last.line == start.line && last.column >= start.column {
            last.column - start.column + last.length
        } else {
            self.rest_of_line(start)
        };
        Span { length, ..start }
    }

    /// The span of all the bytes.
    pub fn whole_span(&self) -> Span {
        self.span(0..self.bytes.len())
    }

    /// A part of the text, with its positions.
    pub fn slice(&self, range: Range<usize>) -> Text {
        let mut out = Text::new(self.file);
        out.append(self, range);
        out
    }

    /// Appends bytes from `line` and `column` of the source.
    pub(crate) fn push_source(&mut self, bytes: &[u8], line: u32, column: u32) {
        self.segments.push(Segment { start: self.bytes.len(), line, column, replaced: None });
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes that replace the source at `origin`.
    pub(crate) fn push_replaced(&mut self, bytes: &[u8], origin: Span) {
        self.segments.push(Segment {
            start: self.bytes.len(),
            line: origin.line,
            column: origin.column,
            replaced: Some(origin.length.max(1)),
        });
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a part of another text of the same file.
    pub(crate) fn append(&mut self, other: &Text, range: Range<usize>) {
        let end = range.end.min(other.bytes.len());
        let mut at = range.start;
        while at < end {
            let next = other.segment_end(at).min(end);
            let bytes = other.bytes.get(at..next).unwrap_or(&[]);
            let origin = other.place(at);
            if other.segment(at).is_some_and(|segment| segment.replaced.is_some()) {
                self.push_replaced(bytes, origin);
            } else {
                self.push_source(bytes, origin.line, origin.column);
            }
            at = next;
        }
        if self.segments.is_empty() {
            let origin = other.place(range.start);
            self.push_source(b"", origin.line, origin.column);
        }
    }

    /// Truncates to `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Trims trailing blanks.
    pub(crate) fn trim_end(&mut self) {
        let kept =
            self.bytes.trim_end_with(|letter| u8::try_from(letter).is_ok_and(is_blank)).len();
        self.truncate(kept);
    }

    /// The span of the character at byte `at`.
    fn place(&self, at: usize) -> Span {
        let Some(segment) = self.segment(at) else {
            return Span { file: self.file, line: 1, column: 1, length: 1 };
        };
        let (column, length) = match segment.replaced {
            Some(length) => (segment.column, length),
            None => {
                let before = self.bytes.get(segment.start..at.min(self.bytes.len()));
                let skipped = before.map_or(0, |bytes| bytes.chars().count());
                (segment.column.saturating_add(u32::try_from(skipped).unwrap_or(u32::MAX)), 1)
            }
        };
        Span { file: self.file, line: segment.line, column, length }
    }

    fn segment(&self, at: usize) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= at);
        self.segments.get(after.saturating_sub(1))
    }

    fn segment_end(&self, at: usize) -> usize {
        let after = self.segments.partition_point(|segment| segment.start <= at);
        self.segments.get(after).map_or(self.bytes.len(), |segment| segment.start)
    }

    fn last_char_start(&self, range: Range<usize>) -> usize {
        let slice = self.bytes.get(range.clone()).unwrap_or(&[]);
        let last = slice.char_indices().next_back().map_or(0, |(start, _, _)| start);
        range.start + last
    }

    /// The number of characters from `start` to the text's last one on that line.
    fn rest_of_line(&self, start: Span) -> u32 {
        let mut end = start.column + 1;
        for segment in self.segments.iter().filter(|segment| segment.line == start.line) {
            let last = self.segment_end(segment.start).saturating_sub(1).max(segment.start);
            let place = self.place(last);
            end = end.max(place.column + place.length);
        }
        end.saturating_sub(start.column)
    }
}
