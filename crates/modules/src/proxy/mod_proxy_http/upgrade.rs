//! Other protocols over a connection of HTTP/1.1 (RFC 9110 section 7.8), such as WebSocket. Source:
//! `proxy_http_handler`, `ap_proxy_http_process_response`.

use server::request::Request;
use server::tunnel::Tunnel;
use wire::response::connection_tokens;

use crate::proxy::mod_proxy::backend::{Backend, tunnel_timeout};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::scheme::Exchange;

/// The protocol that the client asks for, if the worker's `upgrade` names it.
pub(super) fn asked(exchange: &Exchange<'_>) -> Option<Vec<u8>> {
    let allowed = exchange.worker.parameters.upgrade.as_deref().filter(|name| !name.is_empty())?;
    let fields = &exchange.request.head.headers_in;
    let asked = fields.get(b"Upgrade")?;
    let mut options = fields.get_all(b"Connection").flat_map(connection_tokens);
    let is_asked = options.any(|option| option.eq_ignore_ascii_case(b"upgrade"));
    let is_allowed = allowed == b"*" || allowed.eq_ignore_ascii_case(asked);
    (is_asked && is_allowed).then(|| asked.to_vec())
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
    let head = head(exchange.request, protocol);
    let idle = tunnel_timeout(exchange);
    let (far, slot) = backend.into_parts();
    let guard = Box::new((slot, busy));
    exchange.request.response.tunnel =
        Some(Box::new(Tunnel { head, far, received, idle, timed_out: None, guard }));
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
