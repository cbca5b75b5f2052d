//! Percent-decoding, with Apache's results (`ap_unescape_url` and its variants).

use bstr::ByteSlice;

use super::normalize::{Normalize, normalize_path};
use crate::chars::hex_value;

/// The treatment of an encoded slash (`AllowEncodedSlashes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slashes {
    /// `Off`, the default: a path with `%2F` is a 404.
    Forbid,
    /// `On`: `%2F` becomes a slash.
    Decode,
    /// `NoDecode`: `%2F` stays encoded.
    Keep,
}

/// Why a path can't be unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnescapeError {
    /// `%` without two hexadecimal digits: 400.
    #[error("invalid percent escape")]
    Bad,
    /// `%00`, or `%2F` where it is forbidden: 404.
    #[error("encoded slash or NUL in path")]
    NotFound,
}

impl UnescapeError {
    /// The status of Apache's response.
    pub const fn status(self) -> u16 {
        match self {
            UnescapeError::Bad => 400,
            UnescapeError::NotFound => 404,
        }
    }
}

/// Unescapes a path in place (`ap_unescape_url`, `ap_unescape_url_keep2f`).
///
/// The whole path is decoded even if it is refused; a malformed escape takes precedence over a
/// forbidden one.
pub fn unescape_url(path: &mut Vec<u8>, slashes: Slashes) -> Result<(), UnescapeError> {
    let Some(first) = path.find_byte(b'%') else { return Ok(()) };
    let (mut read, mut write) = (first, first);
    let mut outcome = Ok(());
    while let Some(rest) = path.get(read..).filter(|rest| !rest.is_empty()) {
        let plain = rest.find_byte(b'%').unwrap_or(rest.len());
        if plain > 0 {
            path.copy_within(read..read + plain, write);
            read += plain;
            write += plain;
            continue;
        }
        let (decoded, taken) = decode_one(path, read, slashes, &mut outcome);
        match decoded {
            Some(byte) => {
                path[write] = byte;
                write += 1;
            }
            None => {
                path.copy_within(read..read + taken, write);
                write += taken;
            }
        }
        read += taken;
    }
    path.truncate(write);
    outcome
}

/// Unescapes the path of a request after [`normalize_path`] (`ap_process_request_internal`), and
/// resolves dot segments that decoded slashes expose: `/..%2f` must not become `/../`. Unlike in
/// normalisation, `..` at the root stays at the root.
pub fn unescape_path(
    path: &mut Vec<u8>,
    slashes: Slashes,
    merge_slashes: bool,
) -> Result<(), UnescapeError> {
    unescape_url(path, slashes)?;
    if slashes == Slashes::Decode {
        normalize_path(path, Normalize { merge_slashes, ..Normalize::default() });
    }
    Ok(())
}

/// Returns the byte for the escape at `at` and the escape's length; `None` leaves the bytes as they
/// are.
fn decode_one(
    path: &[u8],
    at: usize,
    slashes: Slashes,
    outcome: &mut Result<(), UnescapeError>,
) -> (Option<u8>, usize) {
    let Some(byte) = escaped_byte(path, at) else {
        *outcome = Err(UnescapeError::Bad);
        return (None, 1);
    };
    if byte == 0 || (byte == b'/' && slashes == Slashes::Forbid) {
        if outcome.is_ok() {
            *outcome = Err(UnescapeError::NotFound);
        }
        return (Some(byte), 3);
    }
    if byte == b'/' && slashes == Slashes::Keep {
        return (None, 3);
    }
    (Some(byte), 3)
}

/// The byte that the escape at `at` encodes.
pub(super) fn escaped_byte(path: &[u8], at: usize) -> Option<u8> {
    let high = hex_value(*path.get(at + 1)?)?;
    let low = hex_value(*path.get(at + 2)?)?;
    Some(high << 4 | low)
}

/// Unescapes form data in place: `+` is a space (`ap_unescape_urlencoded`).
pub fn unescape_query(query: &mut Vec<u8>) -> Result<(), UnescapeError> {
    for byte in query.iter_mut().filter(|byte| **byte == b'+') {
        *byte = b' ';
    }
    unescape_url(query, Slashes::Decode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescape(path: &str, slashes: Slashes) -> Result<String, UnescapeError> {
        let mut bytes = path.as_bytes().to_vec();
        unescape_url(&mut bytes, slashes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    // Apache 2.4.71: `/%`, `/%zz`, `/a%2` are 400; `/%00`, `/%2f` are 404. AllowEncodedSlashes On
    // finds the latter.
    #[test]
    fn statuses_of_bad_escapes() {
        for path in ["/%", "/%zz", "/a%2", "/%2f%"] {
            assert_eq!(unescape(path, Slashes::Forbid), Err(UnescapeError::Bad), "{path}");
        }
        for path in ["/%00", "/%2f", "/a.txt%00"] {
            assert_eq!(unescape(path, Slashes::Forbid), Err(UnescapeError::NotFound), "{path}");
        }
        assert_eq!(unescape("/%00", Slashes::Decode), Err(UnescapeError::NotFound));
    }

    // Apache 2.4.71 with AllowEncodedSlashes On: the PATH_INFO of a CGI; 404 for the last.
    #[test]
    fn decoded_slashes_never_climb() {
        for (path, result) in [
            ("/x%2f..%2fy", "/y"),
            ("/x%2f%2fy", "/x/y"),
            ("/a%2f..%252fb", "/a/..%2fb"),
            ("/%252e%252e/x", "/%2e%2e/x"),
            ("/..%2f..%2f..%2fetc/passwd", "/etc/passwd"),
        ] {
            let mut bytes = path.as_bytes().to_vec();
            assert!(normalize_path(&mut bytes, Normalize::request(true)));
            unescape_path(&mut bytes, Slashes::Decode, true).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes), result, "{path}");
        }
    }

    #[test]
    fn slashes_are_kept_or_decoded() {
        assert_eq!(unescape("/a%2Fb%20c", Slashes::Decode).unwrap(), "/a/b c");
        assert_eq!(unescape("/a%2Fb%20c", Slashes::Keep).unwrap(), "/a%2Fb c");
        let mut form = b"a+b%2Bc".to_vec();
        unescape_query(&mut form).unwrap();
        assert_eq!(form, b"a b+c");
    }
}
