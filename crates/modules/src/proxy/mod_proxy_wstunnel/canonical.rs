//! The canonical form of URLs. Source: `proxy_wstunnel_canon`.

use server::log::Level;
use server::request::Request;

use super::ProxyWstunnel;
use crate::proxy::mod_proxy::canonical::{is_literal, is_visible, parse, write_origin, write_path};
use crate::proxy::mod_proxy::translate::NOT_CANONICAL;

/// The canonical form of `url`, whose scheme has a default port.
///
/// # Errors
/// The status of the response.
pub(super) fn canonical(request: &mut Request, url: &[u8], port: u16) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyWstunnel>(request, 2439, url)?;
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    let mut out = Vec::with_capacity(url.len() + 16);
    write_origin(&mut out, parts, port);
    if !is_literal(request) {
        write_path(request, path, &mut out).ok_or(400u16)?;
    } else if is_visible(path) {
        out.extend_from_slice(path);
    } else {
        let text = format_args!("To be forwarded path contains control characters or spaces");
        request.log::<ProxyWstunnel>(Level::Error, 10419, text);
        return Err(403);
    }
    let is_raw = request.notes.contains(NOT_CANONICAL);
    let Some(query) = (if is_raw { None } else { request.query() }) else { return Ok(out) };
    if !is_visible(query) {
        let text =
            format_args!("To be forwarded query string contains control characters or spaces");
        request.log::<ProxyWstunnel>(Level::Error, 10409, text);
        return Err(403);
    }
    out.push(b'?');
    out.extend_from_slice(query);
    Ok(out)
}
