//! The texts that were read, and positions in them.

use std::sync::{Arc, OnceLock};

use bstr::{BStr, BString, ByteSlice};

/// The index of a text in [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

/// A range within a source line.
///
/// Counted in characters from 1; a byte that is not UTF-8 counts as one. It never crosses a line
/// end: text after a continuation is cut off there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// The line, from 1.
    pub line: u32,
    /// The column of the first character, from 1.
    pub column: u32,
    /// The number of characters; 0 marks a position between two of them.
    pub length: u32,
}

/// One text: a file, an `.htaccess`, the `-C`/`-c` arguments, or a macro's expansion.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name as Apache prints it: an absolute path, or for instance `macro 'X' (defined on …)
    /// used on …`.
    pub name: BString,
    /// The whole text.
    pub text: Arc<[u8]>,
    /// The offsets of its lines.
    starts: OnceLock<Vec<usize>>,
}

impl Source {
    /// Line `number` (from 1) without its line end, or `None` if there are fewer.
    pub fn line(&self, number: u32) -> Option<&BStr> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let starts = self.starts.get_or_init(|| {
            let ends = self.text.find_iter(b"\n").map(|end| end + 1);
            std::iter::once(0).chain(ends).collect()
        });
        let line = self.text.get(*starts.get(index)?..)?;
        let line = line.find_byte(b'\n').and_then(|end| line.get(..end)).unwrap_or(line);
        Some(line.strip_suffix(b"\r").unwrap_or(line).as_bstr())
    }
}

/// All texts that were read, by [`FileId`], in the order of reading.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The number of the first text.
    first: u32,
    all: Vec<Source>,
}

impl Sources {
    /// Returns an empty list.
    pub fn new() -> Sources {
        Sources::default()
    }

    /// Returns an empty list whose ids begin with `first`: they differ from those of other lists,
    /// so that a span has one meaning among all of them.
    pub fn numbered_from(first: u32) -> Sources {
        Sources { first, all: Vec::new() }
    }

    /// Adds a text with its name.
    pub fn add(&mut self, name: impl Into<BString>, text: impl Into<Arc<[u8]>>) -> FileId {
        let count = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let id = FileId(self.first.saturating_add(count));
        self.all.push(Source { name: name.into(), text: text.into(), starts: OnceLock::new() });
        id
    }

    /// The text, or `None` if the id belongs to other sources.
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.all.get(usize::try_from(file.0.checked_sub(self.first)?).ok()?)
    }

    /// The name of the text; empty if the id belongs to other sources.
    pub fn name(&self, file: FileId) -> &BStr {
        self.get(file).map_or(BStr::new(b""), |source| source.name.as_bstr())
    }

    /// The source line of `span`.
    pub fn line(&self, span: Span) -> Option<&BStr> {
        self.get(span.file)?.line(span.line)
    }

    /// The last physical line of the logical line of `span`, which is the line that Apache names.
    pub fn last_line(&self, span: Span) -> u32 {
        let mut line = span.line;
        while self.line(Span { line, ..span }).is_some_and(|text| text.ends_with(b"\\"))
            && self.line(Span { line: line + 1, ..span }).is_some()
        {
            line += 1;
        }
        line
    }

    /// The text's name, and the line as Apache counts ([`Sources::last_line`]).
    pub fn place(&self, span: Span) -> (String, u32) {
        (self.name(span.file).to_string(), self.last_line(span))
    }

    /// Every text with its id.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        (self.first..).map(FileId).zip(&self.all)
    }
}
