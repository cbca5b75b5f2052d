//! Other protocols over a connection of HTTP/1.1 (RFC 9110 section 7.8), such as WebSocket. Source:
//! `proxy_http_handler`, `ap_proxy_http_process_response`.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use server::tunnel::Tunnel;

use super::ProxyHttp;
use crate::proxy::mod_proxy::backend::{Backend, tunnel_timeout};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::scheme::Exchange;

/// The protocol of `ws:` without `upgrade`.
pub(in crate::proxy) const WEB_SOCKET: &[u8] = b"WebSocket";

/// The protocol that the client asks for, if the worker's `upgrade` names it. As in Apache, its
/// `Connection` need not name the field.
pub(super) fn asked(exchange: &Exchange<'_>) -> Option<Vec<u8>> {
    let own = exchange.worker.parameters.upgrade.as_deref().filter(|name| !name.is_empty());
    let is_ws = exchange.url.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"ws"));
    let own = own.or(is_ws.then_some(WEB_SOCKET))?;
    let asked = exchange.request.head.headers_in.get(b"Upgrade")?;
    allows(own, asked).then(|| asked.to_vec())
}

/// Whether the value of `upgrade` allows a protocol (`ap_proxy_worker_can_upgrade`).
pub(in crate::proxy) fn allows(own: &[u8], asked: &[u8]) -> bool {
    own == b"*" || own.eq_ignore_ascii_case(asked)
}

/// Makes the connection a tunnel, after the backend's `101 Switching Protocols`, behind which it
/// has sent `received`.
pub(super) fn switch(
    exchange: &mut Exchange<'_>,
    protocol: &[u8],
    backend: Backend,
    received: Vec<u8>,
    busy: Busy,
) {
    let shown = Verbatim::new(protocol);
    let text = format_args!("HTTP: tunneling protocol {shown}");
    exchange.request.log::<ProxyHttp>(Level::Debug, 10239, text);
    let head = head(exchange.request, protocol);
    let idle = tunnel_timeout(exchange);
    let (far, slot) = backend.into_parts();
    let guard = Box::new((slot, busy));
    exchange.request.response.tunnel = Some(Box::new(Tunnel {
        head,
        far,
        received,
        idle,
        timed_out: None,
        unanswered: None,
        guard,
    }));
}

/// The head as the client gets it: an interim response has no fields of our own.
fn head(request: &mut Request, protocol: &[u8]) -> Vec<u8> {
    let response = &mut request.response;
    response.headers_out.set(b"Connection", b"Upgrade");
    response.headers_out.set(b"Upgrade", protocol);
    let mut out = b"HTTP/1.1 ".to_vec();
    match &response.status_line {
        Some(line) => out.extend_from_slice(line),
        None => out.extend_from_slice(wire::status::line(response.status).as_bytes()),
    }
    out.extend_from_slice(b"\r\n");
    for (name, value) in response.headers_out.iter() {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}
