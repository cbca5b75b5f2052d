//! `FileETag` and its inheritance.
//!
//! Source: `set_etag_bits` (server/core.c).

use crate::merge::Merge;

/// Parts of an ETag, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EtagParts(u8);

impl EtagParts {
    /// `MTime`
    pub const MTIME: EtagParts = EtagParts(1);
    /// `INode`
    pub const INODE: EtagParts = EtagParts(2);
    /// `Size`
    pub const SIZE: EtagParts = EtagParts(4);
    /// `Digest`: SHA-1 of the content.
    pub const DIGEST: EtagParts = EtagParts(8);
    /// `All`
    pub const ALL: EtagParts = EtagParts(1 | 2 | 4);
    /// `None`
    pub const NONE: EtagParts = EtagParts(0);
    /// The default: `MTime Size`.
    pub const DEFAULT: EtagParts = EtagParts(1 | 4);

    /// Whether the set contains a part.
    pub const fn has(self, part: EtagParts) -> bool {
        self.0 & part.0 != 0
    }

    /// Whether there is no ETag.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// `FileETag` with its inheritance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileEtag {
    absolute: Option<EtagParts>,
    add: EtagParts,
    remove: EtagParts,
}

impl FileEtag {
    /// The parts in force. Signed words change the list of an outer section; without one, added
    /// words are the whole list, and removed words remove nothing from the default. A list that
    /// loses all its words is the default.
    pub fn parts(&self) -> EtagParts {
        match self.absolute {
            // Signed words add nothing to the `None` of their own section.
            Some(base) if base.is_none() => base,
            Some(base) => {
                let parts = EtagParts((base.0 | self.add.0) & !self.remove.0);
                if parts.is_none() { EtagParts::DEFAULT } else { parts }
            }
            None if self.add.is_none() => EtagParts::DEFAULT,
            None => self.add,
        }
    }
}

impl FileEtag {
    /// `None` or `All`, which replace everything before them.
    pub fn whole(parts: EtagParts) -> FileEtag {
        FileEtag { absolute: Some(parts), ..FileEtag::default() }
    }

    /// A word with `+`.
    pub fn add(&mut self, part: EtagParts) {
        self.add.0 |= part.0;
        self.remove.0 &= !part.0;
    }

    /// A word with `-`.
    pub fn remove(&mut self, part: EtagParts) {
        self.remove.0 |= part.0;
        self.add.0 &= !part.0;
    }

    /// An unsigned word, which drops the signed words before it.
    pub fn list(&mut self, part: EtagParts) {
        let absolute = self.absolute.unwrap_or_default();
        *self = FileEtag::whole(EtagParts(absolute.0 | part.0));
    }
}

impl Merge for FileEtag {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.absolute.is_some() {
            return *inner;
        }
        let add = EtagParts((outer.add.0 & !inner.remove.0) | inner.add.0);
        let remove = EtagParts((outer.remove.0 & !inner.add.0) | inner.remove.0);
        let base = outer.absolute.unwrap_or_default();
        let parts = EtagParts((base.0 | add.0) & !remove.0);
        // Added words without a list are one from then on: sections of one walk merge first. A list
        // that loses all words is none, unless it is `None`.
        let is_list = !parts.is_none() || outer.absolute.is_some_and(EtagParts::is_none);
        FileEtag { absolute: is_list.then_some(parts), add, remove }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_change_what_is_inherited() {
        let mut inner = FileEtag::default();
        inner.remove(EtagParts::INODE);
        let merged = FileEtag::merge(&FileEtag::whole(EtagParts::ALL), &inner);
        assert_eq!(merged.parts(), EtagParts::DEFAULT);
    }
}
