//! The ways from HTTP/1.1 to HTTP/2 on a connection: its preface, and a request that asks for it
//! (RFC 7540 section 3.2).

use std::io;

use rt::Pooled;
use server::request::Request;
use wire::chars::is_token_string;
use wire::{Body, HeadFlags, RequestHead, Table, Version, h2, list};

use super::{IN_CLEAR, OVER_TLS, settings};
use crate::connection::{Active, Connection, Ended};
use server::connection_info::ConnectionInfo;

/// The line with which a client of HTTP/2 begins.
const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// A request that is served as the first of a connection of HTTP/2.
pub(in crate::connection) struct Upgrade {
    /// The value of `HTTP2-Settings`.
    pub settings: Vec<u8>,
    pub request: Pooled<Request>,
    pub head: Box<RequestHead>,
}

/// Whether a request of HTTP/1.1, without a body, asks for HTTP/2 and may have it
/// (`h2_protocol_propose`).
pub(in crate::connection) fn is_asked_for(
    info: &ConnectionInfo,
    active: &Active,
    request: &Request,
) -> bool {
    let head = &active.head;
    let has_body = !matches!(head.body, Body::None | Body::Length(0));
    if !head.flags.has(HeadFlags::UPGRADE) || has_body || head.version < Version::HTTP_11 {
        return false;
    }
    let name = if info.tls.is_some() { OVER_TLS } else { IN_CLEAR };
    let fields = &request.head.headers_in;
    let mut settings_fields = fields.get_all(b"HTTP2-Settings");
    // The client would wait for HTTP/2 after a 101.
    let are_valid =
        |value: &[u8]| h2::Connection::upgraded(super::limits(info), value, 0).is_some();
    settings(info).is_some_and(|http2| http2.upgrade.unwrap_or(info.tls.is_none()))
        && offers(fields, name)
        && fields.contains_token(b"Connection", b"Upgrade")
        && fields.contains_token(b"Connection", b"HTTP2-Settings")
        && settings_fields.next().is_some_and(are_valid)
        && settings_fields.next().is_none()
}

/// Whether the client offers exactly this protocol. One with a version makes all of them invalid
/// (`ap_parse_token_list_strict`).
fn offers(fields: &Table, name: &[u8]) -> bool {
    let offers = || fields.get_all(b"Upgrade").flat_map(list::items);
    offers().all(is_token_string) && offers().any(|offer| offer == name)
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

/// Whether a client begins with HTTP/2, and may.
#[cold]
pub(in crate::connection) fn is_preface(connection: &Connection, active: &Active) -> bool {
    connection.responses == 0
        && active.head.line() == b"PRI * HTTP/2.0"
        && active.input.starts_with(PREFACE_LINE)
        && super::is_direct(&connection.info)
}

/// How a connection goes on after its last request of HTTP/1.
#[cold]
pub(in crate::connection) fn after_last(active: &mut Active) -> Ended {
    match active.upgrade.take() {
        Some(upgrade) => Ended::Http2(std::mem::take(&mut active.input), Some(*upgrade)),
        None => Ended::Close,
    }
}
