//! The canonical form of URLs. Source: `proxy_wstunnel_canon`.

use server::request::Request;

use super::ProxyWstunnel;
use crate::proxy::mod_proxy::canonical::{
    is_literal, parse, write_literal, write_origin, write_path, write_query,
};
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
    } else {
        write_literal::<ProxyWstunnel>(request, 10419, path, &mut out)?;
    }
    if !request.notes.contains(NOT_CANONICAL) {
        write_query::<ProxyWstunnel>(request, 10409, &mut out)?;
    }
    Ok(out)
}
