//! Whether the path of a mapping is the beginning of a request's.
//!
//! Source: `alias_match`, `alias_match_servlet` (mod_proxy.c).

/// The number of bytes of `uri` that `prefix` matches: whole segments, in which a run of slashes
/// matches a run of slashes. `None` if it doesn't match.
pub(super) fn prefix_length(uri: &[u8], prefix: &[u8]) -> Option<usize> {
    let slashes = |text: &[u8]| text.iter().take_while(|byte| **byte == b'/').count();
    let ends_in_slash = prefix.last() == Some(&b'/');
    let (mut at, mut rest) = (0, prefix);
    if let Some(after) = uri.strip_prefix(prefix) {
        // Only its last run of slashes may be longer.
        at = prefix.len() + if ends_in_slash { slashes(after) } else { 0 };
        rest = &[];
    }
    while let Some((first, after)) = rest.split_first() {
        let left = uri.get(at..).unwrap_or_default();
        if left.first() != Some(first) {
            return None;
        }
        if *first == b'/' {
            at += slashes(left);
            rest = rest.get(slashes(rest)..).unwrap_or_default();
        } else {
            at += 1;
            rest = after;
        }
    }
    let is_whole = ends_in_slash || matches!(uri.get(at), None | Some(b'/'));
    (is_whole && at > 0).then_some(at)
}

/// A segment of a path, as `mapping=servlet` sees it.
#[derive(Clone, Debug)]
struct Segment<'u> {
    /// Its name, without parameters.
    name: Vec<u8>,
    /// Where it begins in the path as sent.
    start: usize,
    /// Where its name ends in the path as sent.
    end: usize,
    /// Whether a slash follows.
    has_slash: bool,
    /// The whole path as sent.
    uri: &'u [u8],
}

/// The outcome of a comparison without the parameters of segments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Servlet {
    /// The path without parameters and dot segments.
    pub path: Vec<u8>,
    /// Where the rest of the path as sent begins.
    pub length: usize,
}

/// Compares as a servlet container would: parameters (`;name=value`) of segments are left out, then
/// dot segments are resolved. The rest is as sent; if `prefix` has no slash at its end, it begins
/// with the parameters of the segment that matches the last one of `prefix`.
pub(super) fn servlet(uri: &[u8], prefix: &[u8]) -> Option<Servlet> {
    if uri.first() != Some(&b'/') || prefix.first() != Some(&b'/') {
        return None;
    }
    let segments = segments(uri)?;
    let names: Vec<&[u8]> =
        prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    let is_same = |(segment, name): (&Segment<'_>, &&[u8])| segment.name == *name;
    if segments.len() < names.len() || !segments.iter().zip(&names).all(is_same) {
        return None;
    }
    let last = names.len().checked_sub(1).and_then(|last| segments.get(last));
    let ends_in_slash = prefix.last() == Some(&b'/');
    if ends_in_slash && last.is_some_and(|last| !last.has_slash) {
        return None;
    }
    let has_parameters =
        |last: &&Segment<'_>| !ends_in_slash && last.uri.get(last.end) == Some(&b';');
    let length = match (last.filter(has_parameters), segments.get(names.len())) {
        (Some(last), Some(_)) => last.end,
        (None, Some(next)) => next.start,
        // The parameters of the last segment of the path itself are dropped.
        (_, None) => uri.len(),
    };
    let before = length.checked_sub(1).and_then(|before| uri.get(before));
    let takes_slash = !ends_in_slash && before == Some(&b'/');
    let mut path = Vec::with_capacity(uri.len());
    path.push(b'/');
    for segment in &segments {
        path.extend_from_slice(&segment.name);
        path.extend_from_slice(if segment.has_slash { b"/" } else { b"" });
    }
    Some(Servlet { path, length: if takes_slash { length - 1 } else { length } })
}

/// The segments of a path; `None` if it leads above the root.
fn segments(uri: &[u8]) -> Option<Vec<Segment<'_>>> {
    let mut found: Vec<Segment<'_>> = Vec::new();
    let (mut start, mut first) = (1, Some(1));
    while start < uri.len() {
        let rest = uri.get(start..)?;
        let length = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let whole = rest.get(..length)?;
        let has_slash = length < rest.len();
        let bare = whole.iter().position(|byte| *byte == b';').unwrap_or(length);
        let name = whole.get(..bare)?;
        match name {
            b"" | b"." => {}
            b".." => {
                found.pop()?;
                first = None;
            }
            _ => {
                // Dots before it count as part of it, unless they led back.
                let slashes = |at: &usize| uri.get(*at) == Some(&b'/');
                let begin = first.map_or(start, |at| at + (at..start).take_while(slashes).count());
                let (name, end) = (name.to_vec(), start + bare);
                found.push(Segment { name, start: begin, end, has_slash, uri });
                first = Some(start + length + 1);
            }
        }
        start += length + 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_matches_whole_segments() {
        let length = |uri: &str, prefix: &str| prefix_length(uri.as_bytes(), prefix.as_bytes());
        assert_eq!(length("/a/b", "/a"), Some(2));
        assert_eq!(length("/a//b", "/a/"), Some(4));
        assert_eq!(length("/a", "/a"), Some(2));
        assert_eq!(length("/", "/"), Some(1));
        assert_eq!(length("/a", "/a/"), None);
        assert_eq!(length("/ab", "/a"), None);
        assert_eq!(length("/", "/examples"), None);
        assert_eq!(length("/a", ""), None);
    }

    #[test]
    fn a_servlet_sees_no_parameters() {
        let is = |uri: &str, prefix: &str| {
            servlet(uri.as_bytes(), prefix.as_bytes())
                .map(|found| (String::from_utf8(found.path).unwrap(), found.length))
        };
        let to = |path: &str, length| Some((path.to_owned(), length));
        assert_eq!(is("/a;x=1/b", "/a/"), to("/a/b", 7));
        assert_eq!(is("/a;x=1/b", "/a"), to("/a/b", 2));
        assert_eq!(is("/a/b;y", "/a/b"), to("/a/b", 6));
        assert_eq!(is("/a/..;/b", "/b"), to("/b", 8));
        assert_eq!(is("/..;/b", "/"), None);
        assert_eq!(is("/x;/b", "/a"), None);
        assert_eq!(is("/a/b", "/a"), to("/a/b", 2));
    }
}
