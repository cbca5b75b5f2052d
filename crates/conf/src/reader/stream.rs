//! The source of lines: a file, and the expansions of macros used in it.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use crate::lines::{Line, LineTooLong, Lines};
use crate::source::FileId;

/// A file, and on top of it the macros being expanded, the innermost last.
pub(super) struct Streams {
    file: Lines,
    expansions: Vec<(BString, Lines)>,
}

impl Streams {
    pub(super) fn new(file: FileId, text: Arc<[u8]>) -> Streams {
        Streams { file: Lines::new(file, text), expansions: Vec::new() }
    }

    /// Inserts a macro's expansion at the current position.
    pub(super) fn push(&mut self, name: BString, file: FileId, text: Arc<[u8]>) {
        self.expansions.push((name, Lines::new(file, text)));
    }

    /// Whether the macro of this name is being expanded.
    pub(super) fn is_expanding(&self, name: &BStr) -> bool {
        self.expansions.iter().any(|(expanding, _)| expanding.as_bstr() == name)
    }

    /// The text that the next line comes from, if any is left.
    pub(super) fn file(&self) -> FileId {
        self.expansions.last().map_or(&self.file, |(_, lines)| lines).file()
    }
}

impl Iterator for Streams {
    type Item = Result<Line, LineTooLong>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((_, lines)) = self.expansions.last_mut() {
            match lines.next() {
                Some(line) => return Some(line),
                None => self.expansions.pop(),
            };
        }
        self.file.next()
    }
}
