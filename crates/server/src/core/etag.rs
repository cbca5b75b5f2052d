//! `FileETag` and its entity tags.
//!
//! Source: `set_etag_bits` (server/core.c), `ap_make_etag_ex` (modules/http/http_etag.c).

use conf::Arg;

use crate::api::directive::{Cx, Fault, Row, Set, State, Takes};
use crate::config::context::{Override, Places};
use crate::core::Core;
use crate::merge::Merge;
use crate::request::{FileInfo, Request};

/// The validator of a list of variants (`vlist_validator`). It is stored in a negotiated request
/// and becomes a part of the chosen variant's ETag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantsTag {
    /// Its text, without quotes.
    text: Vec<u8>,
    is_weak: bool,
}

impl VariantsTag {
    /// Returns the validator of a list with this ETag.
    pub fn of(tag: &[u8]) -> VariantsTag {
        let bare = tag.strip_prefix(b"W/").unwrap_or(tag);
        let is_weak = bare.len() < tag.len();
        let bare = bare.strip_prefix(b"\"").unwrap_or(bare);
        VariantsTag { text: bare.strip_suffix(b"\"").unwrap_or(bare).to_vec(), is_weak }
    }
}

/// The tag of a variant with that of its list, weak if one of them is. Apache omits the closing
/// quote, and clients rely on the tag as it is.
pub(crate) fn with_variants(tag: &[u8], list: &VariantsTag) -> Vec<u8> {
    let open = tag.strip_suffix(b"\"").unwrap_or(tag);
    let weak: &[u8] = if list.is_weak && !open.starts_with(b"W/") { b"W/" } else { b"" };
    [weak, open, b";", &list.text].concat()
}

/// Sets the response's ETag. If there is none, the response has none from elsewhere either, such as
/// from `Header`.
pub fn tell(request: &mut Request, tag: Option<Vec<u8>>) {
    match tag {
        Some(tag) => request.response.headers_out.set(b"ETag", &tag),
        None => request.notes.set(b"no-etag", b"omit"),
    }
}

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
    const ALL: EtagParts = EtagParts(1 | 2 | 4);
    /// The default: `MTime Size`.
    const DEFAULT: EtagParts = EtagParts(1 | 4);

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
    /// words are the whole list, and removed words remove nothing from the default.
    pub fn parts(&self) -> EtagParts {
        match self.absolute {
            // Signed words add nothing to the `None` of their own section.
            Some(base) if base.is_none() => base,
            Some(base) => EtagParts((base.0 | self.add.0) & !self.remove.0),
            None if self.add.is_none() => EtagParts::DEFAULT,
            None => self.add,
        }
    }
}

impl Merge for FileEtag {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.absolute.is_some() {
            return *inner;
        }
        let add = EtagParts((outer.add.0 & !inner.remove.0) | inner.add.0);
        let remove = EtagParts((outer.remove.0 & !inner.add.0) | inner.remove.0);
        let absolute = outer.absolute.map(|base| EtagParts((base.0 | add.0) & !remove.0));
        FileEtag { absolute, add, remove }
    }
}

/// The ETag of a file: the parts in hex, in quotes; empty if there are no parts. A file that
/// changed within the current second gets a weak one.
pub fn of_file(info: &FileInfo, parts: EtagParts, now_us: u64) -> Vec<u8> {
    /// Two versions of a file within this time may have the same time stamp.
    const SECOND_US: u64 = 1_000_000;
    let weak = now_us.saturating_sub(info.mtime_us) < SECOND_US;
    let numbers = [
        parts.has(EtagParts::INODE).then_some(info.inode),
        parts.has(EtagParts::SIZE).then_some(info.size),
        parts.has(EtagParts::MTIME).then_some(info.mtime_us),
    ];
    wire::etag::of_numbers(numbers, weak).as_bytes().to_vec()
}

/// The rows of this file.
pub(super) const ROWS: &[Row<Core>] = &[Row {
    name: "FileETag",
    places: Places::ALL,
    allow: Override::FILE_INFO,
    takes: Takes::Some { least: 0, most: usize::MAX, set: set_file_etag },
    syntax: "component ...",
    default: "MTime Size",
    doc: "Sets the components of a file's ETag: modification time, size, inode or a digest of the \
        content.",
    state: State::Done,
}];

fn set_file_etag(cx: &mut Cx<'_, '_, Core>, words: &[Arg]) -> Set {
    let mut etag = cx.dir().file_etag;
    let mut first = true;
    for word in words {
        let (sign, name) = match word.text.split_first() {
            Some((sign @ (b'+' | b'-'), name)) => (Some(*sign), name),
            _ => (None, word.text.as_slice()),
        };
        if sign.is_none() && std::mem::take(&mut first) {
            // A line with an unsigned word replaces the lines before it.
            etag = FileEtag::default();
        }
        let whole = [("None", EtagParts(0)), ("All", EtagParts::ALL)];
        if let Some((known, parts)) = whole.iter().find(|(known, _)| is(name, known)) {
            if sign.is_some() {
                let signed = "cannot be used with '+' or '-'";
                return Err(Fault::new(format!("FileETag keyword '{known}' {signed}")).at(word));
            }
            etag = FileEtag { absolute: Some(*parts), ..FileEtag::default() };
            continue;
        }
        let single = [
            ("MTime", EtagParts::MTIME),
            ("Size", EtagParts::SIZE),
            ("INode", EtagParts::INODE),
            ("Digest", EtagParts::DIGEST),
        ];
        let Some((_, part)) = single.iter().find(|(known, _)| is(name, known)) else {
            let shown = bstr::BStr::new(name);
            let unknown = format!("Unknown keyword '{shown}' for FileETag directive");
            return Err(Fault::new(unknown).at(word));
        };
        match sign {
            Some(b'+') => {
                etag.add.0 |= part.0;
                etag.remove.0 &= !part.0;
            }
            Some(_) => {
                etag.remove.0 |= part.0;
                etag.add.0 &= !part.0;
            }
            None => {
                // An unsigned word starts a new list; signed words before it are dropped.
                let absolute = etag.absolute.unwrap_or_default();
                etag = FileEtag { absolute: Some(EtagParts(absolute.0 | part.0)), ..etag };
                etag.add = EtagParts::default();
                etag.remove = EtagParts::default();
            }
        }
    }
    cx.dir().file_etag = etag;
    Ok(())
}

fn is(word: &[u8], known: &str) -> bool {
    word.eq_ignore_ascii_case(known.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variants_tag_names_its_list() {
        let list = VariantsTag::of(b"\"e0-2\"");
        assert_eq!(with_variants(b"\"7-1\"", &list), b"\"7-1;e0-2");
        let weak = VariantsTag::of(b"W/\"e0-2\"");
        assert_eq!(with_variants(b"\"7-1\"", &weak), b"W/\"7-1;e0-2");
        assert_eq!(with_variants(b"W/\"7-1\"", &weak), b"W/\"7-1;e0-2");
    }

    #[test]
    fn a_tag_names_its_parts_in_apaches_order() {
        let info = FileInfo { size: 0x2a, mtime_us: 0xabc, inode: 7, ..FileInfo::default() };
        let now = 10_000_000;
        assert_eq!(of_file(&info, EtagParts::DEFAULT, now), b"\"2a-abc\"");
        assert_eq!(of_file(&info, EtagParts::ALL, now), b"\"7-2a-abc\"");
        assert_eq!(of_file(&info, EtagParts::SIZE, 0xabc), b"W/\"2a\"");
        assert!(of_file(&info, EtagParts(0), now).is_empty());
    }

    #[test]
    fn signs_change_what_is_inherited() {
        let outer = FileEtag { absolute: Some(EtagParts::ALL), ..FileEtag::default() };
        let inner = FileEtag { remove: EtagParts::INODE, ..FileEtag::default() };
        assert_eq!(FileEtag::merge(&outer, &inner).parts(), EtagParts::DEFAULT);
    }
}
