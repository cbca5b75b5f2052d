//! The URL as the client sees it (Apache's `parsed_uri`).

use server::request::{Proxied, Request};
use wire::uri::{Normalize, normalize_path};

use super::PORT;
use crate::proxy::mod_proxy::parts::Parts;

/// Its path, normalised and still escaped, without the query.
pub(super) fn path(request: &Request) -> Vec<u8> {
    let target = &request.head.unparsed_uri;
    let path = Parts::parse(target).map_or(&target[..], |parts| parts.path);
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    let mut path = path.get(..end).unwrap_or_default().to_vec();
    // Another one would have been refused before.
    normalize_path(&mut path, Normalize::request(request.host.core.merge_slashes.or(true)));
    path
}

/// Scheme, user and host that the client named, if this is a forward proxy.
pub(super) fn site(request: &Request) -> Option<Vec<u8>> {
    let parts = Parts::parse(&request.head.unparsed_uri).ok()?;
    if request.resource.proxied != Proxied::Forward {
        return None;
    }
    let mut site = [parts.scheme, b"://", &user(request)].concat();
    let is_v6 = parts.host.contains(&b':');
    site.extend_from_slice(if is_v6 { b"[" } else { b"" });
    site.extend_from_slice(parts.host);
    site.extend_from_slice(if is_v6 { b"]" } else { b"" });
    if let Some(port) = parts.port.filter(|port| *port != u32::from(PORT)) {
        site.extend_from_slice(format!(":{port}").as_bytes());
    }
    Some(site)
}

/// The user as a part of a URL: empty, or up to the `@`.
pub(super) fn user(request: &Request) -> Vec<u8> {
    request.user.as_deref().map(|user| [user, b"@"].concat()).unwrap_or_default()
}
