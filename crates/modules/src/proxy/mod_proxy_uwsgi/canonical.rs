//! The canonical form of URLs. Source: `uwsgi_canon`.

use server::request::Request;

use super::{ProxyUwsgi, Uwsgi};
use crate::proxy::mod_proxy::canonical::{
    is_literal, parse, write_literal, write_origin, write_path,
};
use crate::proxy::mod_proxy::scheme::Scheme;

pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyUwsgi>(request, 10097, url)?;
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    let mut canonical = Vec::with_capacity(url.len() + 16);
    write_origin(&mut canonical, parts, Uwsgi.default_port());
    match is_literal(request) {
        true => write_literal::<ProxyUwsgi>(request, 10417, path, &mut canonical)?,
        false => write_path(request, path, &mut canonical).ok_or(400u16)?,
    }
    Ok(canonical)
}
