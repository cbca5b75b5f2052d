//! The head of a request to the backend. Source: `ap_proxy_create_hdrbrgd`.

use std::net::IpAddr;
use std::time::Duration;

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::{Proxied, Request};
use wire::backend_request::{
    BackendRequest, Forwarded, RequestConnection, RequestFault, RequestFraming,
};

use super::canonical;
use crate::proxy::mod_proxy::outgoing::Framing;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::via;
use crate::proxy::mod_proxy::{Proxy, Via};

/// What one attempt decides.
pub(in crate::proxy) struct Shape {
    /// How the body is framed.
    pub framing: Framing,
    /// `force-proxy-request-1.0`
    pub is_http10: bool,
    /// The backend may keep the connection.
    pub keeps: bool,
    /// `ping=`: the body waits for `100 Continue`.
    pub expects_continue: bool,
    /// How long the body waits for it, or for the one that the client waits for.
    pub waits: Option<Duration>,
    /// The protocol to switch to.
    pub upgrade: Option<Vec<u8>>,
}

/// Appends the head.
pub(in crate::proxy) fn write(
    exchange: &Exchange<'_>,
    shape: &Shape,
    out: &mut Vec<u8>,
) -> Result<(), RequestFault> {
    let request = &*exchange.request;
    let fields = &request.head.headers_in;
    let (authority, target) = canonical::parts(exchange.url);
    // A remote proxy gets the whole URL.
    let asked_proxy = exchange.asked_proxy();
    let target = if asked_proxy.is_some() { exchange.url } else { target };
    let dir = exchange.bound.dir;
    let client_host = fields.get(b"Host");
    let preserves = dir.preserves_host.or(false);
    let preserved = preserves.then(|| client_host.unwrap_or_else(|| forced_host(request)));
    let via = via::of_request(request, exchange.bound);
    let mut peer = Vec::new();
    let mut room = [0; wire::address::LONGEST];
    let is_reverse = request.resource.proxied == Proxied::Reverse;
    let forwarded = (is_reverse && dir.adds_headers.or(true)).then(|| Forwarded {
        client: match request.useragent_addr.ip() {
            IpAddr::V4(address) => wire::address::ipv4(&mut room, address),
            IpAddr::V6(address) => {
                peer.extend_from_slice(address.to_string().as_bytes());
                &peer
            }
        },
        host: client_host,
        server: request.host.name(),
    });
    let head = BackendRequest {
        method: &request.head.method_name,
        target: if target.is_empty() { b"/" } else { target },
        is_http10: shape.is_http10,
        host: preserved.unwrap_or(authority),
        via: via.as_deref(),
        forwarded,
        framing: match shape.framing {
            Framing::None => RequestFraming::None,
            Framing::Length(length) => RequestFraming::Length(length),
            Framing::Chunked => RequestFraming::Chunked,
        },
        connection: match (&shape.upgrade, shape.keeps) {
            (Some(protocol), _) => RequestConnection::Upgrade(protocol),
            (None, true) => RequestConnection::KeepAlive,
            (None, false) => RequestConnection::Close,
        },
        expects_continue: shape.expects_continue,
        credentials: asked_proxy.and_then(|remote| remote.credentials.as_deref()),
        drops_authorization: request.user.is_some() && !request.env.contains(b"Proxy-Chain-Auth"),
        drops_conditions: request.main.is_some(),
    };
    let via = exchange.bound.server.via.or(Via::Off);
    let blocks_via = via == Via::Block && fields.contains(b"Via");
    if !blocks_via {
        return head.write(out, fields);
    }
    let mut fields = fields.clone();
    fields.unset(b"Via");
    head.write(out, &fields)
}

/// The host's name, for a request of HTTP/1.0 without `Host`.
fn forced_host(request: &Request) -> &[u8] {
    let (host, uri) = (Verbatim::new(request.host.name()), Verbatim::new(&request.resource.uri));
    let text = format_args!(
        "no HTTP 0.9 request (with no host line) on incoming request and preserve host set forcing \
         hostname to be {host} for uri {uri}"
    );
    request.log::<Proxy>(Level::Warn, 1092, text);
    request.host.name()
}
