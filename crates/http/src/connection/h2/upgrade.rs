//! The ways from HTTP/1.1 to HTTP/2 on a connection: its preface, and a request that asks for it
//! (RFC 7540 section 3.2).

use std::io;
use std::sync::Arc;

use rt::{Pooled, Stream};
use server::hooks::Phase;
use server::host::Host;
use server::request::Request;
use wire::chars::is_token_string;
use wire::{Body, HeadError, HeadFlags, RequestHead, Table, Version, h2, list};

use super::{IN_CLEAR, OVER_TLS, settings};
use crate::connection::finish::Sent;
use crate::connection::{Active, Connection, Ended};

/// The line with which a client of HTTP/2 begins.
const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// A request that is served as the first of a connection of HTTP/2.
pub(in crate::connection) struct Upgrade {
    /// The value of `HTTP2-Settings`.
    pub settings: Vec<u8>,
    pub head: Box<RequestHead>,
    pub refusal: Option<Box<HeadError>>,
    pub asking: Asking,
}

/// The request of HTTP/1.1 that has asked: its own response is the 101.
pub(in crate::connection) struct Asking {
    request: Pooled<Request>,
    /// The host whose settings the connection gets.
    pub host: Arc<Host>,
    /// Where in the connection's bytes the response has begun.
    began: u64,
    /// What had been received.
    received: u64,
}

impl Asking {
    /// Counts and logs it.
    pub async fn finish(mut self, connection: &mut Connection) {
        let received = connection.stream.as_ref().map_or(self.received, Stream::received);
        self.request.traffic.bytes_in += received - self.received;
        let sent = Sent { began: self.began, says_keep: false, outcome: Ok(()) };
        let has_log = !self.request.plan.phase(Phase::LogTransaction).is_empty();
        connection.finish(&mut self.request, &sent, has_log).await;
        self.request.renew();
    }
}

/// Whether a request of HTTP/1.1, without a body, asks for HTTP/2, and its host has that
/// (`h2_protocol_propose`).
pub(in crate::connection) fn is_asked_for(active: &Active, request: &Request) -> bool {
    let head = &active.head;
    head.flags.has(HeadFlags::UPGRADE) && asks(head, request)
}

#[cold]
fn asks(head: &RequestHead, request: &Request) -> bool {
    let has_body = !matches!(head.body, Body::None | Body::Length(0));
    if has_body || head.version < Version::HTTP_11 {
        return false;
    }
    let (host, is_tls) = (&request.host, request.connection.tls.is_some());
    let name = if is_tls { OVER_TLS } else { IN_CLEAR };
    let fields = &request.head.headers_in;
    let mut settings_fields = fields.get_all(b"HTTP2-Settings");
    // The client would wait for HTTP/2 after a 101.
    let are_valid =
        |value: &[u8]| h2::Connection::upgraded(super::limits(host), value, 0).is_some();
    settings(host, is_tls).is_some()
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

/// Tells the client of HTTP/1.1 that the connection changes. The request is served again as the
/// first of HTTP/2, from its beginning.
pub(in crate::connection) async fn begin_upgrade(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
) -> io::Result<bool> {
    let Some(stream) = connection.stream.as_mut() else { return Ok(false) };
    let name = if connection.info.tls.is_some() { "h2" } else { "h2c" };
    let (began, received) = (stream.sent(), stream.received());
    let text = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: {name}\r\nConnection: Upgrade\r\n\r\n"
    );
    stream.write_all(text.as_bytes(), request.host.core.timeout()).await?;
    request.response.status = 101;
    request.response.headers_out.set(b"Upgrade", name.as_bytes());
    request.response.headers_out.set(b"Connection", b"Upgrade");
    let settings = request.head.headers_in.get(b"HTTP2-Settings").unwrap_or_default().to_vec();
    let options = crate::connection::head_options(&connection.engine, &connection.info);
    let limits = request.host.core.head_limits();
    let (head, refusal) =
        match active.head.upgraded(request.head.headers_in.clone(), &limits, &options) {
            Ok(head) => (head, None),
            Err(error) => (std::mem::take(&mut active.head), Some(error)),
        };
    let host = request.host.clone();
    let asking = Asking { request, host, began, received };
    active.upgrade = Some(Box::new(Upgrade { settings, head: Box::new(head), refusal, asking }));
    Ok(false)
}

/// Whether a client begins with HTTP/2, and may.
#[cold]
pub(in crate::connection) fn is_preface(connection: &Connection, active: &Active) -> bool {
    connection.responses == 0
        && active.head.line() == b"PRI * HTTP/2.0"
        && active.input.starts_with(PREFACE_LINE)
        && super::is_direct(&connection.info.base_host, connection.info.tls.is_some())
}

/// How a connection goes on after its last request of HTTP/1.
#[cold]
pub(in crate::connection) fn after_last(active: &mut Active) -> Ended {
    match active.upgrade.take() {
        Some(upgrade) => Ended::Http2(std::mem::take(&mut active.input), Some(*upgrade)),
        None => Ended::Close,
    }
}
