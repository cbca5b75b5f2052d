//! Whether a connection stays open behind a response, and the lines that say so.

use bstr::ByteSlice;
use server::request::Request;
use wire::HeadFlags;

use crate::respond::write_field;

/// Whether the host's configuration keeps the connection open after `responses` of them.
pub fn may_keep_alive(request: &Request, responses: u32, draining: bool) -> bool {
    let core = &request.host.core;
    core.keep_alive.or(true)
        && !draining
        && !core.keep_alive_timeout().is_zero()
        && request.is_persistent()
        && request.keep_alive_limit().is_none_or(|limit| responses < limit)
}

/// The connection's own option, unless a module has set it.
pub(crate) fn option(request: &Request, keep: bool) -> Option<&'static [u8]> {
    if keep {
        return request.head.flags.has(HeadFlags::KEEP_ALIVE).then_some(b"Keep-Alive");
    }
    let is_set = request.response.headers_out.contains_token(b"Connection", b"close");
    (!is_set).then_some(b"close")
}

/// Writes the connection's own lines behind a status, with what has made the response: the terms of
/// `Keep-Alive`, or the close. A module's `Connection` has the option already
/// (`before_connection`). `server` is where the line before `Server` ends.
pub fn write_connection(
    request: &Request,
    (status, made_by): (u16, Option<MadeBy>),
    responses: u32,
    keep: bool,
    server: usize,
    out: &mut Vec<u8>,
) {
    if request.connection.stream.is_some() {
        // HTTP/2 has none of these fields (RFC 9113 section 8.2.2).
        return;
    }
    if responses == 0 && tells_upgrade(request, status, made_by) {
        return write_first(request, keep, server, out);
    }
    let Some(option) = option(request, keep) else { return };
    if keep {
        out.extend_from_slice(b"Keep-Alive: ");
        request.keep_alive_terms(responses, out);
        out.extend_from_slice(b"\r\n");
    }
    if !request.response.headers_out.contains(b"Connection") {
        write_field(out, b"Connection", option);
    }
}

/// Whether the first response of a connection tells which protocols the host prefers.
fn tells_upgrade(request: &Request, status: u16, made_by: Option<MadeBy>) -> bool {
    if request.host.upgrades.is_none() || request.head.flags.has(HeadFlags::UPGRADE) {
        return false;
    }
    // Fields of a backend replace it.
    if request.response.keeps_origin {
        return false;
    }
    // It is the handler that tells it, before it looks at conditions.
    let fields = &request.head.headers_in;
    let is_condition = || fields.contains(b"If-Match") || fields.contains(b"If-Unmodified-Since");
    match made_by {
        Some(MadeBy::Handler) => true,
        Some(MadeBy::EarlierPhase) => false,
        None => matches!(status, 200..300 | 304) || status == 412 && is_condition(),
    }
}

/// What has made a response, if the status does not tell. Kept in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeBy {
    /// Another status than 2xx is a handler's, or that of an error document's handler.
    Handler,
    /// A status of success, or 304, is that of a phase before the handler, such as a redirect's.
    EarlierPhase,
}

impl MadeBy {
    /// Finds out after the phases, which ended with a status or not.
    pub(crate) fn of(request: &Request, ended_by: Option<u16>) -> Option<MadeBy> {
        match ended_by {
            Some(_) if request.prev.is_some() => Some(MadeBy::Handler),
            Some(200..300 | 304) if !request.reached_handler => Some(MadeBy::EarlierPhase),
            None if request.response.status >= 300 => Some(MadeBy::Handler),
            _ => None,
        }
    }
}

/// As [`write_connection`], for a response that tells protocols. They precede all fields but
/// `Server`, with the connection's options (`core_upgrade_handler`).
#[cold]
fn write_first(request: &Request, keep: bool, server: usize, out: &mut Vec<u8>) {
    let Some(names) = &request.host.upgrades else { return };
    let option = option(request, keep);
    let mut lines = Vec::with_capacity(64);
    write_field(&mut lines, b"Upgrade", names);
    if !request.response.headers_out.contains(b"Connection") {
        let options: Vec<&[u8]> = [&b"Upgrade"[..]].into_iter().chain(option).collect();
        write_field(&mut lines, b"Connection", &options.join(&b", "[..]));
    }
    let line = |from: usize| out.get(from..)?.find(b"\r\n").map(|at| from + at + 2);
    let place = line(server).and_then(line).unwrap_or(out.len());
    out.splice(place..place, lines);
    if keep && option.is_some() {
        out.extend_from_slice(b"Keep-Alive: ");
        request.keep_alive_terms(0, out);
        out.extend_from_slice(b"\r\n");
    }
}
