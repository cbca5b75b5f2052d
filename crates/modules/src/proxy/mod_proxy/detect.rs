//! Requests of clients for URLs of other servers: ProxyRequests.
//!
//! Source: `proxy_detect` (mod_proxy.c).

use server::hooks::{Bound, Step};
use server::request::{Proxied, Request};
use wire::method::Method;
use wire::uri::Target;

use super::Proxy;
use crate::mappers::mod_rewrite::is_own_host;

/// Whether the host is a forward proxy.
pub(super) fn forwards(proxy: Bound<'_, Proxy>) -> bool {
    proxy.server.requests.or(false)
}

/// The hook of `post_read_request`: a URL that is not this host's own, and CONNECT. A URL without a
/// host is its own.
pub(super) fn detect<'r>(_: Bound<'r, Proxy>, request: &'r mut Request) -> Step<'r> {
    let is_connect = request.head.method == Method::CONNECT;
    let Ok(target) = Target::of_request(&request.head.unparsed_uri, is_connect) else {
        return Step::DECLINED;
    };
    let is_foreign = match (target.scheme, target.host) {
        (Some(scheme), Some(host)) => {
            let port = match target.port_number() {
                0 => request.default_port(),
                port => port,
            };
            let is_own_scheme = scheme.eq_ignore_ascii_case(request.scheme().as_bytes());
            !is_own_scheme || !host.is_empty() && !is_own_host(request, host, port)
        }
        (Some(_), None) => true,
        (None, host) => is_connect && host.is_some() && target.port.is_some(),
    };
    if is_foreign {
        let url = request.head.unparsed_uri.clone();
        request.proxy(Proxied::Forward, &url);
        request.resource.uri = url;
    }
    Step::DECLINED
}
