//! The canonical form of URLs. Source: `uwsgi_canon`.

use server::log::Level;
use server::request::Request;

use super::{ProxyUwsgi, Uwsgi};
use crate::proxy::mod_proxy::canonical::{is_literal, parse, write_origin, write_path};
use crate::proxy::mod_proxy::scheme::Scheme;

pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyUwsgi>(request, 10097, url)?;
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    let mut canonical = Vec::with_capacity(url.len() + 16);
    write_origin(&mut canonical, parts, Uwsgi.default_port());
    if !is_literal(request) {
        write_path(request, path, &mut canonical).ok_or(400u16)?;
        return Ok(canonical);
    }
    if path.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        let text = format_args!("To be forwarded path contains control characters or spaces");
        request.log::<ProxyUwsgi>(Level::Error, 10417, text);
        return Err(403);
    }
    canonical.extend_from_slice(path);
    Ok(canonical)
}
