//! The head of an answer: which fields, how the body is framed, whether the connection stays.
//!
//! Source: `ap_http_header_filter`, `ap_set_keepalive` (modules/http).

use wire::{HeadFlags, Method};

use crate::request::Request;

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// No body leaves (304, 204, HEAD).
    None,
    /// `Content-Length` says it.
    Known,
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The end of the connection says it.
    UntilClose,
}

/// What the sender needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Whether the connection stays open.
    pub keep: bool,
    /// How the body is delimited.
    pub length: Length,
}

/// Decides fields and framing of an answer that is about to be sent (`ap_http_header_filter`).
pub fn finish_headers(request: &mut Request, may_keep: bool) -> Framing {
    let length = frame(request);
    let wanted = may_keep && length != Length::UntilClose && is_persistent(request);
    let answered = request.client.keepalives.get();
    let keep = wanted && may_keep_alive(request, answered, false);
    Framing { keep, length }
}

fn frame(request: &mut Request) -> Length {
    if matches!(request.status, 100..=199 | 204 | 304) {
        return Length::None;
    }
    match request.body.length() {
        Some(length) if !request.chunked => {
            if !(request.header_only && request.headers_out.contains(b"Content-Length")) {
                request.headers_out.set(b"Content-Length", length.to_string().as_bytes());
            }
            Length::Known
        }
        _ if request.headers_out.contains(b"Content-Length") => Length::Known,
        _ if request.protocol >= 1001 && !request.env.contains(b"force-response-1.0") => {
            Length::Chunked
        }
        _ => Length::UntilClose,
    }
}

/// Whether the client's version and `Connection` field want the connection kept.
fn is_persistent(request: &Request) -> bool {
    if request.flags.has(HeadFlags::CLOSE) || request.env.contains(b"nokeepalive") {
        return false;
    }
    request.protocol >= 1001 || request.flags.has(HeadFlags::KEEP_ALIVE)
}

/// Whether the host's configuration lets the connection stay open after `answered` answers.
pub fn may_keep_alive(request: &Request, answered: u32, draining: bool) -> bool {
    let core = &request.host.core;
    let limit = core.max_keep_alive_requests.or(100);
    core.keep_alive.or(true)
        && !draining
        && is_persistent(request)
        && (limit == 0 || answered + 1 < limit)
}

/// Writes the connection's own lines.
pub fn write_connection(request: &Request, answered: u32, keep: bool, out: &mut Vec<u8>) {
    if !keep {
        out.extend_from_slice(b"Connection: close\r\n");
        return;
    }
    let core = &request.host.core;
    out.extend_from_slice(b"Keep-Alive: timeout=");
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(core.keep_alive_timeout().as_secs()).as_bytes());
    let limit = core.max_keep_alive_requests.or(100);
    if limit > 0 {
        out.extend_from_slice(b", max=");
        out.extend_from_slice(digits.format(limit.saturating_sub(answered + 1)).as_bytes());
    }
    out.extend_from_slice(b"\r\nConnection: Keep-Alive\r\n");
}

/// Writes status line and fields.
pub fn write_head(request: &Request, framing: Framing, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    match &request.status_line {
        Some(line) => out.extend_from_slice(line),
        None => out.extend_from_slice(wire::status::line(request.status).as_bytes()),
    }
    out.extend_from_slice(b"\r\nDate: ");
    out.extend_from_slice(&request.engine.date());
    out.extend_from_slice(&before_connection(request));
    if framing.length == Length::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    write_connection(request, request.client.keepalives.get(), framing.keep, out);
    out.extend_from_slice(&after_connection(request));
}

/// The lines that do not change from one answer to the next; `None` if any could.
pub fn reusable_head(request: &mut Request) -> Option<(Vec<u8>, Vec<u8>)> {
    if request.method != Method::GET || frame(request) != Length::Known {
        return None;
    }
    Some((before_connection(request), after_connection(request)))
}

/// From behind the date to the connection's own lines.
fn before_connection(request: &Request) -> Vec<u8> {
    let mut out = b"\r\n".to_vec();
    write_field(&mut out, b"Server", request.engine.server.banner.as_bytes());
    for (name, value) in request.headers_out.iter().chain(request.err_headers_out.iter()) {
        write_field(&mut out, name, value);
    }
    out
}

/// From behind the connection's own lines to the end.
fn after_connection(request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(content_type) = &request.content_type
        && !matches!(request.status, 204 | 304)
    {
        write_field(&mut out, b"Content-Type", content_type);
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}
