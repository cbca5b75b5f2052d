//! Splits the request target and other URIs into their parts (`apr_uri_parse`).

use crate::chars::decimal;

/// The parts of a URI, as slices of it. An absent part is `None`, unlike an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The part before the first `:`, as received.
    pub scheme: Option<&'a [u8]>,
    /// The part before the last `@` of the authority.
    pub user_info: Option<&'a [u8]>,
    /// The host, without the brackets of an IPv6 literal.
    pub host: Option<&'a [u8]>,
    /// Whether the host was in brackets.
    pub host_is_literal: bool,
    /// The part after the `:` of the authority; may be empty.
    pub port: Option<&'a [u8]>,
    /// The path; `None` if it is empty.
    pub path: Option<&'a [u8]>,
    /// The part after the first `?`.
    pub query: Option<&'a [u8]>,
    /// The part after the first `#`.
    pub fragment: Option<&'a [u8]>,
}

/// The URI can't be split: a bracket is unclosed, something other than a
/// port follows it, the port is not a number, or what precedes a colon is no scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unable to parse URI")]
pub struct TargetError;

impl<'a> Target<'a> {
    /// Splits the target of a request (`ap_parse_uri`): the target of `CONNECT` is `host:port`, and
    /// leading slashes are one slash, never an authority.
    pub fn of_request(target: &'a [u8], is_connect: bool) -> Result<Self, TargetError> {
        let mut rest = target;
        while let Some(shorter @ [b'/', ..]) = rest.strip_prefix(b"/") {
            rest = shorter;
        }
        if is_connect {
            return Target::host_and_port(rest);
        }
        // A colon before the first slash ends a scheme, whatever precedes it.
        let end = rest.iter().find(|byte| matches!(byte, b':' | b'/'));
        if end == Some(&b':') && split_scheme(rest).is_none() {
            return Err(TargetError);
        }
        Target::parse(rest)
    }

    /// Splits any URI or relative reference (`apr_uri_parse`).
    pub fn parse(uri: &'a [u8]) -> Result<Self, TargetError> {
        let mut parts = Target::default();
        let rest = match split_scheme(uri) {
            Some((scheme, rest)) => {
                parts.scheme = Some(scheme);
                rest
            }
            None => uri,
        };
        match rest.strip_prefix(b"//") {
            Some(rest) => {
                let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
                let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
                parts.take_authority(authority)?;
                parts.take_path(rest);
            }
            None => parts.take_path(rest),
        }
        Ok(parts)
    }

    /// Splits `host:port`; both are required (`apr_uri_parse_hostinfo`).
    pub fn host_and_port(authority: &'a [u8]) -> Result<Self, TargetError> {
        let mut parts = Target::default();
        parts.take_host_and_port(authority)?;
        match parts.port {
            Some(port) if !port.is_empty() => Ok(parts),
            _ => Err(TargetError),
        }
    }

    /// The port as a number, truncated to 16 bits as in apr; 0 if there is none.
    pub fn port_number(&self) -> u16 {
        self.port.and_then(decimal).map_or(0, |port| port as u16)
    }

    fn take_authority(&mut self, authority: &'a [u8]) -> Result<(), TargetError> {
        let mut rest = authority;
        if let Some(at) = authority.iter().rposition(|byte| *byte == b'@') {
            self.user_info = authority.get(..at);
            rest = authority.get(at + 1..).unwrap_or_default();
        }
        self.take_host_and_port(rest)
    }

    fn take_host_and_port(&mut self, host_and_port: &'a [u8]) -> Result<(), TargetError> {
        let (host, rest) = match host_and_port.strip_prefix(b"[") {
            Some(literal) => {
                let end = literal.iter().position(|byte| *byte == b']').ok_or(TargetError)?;
                self.host_is_literal = true;
                let (host, rest) = (&literal[..end], &literal[end + 1..]);
                if !matches!(rest.first(), None | Some(b':')) {
                    return Err(TargetError);
                }
                (host, rest)
            }
            None => {
                let colon = host_and_port.iter().position(|byte| *byte == b':');
                host_and_port.split_at(colon.unwrap_or(host_and_port.len()))
            }
        };
        self.host = Some(host);
        let Some(port) = rest.strip_prefix(b":") else { return Ok(()) };
        if !port.iter().all(u8::is_ascii_digit) {
            return Err(TargetError);
        }
        self.port = Some(port);
        Ok(())
    }

    fn take_path(&mut self, rest: &'a [u8]) {
        let end = rest.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(rest.len());
        let (path, rest) = rest.split_at(end);
        self.path = (!path.is_empty()).then_some(path);
        let after_path = match rest.strip_prefix(b"?") {
            Some(rest) => {
                let end = rest.iter().position(|byte| *byte == b'#').unwrap_or(rest.len());
                let (query, rest) = rest.split_at(end);
                self.query = Some(query);
                rest
            }
            None => rest,
        };
        self.fragment = after_path.strip_prefix(b"#");
    }
}

/// Splits off `scheme ":"`. A scheme begins with a letter (RFC 3986 section 3.1).
fn split_scheme(uri: &[u8]) -> Option<(&[u8], &[u8])> {
    if !uri.first()?.is_ascii_alphabetic() {
        return None;
    }
    let end = uri
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))?;
    let (scheme, rest) = uri.split_at(end);
    Some((scheme, rest.strip_prefix(b":")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(uri: &str) -> Target<'_> {
        Target::of_request(uri.as_bytes(), false).unwrap()
    }

    #[test]
    fn forms_of_targets() {
        let origin = parse("/a?b?c#d");
        assert_eq!(origin.path, Some(b"/a".as_slice()));
        assert_eq!(origin.query, Some(b"b?c".as_slice()));
        assert_eq!(origin.fragment, Some(b"d".as_slice()));
        let absolute = parse("HTTP://u:p@q@[::1]:80?x");
        assert_eq!(absolute.user_info, Some(b"u:p@q".as_slice()));
        assert_eq!(absolute.host, Some(b"::1".as_slice()));
        assert_eq!(absolute.port_number(), 80);
        assert_eq!(absolute.path, None);
        assert_eq!(parse("///x").path, Some(b"/x".as_slice()));
        assert_eq!(parse("///x").host, None);
        assert_eq!(parse("*").path, Some(b"*".as_slice()));
    }

    // Apache 2.4.71: `http:/a` is a 404 with the Host field's name; `1a:/b` and `http:a` are 400.
    #[test]
    fn schemes_begin_with_a_letter() {
        assert_eq!(parse("http:/a").host, None);
        assert_eq!(parse("http:/a").path, Some(b"/a".as_slice()));
        assert_eq!(Target::parse(b"1a:/b").unwrap().path, Some(b"1a:/b".as_slice()));
        assert_eq!(parse("http:a").path, Some(b"a".as_slice()));
        assert_eq!(parse("/a:b").scheme, None);
        assert_eq!(parse("http:///x").host, Some(b"".as_slice()));
    }

    // Apache 2.4.71: 400 for each of these.
    #[test]
    fn what_cannot_be_split() {
        let literals = ["http://[::1/", "http://[::1]x/", "http://[::1]x:80/"];
        let others = ["http://a:x/", "http://a:1x", "1a:/b", "?a:b", ":"];
        for uri in literals.iter().chain(&others) {
            assert_eq!(Target::of_request(uri.as_bytes(), false), Err(TargetError), "{uri}");
        }
        for target in ["a", "a:", "a:x", "/", "http://a/"] {
            assert_eq!(Target::of_request(target.as_bytes(), true), Err(TargetError), "{target}");
        }
        assert_eq!(Target::of_request(b"[::1]:443", true).unwrap().port_number(), 443);
    }
}
