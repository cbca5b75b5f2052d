//! Entity tags: making them as `ap_make_etag` does, and comparing them.

use crate::list::items;

/// `FileETag`: what of a file goes into its tag. Default: mtime and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtagParts {
    /// `INode`
    pub inode: bool,
    /// `MTime`
    pub mtime: bool,
    /// `Size`
    pub size: bool,
}

impl Default for EtagParts {
    fn default() -> Self {
        EtagParts { inode: false, mtime: true, size: true }
    }
}

/// What of a file its tag is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Inode number.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Modification time, microseconds since 1970.
    pub mtime_us: i64,
}

/// Longest tag that [`make`] writes: `W/"` three numbers of 16 digits `"`, and a variant's part.
pub const ETAG_BYTES: usize = 64;

/// A tag on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etag {
    bytes: [u8; ETAG_BYTES],
    len: u8,
}

impl Etag {
    /// The tag as it stands in the `ETag` field; empty when there is none.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) {
        let start = usize::from(self.len);
        if let Some(room) = self.bytes.get_mut(start..start + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len() as u8;
        }
    }

    fn push_hex(&mut self, value: u64) {
        let mut digits = [0; 16];
        let mut at = digits.len();
        let mut rest = value;
        loop {
            at -= 1;
            digits[at] = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
            if rest == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }
}

/// The tag of a file (`ap_make_etag`): the chosen numbers in hexadecimal, joined by hyphens.
///
/// It is weak while the file is younger than a second (`now_us` is the request's time), because
/// the file could change again without its mtime changing. Empty when nothing is chosen.
pub fn make(file: FileFacts, parts: EtagParts, now_us: i64) -> Etag {
    let is_weak = now_us.saturating_sub(file.mtime_us) <= 1_000_000;
    make_with_strength(file, parts, is_weak)
}

/// As [`make`], with the strength given.
pub fn make_with_strength(file: FileFacts, parts: EtagParts, is_weak: bool) -> Etag {
    let mut tag = Etag { bytes: [0; ETAG_BYTES], len: 0 };
    let numbers = [
        parts.inode.then_some(file.inode),
        parts.size.then_some(file.size),
        parts.mtime.then_some(file.mtime_us as u64),
    ];
    if numbers.iter().all(Option::is_none) {
        return tag;
    }
    tag.push(if is_weak { b"W/\"" } else { b"\"" });
    let mut separator: &[u8] = b"";
    for number in numbers.into_iter().flatten() {
        tag.push(separator);
        tag.push_hex(number);
        separator = b"-";
    }
    tag.push(b"\"");
    tag
}

/// The tag for a digest of the content (`FileETag Digest`); `digest` is base64 text. It is strong.
pub fn from_digest(digest: &[u8]) -> Vec<u8> {
    [b"\"".as_slice(), digest, b"\""].concat()
}

/// Whether the list (the value of `If-Match`) has the tag by strong comparison: equal, and
/// neither is weak (`ap_find_etag_strong`).
pub fn list_has_strong(list: &[u8], etag: &[u8]) -> bool {
    !etag.starts_with(b"W/") && items(list).any(|found| found == etag)
}

/// Whether the list (the value of `If-None-Match`) has the tag by weak comparison: equal without
/// their `W/` (`ap_find_etag_weak`).
pub fn list_has_weak(list: &[u8], etag: &[u8]) -> bool {
    items(list).any(|found| opaque(found) == opaque(etag))
}

/// A tag without its weakness.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Apache 2.4.71: a file of 100 bytes, mtime 2020-01-01, default FileETag.
    #[test]
    fn tags_are_apaches() {
        let file = FileFacts { inode: 0xabc, size: 100, mtime_us: 1_577_836_800_000_000 };
        let all = EtagParts { inode: true, mtime: true, size: true };
        let none = EtagParts { inode: false, mtime: false, size: false };
        let now = file.mtime_us + 5_000_000;
        assert_eq!(make(file, EtagParts::default(), now).as_bytes(), b"\"64-59b08c1fa4000\"");
        assert_eq!(make(file, all, now).as_bytes(), b"\"abc-64-59b08c1fa4000\"");
        assert_eq!(make(file, none, now).as_bytes(), b"");
        let young = make(file, EtagParts::default(), file.mtime_us + 1_000_000);
        assert_eq!(young.as_bytes(), b"W/\"64-59b08c1fa4000\"");
        let widest = FileFacts { inode: u64::MAX, size: u64::MAX, mtime_us: -1 };
        assert_eq!(make(widest, all, -1).as_bytes().len(), 3 + 16 * 3 + 2 + 1);
    }

    #[test]
    fn comparison_of_lists() {
        assert!(list_has_strong(b"\"a\", \"b\"", b"\"b\""));
        assert!(!list_has_strong(b"W/\"b\"", b"W/\"b\""));
        assert!(!list_has_strong(b"W/\"b\"", b"\"b\""));
        assert!(list_has_weak(b"W/\"b\"", b"\"b\""));
        assert!(list_has_weak(b",, \"b\" ,", b"W/\"b\""));
        assert!(list_has_weak(b"\"x,y\", \"b\"", b"\"x,y\""));
        assert!(!list_has_weak(b"b", b"\"b\""));
        assert!(!list_has_weak(b"", b"\"b\""));
    }
}
