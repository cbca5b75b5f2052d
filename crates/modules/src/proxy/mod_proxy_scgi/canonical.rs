//! The canonical form of URLs. Source: `scgi_canon`.

use bstr::BStr;
use server::log::Level;
use server::request::Request;

use super::{ProxyScgi, Scgi};
use crate::proxy::mod_proxy::Target;
use crate::proxy::mod_proxy::canonical::{write_origin, write_path};
use crate::proxy::mod_proxy::scheme::Scheme;

/// With any value, `PATH_INFO` is the path of the URL.
const PATH_INFO: &[u8] = b"proxy-scgi-pathinfo";

/// The canonical form of `url`. The path is escaped even if `nocanon` is configured.
pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let target = Target::parse(url).map_err(|why| {
        let url = BStr::new(url);
        let text = format_args!("error parsing URL {url}: {why}");
        request.log::<ProxyScgi>(Level::Error, 857, text);
        400u16
    })?;
    let path = target.path.strip_prefix(b"/").unwrap_or(&target.path);
    let mut canonical = Vec::with_capacity(url.len() + 16);
    write_origin(&mut canonical, &target, Scgi.default_port());
    // With the slash before it.
    let path_at = canonical.len() - 1;
    write_path(request, path, &mut canonical).ok_or(400u16)?;
    if request.env.contains(PATH_INFO) {
        let path = canonical.get(path_at..).unwrap_or_default();
        request.resource.path_info = path.to_vec();
    }
    Ok(canonical)
}
