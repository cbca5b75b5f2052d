//! The canonical form of an `http:` or `ws:` URL.
//!
//! Source: `proxy_http_canon`, `ap_proxy_canonenc_ex`.

use bstr::ByteSlice;
use server::request::{Proxied, Request};

use super::ProxyHttp;
use crate::proxy::mod_proxy::canonical::{
    is_literal, parse, write_literal, write_origin, write_path, write_query,
};
use crate::proxy::mod_proxy::target::split_at_text;
use crate::proxy::mod_proxy::translate::NOT_CANONICAL;

/// Room for a query.
const QUERY_BYTES: usize = 64;

/// The canonical form of `url`: the host in lower case, the port unless it is the scheme's, the
/// path encoded again unless it is to go on as it came, and the request's query.
///
/// # Errors
/// The status of the response.
pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyHttp>(request, 1083, url)?;
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    let mut out = Vec::with_capacity(url.len() + QUERY_BYTES);
    let is = |name: &[u8]| parts.scheme.eq_ignore_ascii_case(name);
    let is_tls = is(b"https") || is(b"wss");
    write_origin(&mut out, parts, if is_tls { 443 } else { 80 });
    let is_forward = request.resource.proxied == Proxied::Forward;
    let is_raw = is_forward || request.notes.contains(NOT_CANONICAL);
    match is_forward || is_literal(request) {
        true => write_literal::<ProxyHttp>(request, 10415, path, &mut out)?,
        false => write_path(request, path, &mut out).ok_or(400u16)?,
    }
    if !is_raw {
        write_query::<ProxyHttp>(request, 10408, &mut out)?;
    }
    Ok(out)
}

/// What goes into the request line, and the authority, of a canonical URL.
pub(super) fn parts(url: &[u8]) -> (&[u8], &[u8]) {
    let rest = split_at_text(url, b"://").map_or(url, |(_, rest)| rest);
    let end = rest.find_byteset(b"/?").unwrap_or(rest.len());
    rest.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_behind_the_authority() {
        let (authority, target) = parts(b"http://h:1/a?b");
        assert_eq!((authority, target), (&b"h:1"[..], &b"/a?b"[..]));
        assert_eq!(parts(b"http://h").1, b"");
    }
}
