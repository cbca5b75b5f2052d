//! The texts of a cached response, one behind the other in one block: a thread that serves one
//! connection finds its memory cold, and a block takes fewer cache lines than many vectors.

use std::ops::Range;

/// One of the texts.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Text {
    /// Header lines from behind `Date` to the connection's own.
    Before,
    /// Header lines after the connection's own, and the empty line.
    After,
    /// The entity tag as it is sent.
    SentTag,
    /// The entity tag that the handler evaluated conditions with.
    Tag,
    /// The content, if it is not somewhere else.
    Content,
    /// The file's name, for logs.
    Filename,
    /// The path after redirects to an index file, for logs.
    Uri,
    /// What follows the file's path, for logs.
    PathInfo,
    /// The media type, for logs.
    ContentType,
    /// The handler, for logs.
    Handler,
}

/// Their number.
pub(super) const TEXTS: usize = Text::Handler as usize + 1;

/// Where texts are in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offsets {
    start: u32,
    /// Where each one ends.
    pub ends: [u32; TEXTS],
    /// A bit for each that is there.
    pub present: u32,
}

impl Offsets {
    /// Texts that begin at `start`, whose ends are counted from there.
    pub fn new(start: usize, ends: [u32; TEXTS], present: u32) -> Option<Offsets> {
        let start = u32::try_from(start).ok()?;
        Some(Offsets { start, ends, present })
    }

    fn at(&self, index: usize) -> Option<Range<usize>> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let at = |end: u32| self.start as usize + end as usize;
        (self.present & 1 << index != 0).then(|| at(start)..at(self.ends[index]))
    }
}

/// The block with its texts.
pub(super) struct Texts {
    pub block: Vec<u8>,
    pub offsets: Offsets,
}

impl Texts {
    /// Copies texts.
    pub fn of(texts: [Option<&[u8]>; TEXTS]) -> Texts {
        let length = texts.iter().flatten().map(|text| text.len()).sum();
        let mut block = Vec::with_capacity(length);
        let mut offsets = Offsets { start: 0, ends: [0; TEXTS], present: 0 };
        for (index, (text, end)) in texts.iter().zip(&mut offsets.ends).enumerate() {
            block.extend_from_slice(text.unwrap_or_default());
            offsets.present |= u32::from(text.is_some()) << index;
            *end = u32::try_from(block.len()).unwrap_or(u32::MAX);
        }
        Texts { block, offsets }
    }

    /// The same, with another text as well.
    pub fn with(&self, text: Text, value: &[u8]) -> Texts {
        let mut all: [_; TEXTS] = std::array::from_fn(|index| self.at(index));
        all[text as usize] = Some(value);
        Texts::of(all)
    }

    /// A text, if there is one.
    pub fn find(&self, text: Text) -> Option<&[u8]> {
        self.at(text as usize)
    }

    fn at(&self, index: usize) -> Option<&[u8]> {
        self.block.get(self.offsets.at(index)?)
    }

    /// A text; empty if there is none.
    pub fn get(&self, text: Text) -> &[u8] {
        self.find(text).unwrap_or_default()
    }

    /// All of them, one behind the other.
    pub fn all(&self) -> &[u8] {
        let end = self.offsets.ends[TEXTS - 1] as usize;
        let start = self.offsets.start as usize;
        self.block.get(start..start + end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_their_block() {
        let mut texts = [None; TEXTS];
        texts[Text::Before as usize] = Some(&b"before"[..]);
        texts[Text::Tag as usize] = Some(b"");
        texts[Text::Handler as usize] = Some(b"handler");
        let texts = Texts::of(texts);
        assert_eq!(texts.find(Text::Before), Some(&b"before"[..]));
        assert_eq!(texts.find(Text::After), None);
        assert_eq!(texts.find(Text::Tag), Some(&b""[..]));
        assert_eq!(texts.get(Text::Handler), b"handler");
        assert_eq!(texts.all(), b"beforehandler");
        let Offsets { ends, present, .. } = texts.offsets;
        let offsets = Offsets::new(3, ends, present).unwrap();
        let block = [b"key", texts.all()].concat();
        assert_eq!(Texts { block, offsets }.get(Text::Handler), b"handler");
        let broken = Offsets::new(usize::MAX >> 33, [u32::MAX; TEXTS], u32::MAX).unwrap();
        assert_eq!(Texts { block: Vec::new(), offsets: broken }.get(Text::Uri), b"");
    }
}
