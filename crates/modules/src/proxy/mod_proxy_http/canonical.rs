//! The canonical form of an `http:` URL. Source: `proxy_http_canon`, `ap_proxy_canonenc_ex`.

use bstr::{BStr, ByteSlice};
use server::core::EncodedSlashes;
use server::log::Level;
use server::request::{Proxied, Request};

use super::ProxyHttp;
use crate::proxy::mod_proxy::{Target, fault};

/// What stays in a path beside letters and digits.
const ALLOWED: &[u8] = b"~$-_.+!*'(),;:@&=";

/// The canonical form of `url`: the host in lower case, the port unless it is the scheme's, the
/// path encoded again unless it is to go on as it came, and the request's query.
///
/// # Errors
/// The status of the response.
pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let target = Target::parse(url).map_err(|why| unparsed(request, url, &why))?;
    let path = target.path.strip_prefix(b"/").unwrap_or(&target.path);
    let is_forward = request.resource.proxied == Proxied::Forward;
    let is_raw = is_forward || request.notes.contains(b"proxy-nocanon");
    let is_encoded = request.notes.contains(b"proxy-noencode");
    let keeps_slashes = request.host.core.allow_encoded_slashes.0 == EncodedSlashes::NoDecode;
    let (path, is_literal) = match is_raw || is_encoded {
        true => (path.to_vec(), true),
        false => (encoded(path, keeps_slashes).ok_or(400u16)?, false),
    };
    let query = if is_raw { None } else { request.query().map(<[u8]>::to_vec) };
    if is_literal && !is_visible(&path) {
        let text = format_args!("To be forwarded path contains control characters or spaces");
        request.log::<ProxyHttp>(Level::Error, 10415, text);
        return Err(403);
    }
    if query.as_deref().is_some_and(|query| !is_visible(query)) {
        let text =
            format_args!("To be forwarded query string contains control characters or spaces");
        request.log::<ProxyHttp>(Level::Error, 10408, text);
        return Err(403);
    }
    let mut out = Vec::with_capacity(url.len() + 16);
    out.extend_from_slice(&target.scheme);
    out.extend_from_slice(b"://");
    let host = target.host.to_ascii_lowercase();
    match host.contains(&b':') {
        true => out.extend_from_slice(&[b"[", &host[..], b"]"].concat()),
        false => out.extend_from_slice(&host),
    }
    let default = if target.scheme == b"https" { 443 } else { 80 };
    if let Some(port) = target.port.filter(|port| *port != default) {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    out.push(b'/');
    out.extend_from_slice(&path);
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(&query);
    }
    Ok(out)
}

/// Why a URL has no canonical form. With a port that is no number, Apache takes the authority for
/// a host's name, which no name server knows.
fn unparsed(request: &mut Request, url: &[u8], why: &str) -> u16 {
    let (authority, _) = parts(url);
    if authority.contains(&b':') && !authority.starts_with(b"[") {
        let why = format!("DNS lookup failure for: {}", BStr::new(authority));
        return fault::answer::<ProxyHttp>(request, 500, &why);
    }
    let shown = BStr::new(url);
    let text = format_args!("error parsing URL {shown}: {why}");
    request.log::<ProxyHttp>(Level::Error, 1083, text);
    400
}

fn is_visible(text: &[u8]) -> bool {
    text.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

/// Encodes a decoded path. `keeps_slashes`: an encoded slash stays one (`AllowEncodedSlashes
/// NoDecode`). `None` if `%` is not followed by two digits there.
fn encoded(path: &[u8], keeps_slashes: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(path.len() + 16);
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if keeps_slashes && *byte == b'%' {
            let digits = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit))?;
            if digits.eq_ignore_ascii_case(b"2f") {
                out.push(b'%');
                out.extend_from_slice(digits);
                rest = after.get(2..)?;
                continue;
            }
        }
        if byte.is_ascii_alphanumeric() || *byte == b'/' || ALLOWED.contains_str([*byte]) {
            out.push(*byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    Some(out)
}

/// What goes into the request line, and the authority, of a canonical URL.
pub(super) fn parts(url: &[u8]) -> (&[u8], &[u8]) {
    let rest = url.find(b"://").map_or(url, |at| url.get(at + 3..).unwrap_or_default());
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    rest.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_again() {
        let of = |path: &str, keeps| {
            encoded(path.as_bytes(), keeps).map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(of("a b/c%?\u{e9}~", false).unwrap(), "a%20b/c%25%3F%C3%A9~");
        assert_eq!(of("a%2fb%41", true).unwrap(), "a%2fb%2541");
        assert_eq!(of("a%2", true), None);
        assert_eq!(of("x;y=1,'(2)'", false).unwrap(), "x;y=1,'(2)'");
    }

    #[test]
    fn urls_are_split_behind_the_authority() {
        let (authority, target) = parts(b"http://h:1/a?b");
        assert_eq!((authority, target), (&b"h:1"[..], &b"/a?b"[..]));
        assert_eq!(parts(b"http://h").1, b"");
    }
}
