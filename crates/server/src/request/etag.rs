//! Entity tags of files and of variants.
//!
//! Source: `ap_make_etag_ex` (modules/http/http_etag.c).

use std::borrow::Cow;

use crate::config::core::EtagParts;
use crate::request::{FileInfo, Request};

/// The validator of a list of variants (`vlist_validator`). It is stored in a negotiated request
/// and becomes a part of the chosen variant's ETag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantsTag {
    /// Its text, without quotes.
    text: Vec<u8>,
    is_weak: bool,
}

/// A coding in which the file of a response is stored. It becomes a part of the ETag, so that this
/// differs from the original's even if it consists of the time only.
#[derive(Clone, Copy, Debug)]
pub struct CodedTag(pub &'static str);

impl CodedTag {
    /// The tag of a file with the coding.
    pub fn of(self, tag: &[u8]) -> Vec<u8> {
        let open = tag.strip_suffix(b"\"").unwrap_or(tag);
        [open, b"-", self.0.as_bytes(), b"\""].concat()
    }
}

/// The note of a response without an ETag of this server's own.
const NO_ETAG: &[u8] = b"no-etag";

impl VariantsTag {
    /// Returns the validator of a list with this ETag. If the request has one from a redirected
    /// request, that becomes a part of it.
    pub fn of(tag: &[u8], before: Option<&VariantsTag>) -> VariantsTag {
        let tag = before.map_or(Cow::Borrowed(tag), |list| with_variants(tag, list).into());
        let bare = tag.strip_prefix(b"W/").unwrap_or(&tag);
        let is_weak = bare.len() < tag.len();
        let bare = bare.strip_prefix(b"\"").unwrap_or(bare);
        // Apache drops the last letter, which is a quote only in the first list.
        let text = bare.split_last().map_or(&[][..], |(_, text)| text);
        VariantsTag { text: text.to_vec(), is_weak }
    }
}

/// The tag of a variant with that of its list, weak if one of them is. Apache omits the closing
/// quote, and clients rely on the tag as it is.
fn with_variants(tag: &[u8], list: &VariantsTag) -> Vec<u8> {
    let open = tag.strip_suffix(b"\"").unwrap_or(tag);
    let weak: &[u8] = if list.is_weak && !open.starts_with(b"W/") { b"W/" } else { b"" };
    [weak, open, b";", &list.text].concat()
}

/// The tag with that of the list of variants which led to the request, if one did.
pub fn with_list(request: &Request, tag: Vec<u8>) -> Vec<u8> {
    match request.kept::<VariantsTag>() {
        Some(list) => with_variants(&tag, list),
        None => tag,
    }
}

/// Asks that the response gets no ETag of this server's own (`no-etag`).
pub fn forbid(request: &mut Request) {
    request.notes.set(NO_ETAG, b"");
}

/// Sets the response's ETag, unless it is not wanted. If there is none, the response has none from
/// elsewhere either, such as from `Header`.
pub fn tell(request: &mut Request, tag: Option<Vec<u8>>) {
    match tag {
        Some(_) if request.notes.contains(NO_ETAG) => {}
        Some(tag) => request.response.headers_out.set(b"ETag", &tag),
        None => request.notes.set(NO_ETAG, b"omit"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variants_tag_names_its_list() {
        let list = VariantsTag::of(b"\"e0-2\"", None);
        assert_eq!(with_variants(b"\"7-1\"", &list), b"\"7-1;e0-2");
        let weak = VariantsTag::of(b"W/\"e0-2\"", None);
        let nested = VariantsTag::of(b"\"f3\"", Some(&list));
        assert_eq!(with_variants(b"\"7-1\"", &nested), b"\"7-1;f3;e0-");
        assert_eq!(with_variants(b"\"7-1\"", &weak), b"W/\"7-1;e0-2");
        assert_eq!(with_variants(b"W/\"7-1\"", &weak), b"W/\"7-1;e0-2");
    }

    #[test]
    fn a_coded_tag_names_the_coding() {
        assert_eq!(CodedTag("br").of(b"\"7-1\""), b"\"7-1-br\"");
        assert_eq!(CodedTag("gzip").of(b"W/\"7\""), b"W/\"7-gzip\"");
    }

    #[test]
    fn a_tag_names_its_parts_in_apaches_order() {
        let info = FileInfo { size: 0x2a, mtime_us: 0xabc, inode: 7, ..FileInfo::default() };
        let now = 10_000_000;
        assert_eq!(of_file(&info, EtagParts::DEFAULT, now), b"\"2a-abc\"");
        assert_eq!(of_file(&info, EtagParts::ALL, now), b"\"7-2a-abc\"");
        assert_eq!(of_file(&info, EtagParts::SIZE, 0xabc), b"W/\"2a\"");
        assert!(of_file(&info, EtagParts::NONE, now).is_empty());
    }
}
