//! Entity tags: creates them as `ap_make_etag` does, and compares them.

use crate::list::items;

/// The longest tag that [`of_numbers`] writes: three numbers of 16 digits in `W/""`.
pub const ETAG_BYTES: usize = 64;

/// A tag on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etag {
    bytes: [u8; ETAG_BYTES],
    len: u8,
}

impl Etag {
    /// The value of the `ETag` field; empty if there is no tag.
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

/// Formats numbers in hexadecimal, joined by hyphens (`ap_make_etag`). No numbers give no tag.
pub fn of_numbers(numbers: [Option<u64>; 3], is_weak: bool) -> Etag {
    let mut tag = Etag { bytes: [0; ETAG_BYTES], len: 0 };
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

/// Returns the strong tag of a digest of the content, which is base64 text (`FileETag Digest`).
pub fn from_digest(digest: &[u8]) -> Vec<u8> {
    [b"\"".as_slice(), digest, b"\""].concat()
}

/// Whether the list (the value of `If-Match`) contains the tag by strong comparison: equal, and
/// neither is weak (`ap_find_etag_strong`).
pub fn list_has_strong(list: &[u8], etag: &[u8]) -> bool {
    !etag.starts_with(b"W/") && items(list).any(|found| found == etag)
}

/// Whether the list (the value of `If-None-Match`) contains the tag by weak comparison: equal
/// without `W/` (`ap_find_etag_weak`).
pub fn list_has_weak(list: &[u8], etag: &[u8]) -> bool {
    items(list).any(|found| opaque(found) == opaque(etag))
}

/// The tag without its `W/` prefix.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Apache 2.4.71: a file of 100 bytes, modified on 2020-01-01, with the default FileETag.
    #[test]
    fn tags_are_apaches() {
        let (size, mtime_us) = (Some(100), Some(1_577_836_800_000_000));
        let tag = |numbers, is_weak| of_numbers(numbers, is_weak).as_bytes().to_vec();
        assert_eq!(tag([None, size, mtime_us], false), b"\"64-59b08c1fa4000\"");
        assert_eq!(tag([Some(0xabc), size, mtime_us], false), b"\"abc-64-59b08c1fa4000\"");
        assert_eq!(tag([None, None, None], true), b"");
        assert_eq!(tag([None, size, mtime_us], true), b"W/\"64-59b08c1fa4000\"");
        assert_eq!(tag([Some(u64::MAX); 3], true).len(), 3 + 16 * 3 + 2 + 1);
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
