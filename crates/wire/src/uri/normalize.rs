//! Normalises dots and slashes of a path (`ap_normalize_path`, `ap_getparents`, `ap_no2slash`).

use super::unescape::escaped_byte;

/// What [`normalize_path`] does besides resolving `.` and `..` segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normalize {
    /// Allow a path that does not begin with a slash (`ALLOW_RELATIVE`).
    pub allow_relative: bool,
    /// Refuse `..` above the root (`NOT_ABOVE_ROOT`); otherwise it stays at the root.
    pub not_above_root: bool,
    /// Decode escapes of unreserved characters (`DECODE_UNRESERVED`).
    pub decode_unreserved: bool,
    /// Merge runs of slashes (`MERGE_SLASHES`).
    pub merge_slashes: bool,
    /// Drop `;parameters` of segments (`DROP_PARAMETERS`).
    pub drop_parameters: bool,
}

impl Normalize {
    /// The normalisation that Apache applies to every request's path first
    /// (`ap_process_request_internal`), with `MergeSlashes` as configured.
    pub const fn request(merge_slashes: bool) -> Self {
        Normalize {
            allow_relative: false,
            not_above_root: true,
            decode_unreserved: true,
            merge_slashes,
            drop_parameters: false,
        }
    }
}

/// Normalises a path in place. Returns false if the path is refused (400): it does not begin with a
/// slash, climbs above the root, or has a malformed escape while escapes are decoded.
pub fn normalize_path(path: &mut Vec<u8>, how: Normalize) -> bool {
    if path.first() != Some(&b'/') {
        if path == b"*" {
            return true;
        }
        if !how.allow_relative && !path.is_empty() {
            return false;
        }
    }
    let Some(first) = first_change(path, how) else {
        return !path.is_empty() || how.allow_relative;
    };
    let mut ok = true;
    let (mut read, mut write) = (first, first);
    while let Some(mut byte) = path.get(read).copied() {
        // A segment begins at `read` if the output so far ends in a slash.
        let begins_segment = write == 0 || path[write - 1] == b'/';
        let dots = if begins_segment { skip_dot_segment(path, read, how) } else { None };
        if let Some(dots) = dots {
            if dots.is_parent {
                ok &= climb(path, &mut write, how);
            }
            read = dots.next;
            continue;
        }
        if byte == b'%' && how.decode_unreserved {
            match escaped_byte(path, read) {
                Some(plain) if is_unreserved(plain) => {
                    byte = plain;
                    read += 2;
                }
                Some(_) => {}
                None => ok = false,
            }
        }
        if byte == b';' && how.drop_parameters {
            read += path[read..].iter().position(|b| *b == b'/').unwrap_or(path.len() - read);
            continue;
        }
        if byte == b'/' && how.merge_slashes && write > 0 && path[write - 1] == b'/' {
            read += 1;
            continue;
        }
        path[write] = byte;
        write += 1;
        read += 1;
    }
    path.truncate(write);
    ok
}

/// Position of the first byte that does not stay as it is.
fn first_change(path: &[u8], how: Normalize) -> Option<usize> {
    for (at, byte) in path.iter().enumerate() {
        if !MAY_CHANGE[usize::from(*byte)] {
            continue;
        }
        let begins_segment = || at.checked_sub(1).is_none_or(|at| path.get(at) == Some(&b'/'));
        let changes = match byte {
            b'/' => how.merge_slashes && at > 0 && begins_segment(),
            b'.' => begins_segment() && skip_dot_segment(path, at, how).is_some(),
            b'%' => how.decode_unreserved && escaped_byte(path, at).is_none_or(is_unreserved),
            _ => how.drop_parameters,
        };
        if changes {
            return Some(at);
        }
    }
    None
}

/// The bytes that may not stay as they are.
static MAY_CHANGE: [bool; 256] = {
    let mut table = [false; 256];
    let mut bytes = b"/.%;".as_slice();
    while let [byte, rest @ ..] = bytes {
        table[*byte as usize] = true;
        bytes = rest;
    }
    table
};

struct DotSegment {
    next: usize,
    is_parent: bool,
}

/// Recognises `.` or `..` as a whole segment at `at`; `next` is the position after its slash.
fn skip_dot_segment(path: &[u8], at: usize, how: Normalize) -> Option<DotSegment> {
    let after_one = dot(path, at, how)?;
    if let Some(next) = segment_end(path, after_one, how) {
        return Some(DotSegment { next, is_parent: false });
    }
    let after_two = dot(path, after_one, how)?;
    let next = segment_end(path, after_two, how)?;
    Some(DotSegment { next, is_parent: true })
}

/// The position after a dot, which may be escaped if escapes are decoded.
fn dot(path: &[u8], at: usize, how: Normalize) -> Option<usize> {
    match path.get(at)? {
        b'.' => Some(at + 1),
        b'%' if how.decode_unreserved && escaped_byte(path, at) == Some(b'.') => Some(at + 3),
        _ => None,
    }
}

/// The position after the segment's end, if it ends here.
fn segment_end(path: &[u8], at: usize, how: Normalize) -> Option<usize> {
    match path.get(at) {
        None => Some(at),
        Some(b'/') => Some(at + 1),
        Some(b';') if how.drop_parameters => {
            let rest = path.get(at..)?;
            Some(rest.iter().position(|byte| *byte == b'/').map_or(path.len(), |len| at + len + 1))
        }
        Some(_) => None,
    }
}

/// Removes the last segment from the output. Returns false if there is none and that is refused.
fn climb(path: &[u8], write: &mut usize, how: Normalize) -> bool {
    if *write <= 1 {
        return !how.not_above_root;
    }
    let before = path.get(..*write - 1).unwrap_or_default();
    *write = before.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    true
}

/// RFC 3986 section 2.3.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Resolves `.` and `..` without leaving the root (`ap_getparents`).
pub fn resolve_dots(path: &mut Vec<u8>) {
    normalize_path(path, Normalize { allow_relative: true, ..Normalize::default() });
}

/// Merges runs of slashes (`ap_no2slash`).
pub fn no_double_slashes(path: &mut Vec<u8>) {
    path.dedup_by(|next, before| *next == b'/' && *before == b'/');
}

/// The number of slashes in a path (`ap_count_dirs`).
pub fn directory_slashes(path: &[u8]) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalize(path: &str) -> Option<String> {
        let mut bytes = path.as_bytes().to_vec();
        normalize_path(&mut bytes, Normalize::request(true))
            .then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    // Apache 2.4.71 refuses these with 400 (AH10244).
    #[test]
    fn above_the_root_is_refused() {
        for path in ["/../", "/%2e%2e/", "/.%2e/a.txt", "/..", "/a/../../b", "foo", "/%zz"] {
            assert_eq!(normalize(path), None, "{path}");
        }
    }

    // Apache 2.4.71: PATH_INFO of /cgi/echo//a//b/./c/../d is /a/b/d.
    #[test]
    fn segments_are_resolved() {
        for (path, result) in [
            ("/cgi/echo//a//b/./c/../d", "/cgi/echo/a/b/d"),
            ("/./a.txt", "/a.txt"),
            ("/.", "/"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/%61.txt", "/a.txt"),
            ("/a%2fb%20", "/a%2fb%20"),
            ("/..a/.b/c./...", "/..a/.b/c./..."),
            ("/a;p/b", "/a;p/b"),
            ("//", "/"),
            ("*", "*"),
        ] {
            assert_eq!(normalize(path).as_deref(), Some(result), "{path}");
        }
    }

    #[test]
    fn options_of_normalisation() {
        let mut path = b"/a;p=1/..;q/b;r".to_vec();
        let how = Normalize { drop_parameters: true, ..Normalize::default() };
        assert!(normalize_path(&mut path, how));
        assert_eq!(path, b"/b");
        let mut path = b"/../a//b".to_vec();
        resolve_dots(&mut path);
        assert_eq!(path, b"/a//b");
        no_double_slashes(&mut path);
        assert_eq!(path, b"/a/b");
    }
}
