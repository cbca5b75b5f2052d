//! A request of HTTP/1.1 that changes its connection to HTTP/2 (RFC 7540 section 3.2).

use std::io;

use rt::Pooled;
use server::request::Request;
use wire::{Body, HeadFlags, RequestHead};

use super::{IN_CLEAR, OVER_TLS, settings};
use crate::connection::{Active, Connection};
use server::connection_info::ConnectionInfo;

/// A request that is served as the first of a connection of HTTP/2.
pub(in crate::connection) struct Upgrade {
    /// The value of `HTTP2-Settings`.
    pub settings: Vec<u8>,
    pub request: Pooled<Request>,
    pub head: Box<RequestHead>,
}

/// Whether a request asks for HTTP/2, and may have it (`h2_protocol_propose`): without a body.
pub(in crate::connection) fn is_asked_for(
    info: &ConnectionInfo,
    active: &Active,
    request: &Request,
) -> bool {
    if !active.head.flags.has(HeadFlags::UPGRADE) || active.head.body != Body::None {
        return false;
    }
    let name = if info.tls.is_some() { OVER_TLS } else { IN_CLEAR };
    let fields = &request.head.headers_in;
    let mut settings_fields = fields.get_all(b"HTTP2-Settings");
    settings(info).is_some_and(|http2| http2.upgrade.unwrap_or(info.tls.is_none()))
        && fields.contains_token(b"Upgrade", name)
        && fields.contains_token(b"Connection", b"Upgrade")
        && fields.contains_token(b"Connection", b"HTTP2-Settings")
        && settings_fields.next().is_some()
        && settings_fields.next().is_none()
}

/// Tells the client of HTTP/1.1 that the connection changes, and keeps the request for its first
/// stream.
pub(in crate::connection) async fn begin_upgrade(
    connection: &mut Connection,
    active: &mut Active,
    request: Pooled<Request>,
) -> io::Result<bool> {
    let Some(stream) = connection.stream.as_mut() else { return Ok(false) };
    let name = if connection.info.tls.is_some() { "h2" } else { "h2c" };
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: {name}\r\nConnection: Upgrade\r\n\r\n"
    );
    stream.write_all(head.as_bytes(), request.host.core.timeout()).await?;
    let settings = request.head.headers_in.get(b"HTTP2-Settings").unwrap_or_default().to_vec();
    let head = Box::new(std::mem::take(&mut active.head));
    active.upgrade = Some(Box::new(Upgrade { settings, request, head }));
    Ok(false)
}
