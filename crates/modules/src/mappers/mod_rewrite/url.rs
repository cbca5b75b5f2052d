//! The result of a rule: a URL of another server, or a path of this one.
//!
//! Source: `is_absolute_uri`, `escape_absolute_uri`, `reduce_uri`, `fully_qualify_uri`,
//! `subst_prefix_path`.

use conf::values::VirtualHostAddress;
use server::request::Request;
use server::variant_key::Inputs;
use server::vhost;
use wire::Method;

use crate::atoi::atoi;

/// The known schemes with their separators, and whether their URLs have a query.
const SCHEMES: [(&str, bool); 17] = [
    ("ajp://", true),
    ("balancer://", true),
    ("fcgi://", true),
    ("ftp://", false),
    ("gopher://", false),
    ("h2://", true),
    ("h2c://", true),
    ("http://", true),
    ("https://", true),
    ("ldap://", false),
    ("mailto:", true),
    ("news:", false),
    ("nntp://", false),
    ("scgi://", true),
    ("unix:", true),
    ("ws://", true),
    ("wss://", true),
];

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    /// The length, including the separator.
    pub length: usize,
    /// Whether its URLs have a query.
    pub has_query: bool,
}

/// The known scheme at the start of a text. A text of five bytes has none.
pub(super) fn scheme(text: &[u8]) -> Option<Scheme> {
    if text.first() == Some(&b'/') || text.len() <= 5 {
        return None;
    }
    let begins = |name: &str| {
        text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    let (name, has_query) = SCHEMES.iter().find(|(name, _)| begins(name))?;
    Some(Scheme { length: name.len(), has_query: *has_query })
}

/// Escapes the path of a URL; of an `ldap` URL each part separately.
pub(super) fn escape(url: &[u8], scheme: Scheme) -> Vec<u8> {
    let mut start = scheme.length;
    let has_authority = url.get(start.wrapping_sub(1)) == Some(&b'/');
    if has_authority {
        let rest = url.get(start..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == b'/') {
            Some(slash) if slash + 1 < rest.len() => start += slash + 1,
            _ => return url.to_vec(),
        }
    }
    let (head, path) = url.split_at_checked(start).unwrap_or((url, b""));
    let mut out = head.to_vec();
    let is_ldap = url.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"ldap"));
    if has_authority && is_ldap {
        for (number, part) in path.splitn(5, |byte| *byte == b'?').enumerate() {
            if number > 0 {
                out.push(b'?');
            }
            wire::escape::path(&mut out, part);
        }
    } else {
        wire::escape::path(&mut out, path);
    }
    out
}

/// The path of a URL to the request's own host.
pub(super) fn own_path(request: &Request, url: &[u8]) -> Option<Vec<u8>> {
    scheme(url)?;
    let own_scheme = request.scheme().as_bytes();
    let (start, rest) = url.split_at_checked(own_scheme.len())?;
    // Of a host with both, it depends on the connection.
    request.looks_at(Inputs::AUTHORITY);
    let rest = rest.strip_prefix(b"://").filter(|_| start.eq_ignore_ascii_case(own_scheme))?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b':')).unwrap_or(rest.len());
    let (host, rest) = rest.split_at_checked(end)?;
    let (port, path) = match rest.strip_prefix(b":") {
        Some(rest) => {
            let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let (port, path) = rest.split_at_checked(end)?;
            // Like Apache's `port = atoi(…)`, which is 16 bits wide.
            ((atoi(port) & 0xffff) as u16, path)
        }
        None => (request.default_port(), rest),
    };
    let path = if path.is_empty() { &b"/"[..] } else { path };
    is_own(request, host, port).then(|| path.to_vec())
}

/// Whether a name and port are those of the request's host (`ap_matches_request_vhost`).
pub(crate) fn is_own(request: &Request, name: &[u8], port: u16) -> bool {
    let host = &request.host;
    let of_address = host.addresses.iter().any(|arg| {
        let text = arg.text.as_slice();
        let (own, own_port) = match VirtualHostAddress::parse(text) {
            Ok(parsed) => match parsed.port {
                Some(_) => {
                    let colon = text.iter().rposition(|byte| *byte == b':').unwrap_or(text.len());
                    (text.get(..colon).unwrap_or_default(), parsed.port)
                }
                None => (text, None),
            },
            Err(_) => return false,
        };
        own_port.is_none_or(|own| own == port) && own.eq_ignore_ascii_case(name)
    });
    of_address || (host.identity.port == port && vhost::has_name(host, name))
}

/// A full URL of this server for a path.
pub(super) fn qualify(request: &Request, target: Vec<u8>) -> Vec<u8> {
    if request.head.method == Method::CONNECT || scheme(&target).is_some() {
        return target;
    }
    let path = if target.first() == Some(&b'/') { target } else { [b"/", &target[..]].concat() };
    request.construct_url(&path)
}

/// Moves `path` from below `prefix` to below `base`: returns the text without the prefix, and the
/// whole (`subst_prefix_path`).
pub(super) fn rebase<'p>(
    path: &'p [u8],
    prefix: &[u8],
    base: &[u8],
) -> Option<(&'p [u8], Vec<u8>)> {
    let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
    let rest = path.strip_prefix(prefix)?.strip_prefix(b"/")?;
    let slash: &[u8] = if matches!(base.last(), None | Some(b'/')) { b"" } else { b"/" };
    Some((rest, [base, slash, rest].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_those_of_a_list() {
        let known =
            |text: &str| scheme(text.as_bytes()).map(|found| (found.length, found.has_query));
        assert_eq!(known("http://h"), Some((7, true)));
        assert_eq!(known("HTTPS://h"), Some((8, true)));
        assert_eq!(known("ftp://h"), Some((6, false)));
        assert_eq!(known("wss://h"), Some((6, true)));
        assert_eq!(known("news:x"), Some((5, false)));
        for none in ["foo://h/y", "http:/h", "/http://h", "ws://", "", "uwsgi://h"] {
            assert_eq!(known(none), None, "{none}");
        }
    }

    #[test]
    fn the_path_of_a_url_is_escaped() {
        let escaped = |url: &str| {
            let scheme = scheme(url.as_bytes()).unwrap();
            String::from_utf8(escape(url.as_bytes(), scheme)).unwrap()
        };
        assert_eq!(escaped("http://a b/c d?e"), "http://a b/c%20d%3fe");
        assert_eq!(escaped("http://a b"), "http://a b");
        assert_eq!(escaped("http://h/"), "http://h/");
        assert_eq!(escaped("mailto:a b"), "mailto:a%20b");
        assert_eq!(escaped("ldap://h/a?b?c?d e?f?g"), "ldap://h/a?b?c?d%20e?f%3fg");
    }

    #[test]
    fn a_prefix_is_replaced_by_whole_segments() {
        let whole =
            |path: &[u8], prefix: &[u8], base: &[u8]| rebase(path, prefix, base).map(|x| x.1);
        assert_eq!(whole(b"/a/b/c", b"/a/b/", b"/x").as_deref(), Some(&b"/x/c"[..]));
        assert_eq!(whole(b"/a/b/c", b"/a/b", b"/x/").as_deref(), Some(&b"/x/c"[..]));
        assert_eq!(whole(b"/a/bc", b"/a/b", b"/x"), None);
        assert_eq!(whole(b"/a/b/c", b"/a/b/", b"").as_deref(), Some(&b"c"[..]));
    }

    proptest::proptest! {
        #[test]
        fn any_text_may_be_a_url(text: Vec<u8>) {
            if let Some(found) = scheme(&text) {
                proptest::prop_assert!(escape(&text, found).len() >= text.len());
            }
        }
    }
}
