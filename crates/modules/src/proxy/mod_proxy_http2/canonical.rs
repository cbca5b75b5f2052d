//! The canonical form of an `h2:` or `h2c:` URL. Source: `proxy_http2_canon`.

use server::request::{Proxied, Request};

use super::ProxyHttp2;
use crate::proxy::mod_proxy::canonical::{
    is_literal, parse, write_literal, write_origin, write_path, write_query,
};
use crate::proxy::mod_proxy::translate::NOT_CANONICAL;

pub(super) fn canonical(
    request: &mut Request,
    url: &[u8],
    default_port: u16,
) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyHttp2>(request, 3350, url)?;
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    let is_forward = request.resource.proxied == Proxied::Forward;
    let is_raw = is_forward || request.notes.contains(NOT_CANONICAL);
    let mut out = Vec::with_capacity(url.len() + request.query().map_or(0, <[u8]>::len) + 16);
    write_origin(&mut out, parts, default_port);
    if is_forward || is_literal(request) {
        write_literal::<ProxyHttp2>(request, 10420, path, &mut out)?;
    } else {
        write_path(request, path, &mut out).ok_or(400u16)?;
    }
    if !is_raw {
        write_query::<ProxyHttp2>(request, 10412, &mut out)?;
    }
    Ok(out)
}
