//! The canonical form of URLs. Source: `proxy_ajp_canon`, `ap_proxy_canonenc_ex`.

use server::request::Request;

use super::{Ajp, ProxyAjp};
use crate::proxy::mod_proxy::canonical::{
    is_literal, parse, write_literal, write_origin, write_path, write_query,
};
use crate::proxy::mod_proxy::scheme::Scheme;
use crate::proxy::mod_proxy::translate::NOT_CANONICAL;

pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyAjp>(request, 867, url)?;
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    // A raw path has its query.
    let is_raw = request.notes.contains(NOT_CANONICAL);
    let mut out = Vec::with_capacity(url.len() + request.query().map_or(0, <[u8]>::len) + 16);
    write_origin(&mut out, parts, Ajp.default_port());
    if is_literal(request) {
        write_literal::<ProxyAjp>(request, 10418, path, &mut out)?;
    } else {
        write_path(request, path, &mut out).ok_or(400u16)?;
    }
    if !is_raw {
        write_query::<ProxyAjp>(request, 10406, &mut out)?;
    }
    Ok(out)
}
