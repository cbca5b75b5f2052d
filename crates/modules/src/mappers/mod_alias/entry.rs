//! An `Alias` or `Redirect`: what it matches, and the result.

use conf::Span;
use pcre::{Captures, Later, MAX_SUBSTITUTION_BYTES, Matched, Regex, TooLong, substitute};
use server::request::Request;

/// What a path is matched with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// A path and everything below it.
    Prefix(Vec<u8>),
    /// A regular expression.
    Regex(Regex),
}

/// `Alias` and its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alias {
    /// Its position.
    pub span: Span,
    /// The paths it applies to.
    pub from: Pattern,
    /// The file or folder; for a regular expression with `$1` and so on.
    pub target: Vec<u8>,
    /// The handler to set.
    pub handler: Option<&'static str>,
}

/// `Redirect` and its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Its position.
    pub span: Span,
    /// The paths it applies to.
    pub from: Pattern,
    /// The URL or path; `None` for a status without a target.
    pub target: Option<Vec<u8>>,
    /// The status.
    pub status: u16,
}

/// Why the result for a path is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The result would be too long.
    TooLong,
    /// The match is undecided.
    Undecided,
    /// The match has to be made first.
    Later,
}

impl From<TooLong> for Unknown {
    fn from(_: TooLong) -> Unknown {
        Unknown::TooLong
    }
}

impl From<Later> for Unknown {
    fn from(_: Later) -> Unknown {
        Unknown::Later
    }
}

impl Alias {
    /// The file for a request's path; `None` if the alias does not apply.
    pub fn apply(&self, request: &Request) -> Result<Option<Vec<u8>>, Unknown> {
        let uri = request.resource.uri.as_slice();
        match &self.from {
            Pattern::Prefix(prefix) => Ok(prefix_length(uri, prefix).map(|length| {
                let rest = uri.get(length..).unwrap_or_default();
                [&self.target, rest].concat()
            })),
            Pattern::Regex(regex) => fill(request, regex, &self.target),
        }
    }
}

impl Redirect {
    /// The URL for a request's path, empty for a status without one; `None` if the redirect does
    /// not apply.
    pub fn apply(&self, request: &Request) -> Result<Option<Vec<u8>>, Unknown> {
        let uri = request.resource.uri.as_slice();
        let target = self.target.as_deref().unwrap_or_default();
        match &self.from {
            Pattern::Prefix(prefix) => Ok(prefix_length(uri, prefix).map(|length| {
                let mut found = target.to_vec();
                wire::escape::path(&mut found, uri.get(length..).unwrap_or_default());
                found
            })),
            Pattern::Regex(regex) => {
                Ok(fill(request, regex, target)?.map(|found| escape_target(&found)))
            }
        }
    }
}

fn fill(request: &Request, regex: &Regex, template: &[u8]) -> Result<Option<Vec<u8>>, Unknown> {
    let mut captures = Captures::new();
    match request.matches(regex, &request.resource.uri, Some(&mut captures))? {
        Matched::Yes => {}
        Matched::No => return Ok(None),
        Matched::Undecided(_) => return Err(Unknown::Undecided),
    }
    let mut found = Vec::new();
    substitute(template, &request.resource.uri, &captures, MAX_SUBSTITUTION_BYTES, &mut found)?;
    Ok(Some(found))
}

/// The number of bytes of `uri` that the prefix matches. A run of slashes matches a run of slashes,
/// and the last segment must match as a whole (`alias_matches`).
pub(crate) fn prefix_length(uri: &[u8], prefix: &[u8]) -> Option<usize> {
    let run = |text: &[u8]| text.iter().take_while(|byte| **byte == b'/').count();
    let (mut at, mut rest) = (0, prefix);
    while let Some((first, after)) = rest.split_first() {
        let here = uri.get(at..).unwrap_or_default();
        if here.first() != Some(first) {
            return None;
        }
        if *first == b'/' {
            at += run(here);
            rest = rest.get(run(rest)..).unwrap_or_default();
        } else {
            at += 1;
            rest = after;
        }
    }
    let is_whole = prefix.last() == Some(&b'/') || matches!(uri.get(at), None | Some(b'/'));
    (at > 0 && is_whole).then_some(at)
}

/// Escapes a URL, except its query and fragment.
pub(super) fn escape_target(target: &[u8]) -> Vec<u8> {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let mut escaped = Vec::with_capacity(target.len());
    wire::escape::path(&mut escaped, path);
    escaped.extend_from_slice(rest);
    escaped
}

/// Whether a text begins with a scheme and two slashes (`ap_is_url`).
pub(super) fn is_url(text: &[u8]) -> bool {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = text.iter().position(|byte| !is_scheme(byte)).unwrap_or(text.len());
    end > 0 && text.get(end..).is_some_and(|rest| rest.starts_with(b"://"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_takes_whole_segments() {
        assert_eq!(prefix_length(b"/one/a", b"/one"), Some(4));
        assert_eq!(prefix_length(b"/one", b"/one"), Some(4));
        assert_eq!(prefix_length(b"/onemore", b"/one"), None);
        assert_eq!(prefix_length(b"/two", b"/two/"), None);
        assert_eq!(prefix_length(b"/two/x", b"/two/"), Some(5));
        assert_eq!(prefix_length(b"//one///a", b"/one/"), Some(8));
        assert_eq!(prefix_length(b"/a", b""), None);
    }

    #[test]
    fn query_and_fragment_are_not_escaped() {
        assert_eq!(escape_target(b"http://h/a b?x=a b"), b"http://h/a%20b?x=a b");
        assert_eq!(escape_target(b"/a\r\nb#c d"), b"/a%0d%0ab#c d");
        assert_eq!(escape_target(b""), b"");
    }

    #[test]
    fn urls_have_a_scheme() {
        assert!(is_url(b"http://x"));
        assert!(is_url(b"git+ssh://x"));
        assert!(!is_url(b"://x"));
        assert!(!is_url(b"/a://x"));
        assert!(!is_url(b"http:/x"));
    }

    proptest! {
        #[test]
        fn what_a_prefix_takes_lies_within_the_path(uri: Vec<u8>, prefix: Vec<u8>) {
            if let Some(length) = prefix_length(&uri, &prefix) {
                prop_assert!(length <= uri.len());
            }
        }

        #[test]
        fn a_path_below_a_prefix_matches(prefix in "(/[a-z]{1,3}){1,3}", rest in "(/[a-z]*)?") {
            let uri = format!("{prefix}{rest}");
            prop_assert_eq!(prefix_length(uri.as_bytes(), prefix.as_bytes()), Some(prefix.len()));
        }
    }
}
