//! The parameters of a request to balancer-manager: the query of a GET, the body of a POST.
//!
//! Source: `push2table`, `safe_referer`.

use server::request::Request;
use server::request_body::BodyError;
use wire::Method;
use wire::uri::{Slashes, unescape_url};

use crate::proxy::mod_proxy::target::split_at_text;

/// How much of a body counts, bytes.
const BODY_BYTES: usize = 1024;
/// The parameters that a query may have: it changes nothing.
const OF_QUERIES: [&[u8]; 4] = [b"w", b"b", b"nonce", b"xml"];

/// Parameters by their names; of several with one name the last counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Form(Vec<(Vec<u8>, Vec<u8>)>);

impl Form {
    /// The parameters of a text. With `only`, others are ignored.
    pub fn parse(text: &[u8], only: Option<&[&[u8]]>) -> Form {
        let mut form = Form::default();
        for pair in text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let (key, value) = split_at_text(pair, b"=").unwrap_or((pair, b""));
            let (key, value) = (unescaped(key), unescaped(value));
            if only.is_none_or(|only| only.contains(&&key[..])) {
                form.0.retain(|(other, _)| !other.eq_ignore_ascii_case(&key));
                form.0.push((key, value));
            }
        }
        form
    }

    /// The value of a parameter.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        let is_it = |(other, _): &&(Vec<u8>, Vec<u8>)| other.eq_ignore_ascii_case(key.as_bytes());
        self.0.iter().find(is_it).map(|(_, value)| value.as_slice())
    }

    /// The parameters of a request.
    ///
    /// # Errors
    /// The status of the response.
    pub async fn of(request: &mut Request) -> Result<Form, u16> {
        if request.head.method != Method::POST {
            let query = request.query().unwrap_or_default();
            return Ok(Form::parse(query, Some(&OF_QUERIES)));
        }
        let mut body = Vec::new();
        while body.len() < BODY_BYTES
            && let Some(piece) = request.body_in.next().await
        {
            match piece {
                Ok(piece) => body.extend_from_slice(&piece),
                Err(BodyError::Io(_)) => return Err(400),
                Err(error) => return Err(error.status(request)),
            }
        }
        body.truncate(BODY_BYTES);
        Ok(Form::parse(&body, None))
    }
}

/// What is behind a NUL does not count.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    // A bad escape is kept as it is.
    let _ = unescape_url(&mut text, Slashes::Decode);
    if let Some(end) = text.iter().position(|byte| *byte == 0) {
        text.truncate(end);
    }
    text
}

/// Whether the page that leads here is one of this host.
pub(super) fn has_own_referer(request: &Request) -> bool {
    let referer = request.head.headers_in.get(b"Referer");
    let host = referer.and_then(host_of);
    host.is_some_and(|host| host.eq_ignore_ascii_case(request.server_name()))
}

/// The host of a URL.
fn host_of(url: &[u8]) -> Option<&[u8]> {
    let (_, rest) = split_at_text(url, b"://")?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let authority = rest.get(..end.unwrap_or(rest.len()))?;
    let user = authority.iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    let place = authority.get(user..)?;
    let end = match place.strip_prefix(b"[") {
        Some(inner) => return split_at_text(inner, b"]").map(|(host, _)| host),
        None => place.iter().position(|byte| *byte == b':').unwrap_or(place.len()),
    };
    place.get(..end).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_name_counts() {
        let form = Form::parse(b"&a=1&%61=%2&b&=x&a=3%00=4&", None);
        assert_eq!(form.get("a"), Some(&b"3"[..]));
        assert_eq!(form.get("b"), Some(&b""[..]));
        assert_eq!(form.get("c"), None);
        assert_eq!(Form::parse(b"w_lf=1&xml", Some(&OF_QUERIES)).get("w_lf"), None);
    }

    #[test]
    fn a_host_is_between_user_and_port() {
        let host = |url: &'static str| host_of(url.as_bytes()).unwrap_or_default();
        assert_eq!(host("http://u:p@a.test:8/x"), b"a.test");
        assert_eq!(host("https://[::1]:8?x"), b"::1");
        assert_eq!(
            (host("a.test"), host("http:///x"), host("http://[x")),
            (&b""[..], &b""[..], &b""[..])
        );
    }
}
