//! The canonical form of URLs. Source: `scgi_canon`.

use server::request::Request;

use super::{ProxyScgi, Scgi};
use crate::proxy::mod_proxy::canonical::{parse, write_origin, write_path};
use crate::proxy::mod_proxy::scheme::Scheme;

/// With any value, `PATH_INFO` is the path of the URL.
const PATH_INFO: &[u8] = b"proxy-scgi-pathinfo";

/// The canonical form of `url`. The path is escaped even if `nocanon` is configured.
pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyScgi>(request, 857, url)?;
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    let mut canonical = Vec::with_capacity(url.len() + 16);
    write_origin(&mut canonical, parts, Scgi.default_port());
    // With the slash before it.
    let path_at = canonical.len() - 1;
    write_path(request, path, &mut canonical).ok_or(400u16)?;
    if request.env.contains(PATH_INFO) {
        let path = canonical.get(path_at..).unwrap_or_default();
        request.resource.path_info = path.to_vec();
    }
    Ok(canonical)
}
