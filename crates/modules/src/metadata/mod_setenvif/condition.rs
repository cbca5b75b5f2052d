//! A line of `SetEnvIf` and its family.

use std::borrow::Cow;
use std::sync::Arc;

use bstr::ByteSlice;
use conf::expr::Expr;
use pcre::{Captures, Later, Matched, Regex};
use server::request::Request;

/// A test, and its effects if it succeeds.
#[derive(Clone)]
pub(super) struct Condition {
    /// The test.
    pub test: Test,
    /// The effects in order.
    pub effects: Arc<[Effect]>,
}

impl Condition {
    /// Whether the client's name is needed.
    pub fn asks_for_host(&self) -> bool {
        matches!(self.test, Test::Attribute(Attribute::RemoteHost, _))
    }
}

/// A test.
#[derive(Clone)]
pub(super) enum Test {
    /// A property of the request, and the pattern it must match.
    Attribute(Attribute, Pattern),
    /// `SetEnvIfExpr`
    Expression(Arc<Expr>),
}

/// An effect on a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Set it; `$0`–`$9` are the groups of the match.
    Set(Vec<u8>, Vec<u8>),
    /// `!name`: remove it.
    Unset(Vec<u8>),
}

impl Effect {
    /// Parses `name`, `name=value` or `!name`.
    pub fn parse(word: &[u8]) -> Effect {
        let equals = word.iter().position(|byte| *byte == b'=');
        let (name, value) = match equals {
            Some(at) => (word.get(..at), word.get(at + 1..)),
            None => (Some(word), None),
        };
        let name = name.unwrap_or_default();
        match (value.unwrap_or_default(), name) {
            (b"", [b'!', name @ ..]) => Effect::Unset(name.to_vec()),
            (b"", name) => Effect::Set(name.to_vec(), b"1".to_vec()),
            (value, name) if value.first() == Some(&b'!') => Effect::Unset(name.to_vec()),
            (value, name) => Effect::Set(name.to_vec(), value.to_vec()),
        }
    }
}

/// The pattern for an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// A substring.
    Plain(Vec<u8>),
    /// A substring in any case.
    Caseless(Vec<u8>),
    /// A regular expression.
    Regex(Regex),
}

impl Pattern {
    /// Whether it matches. For a substring `captures` is empty, so that `$1` is not replaced.
    pub fn matches(
        &self,
        request: &Request,
        subject: &[u8],
        captures: &mut Captures,
    ) -> Result<Matched, Later> {
        match self {
            Pattern::Plain(text) => Ok(subject.contains_str(text).into()),
            Pattern::Caseless(text) => {
                let is_it = |part: &[u8]| part.eq_ignore_ascii_case(text);
                Ok((text.is_empty() || subject.windows(text.len()).any(is_it)).into())
            }
            Pattern::Regex(regex) => request.matches(regex, subject, Some(captures)),
        }
    }
}

/// The literal text of a regular expression without special characters (`non_regex_pattern`).
pub(super) fn plain_text(regex: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(regex.len());
    let mut escaped = false;
    for byte in regex {
        let is_special = b"^.$|()[]*+?{}".contains(byte);
        match (escaped, byte) {
            (false, b'\\') => {
                escaped = true;
                continue;
            }
            (false, _) if is_special => return None,
            (true, b'\\') => {}
            (true, _) if !is_special => return None,
            _ => {}
        }
        escaped = false;
        text.push(*byte);
    }
    // A lone backslash at the end escapes nothing, and is left out.
    Some(text)
}

/// A property of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// `Remote_Host`
    RemoteHost,
    /// `Remote_Addr`
    RemoteAddr,
    /// `Server_Addr`
    ServerAddr,
    /// `Request_URI`
    RequestUri,
    /// `Request_Method`
    RequestMethod,
    /// `Request_Protocol`
    RequestProtocol,
    /// A header field, or a variable set before.
    Named(Vec<u8>),
    /// The last header field with a matching name.
    Matching(Regex),
}

impl Attribute {
    /// The attribute with a special name, ignoring case.
    pub fn special(name: &[u8]) -> Option<Attribute> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"remote_host" => Attribute::RemoteHost,
            b"remote_addr" => Attribute::RemoteAddr,
            b"server_addr" => Attribute::ServerAddr,
            b"request_uri" => Attribute::RequestUri,
            b"request_method" => Attribute::RequestMethod,
            b"request_protocol" => Attribute::RequestProtocol,
            _ => return None,
        })
    }

    /// Whether both are the same property.
    pub fn is_same(&self, other: &Attribute) -> bool {
        match (self, other) {
            (Attribute::Named(a), Attribute::Named(b)) => a.eq_ignore_ascii_case(b),
            _ => self == other,
        }
    }

    /// The attribute's value; empty if there is none, and `None` if it is undecided. `host` is the
    /// client's name.
    pub fn value<'r>(
        &self,
        request: &'r Request,
        host: Option<&'r [u8]>,
    ) -> Result<Option<Cow<'r, [u8]>>, Later> {
        let address =
            |address: std::net::IpAddr| Cow::Owned(address.to_canonical().to_string().into_bytes());
        let value = match self {
            Attribute::RemoteHost => host,
            Attribute::RemoteAddr => return Ok(Some(address(request.useragent_addr.ip()))),
            Attribute::ServerAddr => return Ok(Some(address(request.connection.local.ip()))),
            Attribute::RequestProtocol => {
                let (major, minor) = (request.head.protocol / 1000, request.head.protocol % 1000);
                return Ok(Some(Cow::Owned(format!("HTTP/{major}.{minor}").into_bytes())));
            }
            Attribute::RequestUri => Some(request.resource.uri.as_slice()),
            Attribute::RequestMethod => Some(&*request.head.method_name),
            Attribute::Named(name) => match request.head.headers_in.get(name) {
                None if request.is_undecided(name) => return Ok(None),
                None => request.env.get(name),
                field => field,
            },
            Attribute::Matching(regex) => {
                let mut last = None;
                for (name, value) in request.head.headers_in.iter() {
                    match request.matches(regex, name, None)? {
                        Matched::Yes => last = Some(value),
                        Matched::No => {}
                        Matched::Undecided(_) => return Ok(None),
                    }
                }
                last
            }
        };
        Ok(Some(Cow::Borrowed(value.unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_effects() {
        let set = |name: &[u8], value: &[u8]| Effect::Set(name.to_vec(), value.to_vec());
        assert_eq!(Effect::parse(b"a"), set(b"a", b"1"));
        assert_eq!(Effect::parse(b"a=b=c"), set(b"a", b"b=c"));
        assert_eq!(Effect::parse(b"a="), set(b"a", b"1"));
        assert_eq!(Effect::parse(b"!a"), Effect::Unset(b"a".to_vec()));
        assert_eq!(Effect::parse(b"a=!x"), Effect::Unset(b"a".to_vec()));
        assert_eq!(Effect::parse(b"!a=b"), set(b"!a", b"b"));
    }

    #[test]
    fn patterns_without_anything_special_are_text() {
        assert_eq!(plain_text(b"MSIE 6").as_deref(), Some(&b"MSIE 6"[..]));
        assert_eq!(plain_text(b"a\\.b\\\\").as_deref(), Some(&b"a.b\\"[..]));
        assert_eq!(plain_text(b"a.b"), None);
        assert_eq!(plain_text(b"\\d"), None);
        assert_eq!(plain_text(b"a\\").as_deref(), Some(&b"a"[..]));
    }
}
