//! The `Via` field (RFC 9110 section 7.6.3).

use server::hooks::Bound;
use server::request::Request;
use server::version::{PRODUCT, VERSION};
use wire::Table;

use super::{Proxy, Via};

/// What this server adds to `Via` of a request (`ap_proxy_create_hdrbrgd`).
pub fn of_request(request: &Request, bound: Bound<'_, Proxy>) -> Option<Vec<u8>> {
    let via = bound.server.via.or(Via::Off);
    matches!(via, Via::On | Via::Full).then(|| entry(request, via))
}

/// Adds this server to `Via` of a response. As in Apache the version is the client's, and not the
/// one that the backend has responded with.
pub fn of_response(request: &Request, bound: Bound<'_, Proxy>, fields: &mut Table) {
    if let Some(entry) = of_request(request, bound) {
        fields.add(b"Via", &entry);
    }
}

fn entry(request: &Request, via: Via) -> Vec<u8> {
    let protocol = request.head.protocol;
    // The name that the client sent is that of the origin.
    let name = match request.plan.core.use_canonical_name.get() {
        None | Some(server::core::CanonicalName::Off) => request.host.name(),
        Some(_) => request.server_name(),
    };
    let mut entry = format!("{}.{} ", protocol / 1000, protocol % 1000).into_bytes();
    entry.extend_from_slice(name);
    let port = request.server_port();
    let default = if request.scheme() == "https" { 443 } else { 80 };
    if port != default {
        entry.extend_from_slice(format!(":{port}").as_bytes());
    }
    if via == Via::Full {
        entry.extend_from_slice(format!(" ({PRODUCT}/{VERSION})").as_bytes());
    }
    entry
}
