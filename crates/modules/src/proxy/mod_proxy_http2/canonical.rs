//! The canonical form of an `h2:` or `h2c:` URL. Source: `proxy_http2_canon`.

use server::log::Level;
use server::request::{Proxied, Request};

use super::ProxyHttp2;
use crate::proxy::mod_proxy::canonical::{is_literal, is_visible, parse, write_origin, write_path};
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
    let query = if is_raw { None } else { request.query() };
    let mut out = Vec::with_capacity(url.len() + query.map_or(0, <[u8]>::len) + 16);
    write_origin(&mut out, parts, default_port);
    if is_forward || is_literal(request) {
        if !is_visible(path) {
            let text = format_args!("To be forwarded path contains control characters or spaces");
            request.log::<ProxyHttp2>(Level::Error, 10420, text);
            return Err(403);
        }
        out.extend_from_slice(path);
    } else {
        write_path(request, path, &mut out).ok_or(400u16)?;
    }
    let Some(query) = query else { return Ok(out) };
    if !is_visible(query) {
        let text =
            format_args!("To be forwarded query string contains control characters or spaces");
        request.log::<ProxyHttp2>(Level::Error, 10412, text);
        return Err(403);
    }
    out.push(b'?');
    out.extend_from_slice(query);
    Ok(out)
}
