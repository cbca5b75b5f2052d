//! The canonical form of a `balancer:` URL. Source: `proxy_balancer_canon`.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::ProxyBalancer;
use crate::proxy::mod_proxy::Target;

/// The canonical form of `url`: its name in lower case. Its path is left to the scheme of the
/// member that is chosen.
///
/// # Errors
/// The status of the response.
pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let target = Target::parse(url).map_err(|why| {
        let shown = Verbatim::new(url);
        let text = format_args!("error parsing URL {shown}: {why}");
        request.log::<ProxyBalancer>(Level::Error, 1157, text);
        400u16
    })?;
    let path = target.path.strip_prefix(b"/").unwrap_or(&target.path);
    Ok([b"balancer://", &target.host.to_ascii_lowercase()[..], b"/", path].concat())
}
