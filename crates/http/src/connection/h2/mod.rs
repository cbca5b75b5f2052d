//! A connection of HTTP/2: many requests at a time, each with its own [`Stream`](stream::Stream).
//!
//! One task receives, lets the protocol's state machine ([`wire::h2`]) take the frames, and sends
//! what has gathered: once per turn of the loop. A request is served by a future of its own. It is
//! polled at once, in place; only one that has to wait becomes a task. A response is made no
//! further than its client's windows allow.

mod exchange;
mod push;
mod records;
mod request_body;
mod respond;
mod session;
mod stream;
mod tunnel;
mod turns;
mod upgrade;

pub(super) use push::{accept_pushes, pushes};
pub(super) use session::run;
pub(super) use upgrade::{Upgrade, after_last, begin_upgrade, is_asked_for, is_preface};

use std::sync::Arc;
use std::time::Duration;

use rt::{Deadline, Handle};
use server::connection_info::ConnectionInfo;
use server::host::{Host, Server};
use server::http2::Http2;
use wire::h2::Limits;

/// The name of HTTP/2 over TLS in ALPN and `Protocols`.
const OVER_TLS: &[u8] = b"h2";

/// The name of HTTP/2 in clear in `Protocols`.
const IN_CLEAR: &[u8] = b"h2c";

/// Bytes of request bodies that all requests of a connection may have waiting for their handlers.
const BODIES_BYTES: u32 = 1024 * 1024;

/// The settings of a host, if the protocol is allowed there.
fn settings(host: &Host, is_tls: bool) -> Option<&Http2> {
    let name = if is_tls { OVER_TLS } else { IN_CLEAR };
    host.http2.as_ref().filter(|_| host.core.allows_protocol(name))
}

/// The host whose settings a connection has: that of its handshake, or of its address.
pub(super) fn host_of<'h>(server: &'h Server, info: &'h ConnectionInfo) -> &'h Arc<Host> {
    let named = info.tls.as_ref().and_then(|tls| server.hosts.get(usize::try_from(tls.host).ok()?));
    named.unwrap_or(&info.base_host)
}

/// Whether the handshake of a connection has chosen HTTP/2.
pub(super) fn is_negotiated(info: &ConnectionInfo) -> bool {
    info.tls.as_ref().is_some_and(|tls| tls.alpn.as_deref() == Some(OVER_TLS))
}

/// Whether a host offers HTTP/2 in handshakes.
pub(super) fn is_offered(host: &Host) -> bool {
    settings(host, true).is_some()
}

/// Whether a connection may begin with HTTP/2, without negotiation (`h2_allows_h2_direct`).
pub(super) fn is_direct(host: &Host, is_tls: bool) -> bool {
    settings(host, is_tls).is_some_and(|http2| http2.direct.unwrap_or(!is_tls))
}

/// The limits of a host's connections.
fn limits(host: &Host) -> Limits {
    let default = Http2::default();
    let http2 = host.http2.as_ref().unwrap_or(&default);
    let head = host.core.head_limits();
    let most = Limits::default().data_bytes;
    Limits {
        streams: http2.streams,
        window_bytes: http2.window_bytes,
        connection_window_bytes: BODIES_BYTES.max(http2.window_bytes),
        data_bytes: if http2.data_bytes == 0 { most } else { http2.data_bytes.min(most) },
        padding_bits: http2.padding_bits,
        has_websockets: http2.has_websockets,
        is_forward_proxy: http2.is_forward_proxy,
        head,
        ..Limits::default()
    }
}

/// How long a request waits for its client.
fn stream_timeout(host: &Host) -> Duration {
    host.http2.as_ref().and_then(|http2| http2.stream_timeout).unwrap_or(host.core.timeout())
}

/// Whether clients get responses 103.
pub(super) fn has_early_hints(host: &Host) -> bool {
    host.http2.as_ref().is_some_and(|http2| http2.has_early_hints)
}

/// The deadline of a connection without requests.
fn idle_deadline(handle: &Handle, host: &Host, has_served: bool) -> Deadline {
    let core = &host.core;
    handle.deadline(if has_served { core.keep_alive_timeout() } else { core.timeout() })
}
