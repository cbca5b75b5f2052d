//! The head of a response: fields, framing, persistence (`ap_http_header_filter`).

use std::borrow::Cow;

use server::errors::{EndsConnection, FailedInFilter, RefusedInChunks, ends_connection};
use server::request::{CLOSES_SILENTLY, Request, Response};
use wire::Method;

use crate::broken_fields::{broken_field, replace_broken};
use crate::persistence::{MadeBy, may_keep_alive, option, write_connection};
use crate::vary;

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// No body is sent (304, 204, HEAD).
    None,
    /// By `Content-Length`.
    Known,
    /// By `Transfer-Encoding: chunked`.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// The framing of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Whether the connection stays open.
    pub keep: bool,
    /// Whether the head says so.
    pub says_keep: bool,
    /// How the body is delimited.
    pub length: Length,
}

/// Sets fields and framing of a response before it is sent (`ap_http_header_filter`).
pub async fn finish_headers(request: &mut Request, may_keep: bool) -> Framing {
    prepare(request);
    match broken_field(request) {
        None => {
            let length = frame(request);
            framing(request, length, may_keep)
        }
        Some(field) => {
            let length = Box::pin(replace_broken(request, &field)).await;
            framing(request, length, false)
        }
    }
}

fn framing(request: &mut Request, length: Length, may_keep: bool) -> Framing {
    request.response.chunked = length == Length::Chunked;
    let responses = request.connection.keepalives.get();
    let is_silent = || request.notes.contains(CLOSES_SILENTLY);
    let says_keep = (may_keep || is_silent())
        && length != Length::UntilClose
        && !wants_close(request)
        && may_keep_alive(request, responses, false);
    Framing { keep: says_keep && may_keep, says_keep, length }
}

/// Prepares what does not depend on the connection: joined tables, removed fields, length.
pub(crate) fn prepare(request: &mut Request) {
    request.join_error_fields();
    if !request.response.keeps_origin {
        request.response.headers_out.unset(b"Date");
        request.response.headers_out.unset(b"Server");
    }
    if request.env.contains(b"force-no-vary") {
        request.response.headers_out.unset(b"Vary");
        request.head.protocol = request.head.protocol.min(1000);
        request.env.set(b"force-response-1.0", b"1");
    } else {
        vary::join(request);
    }
    if request.notes.contains(b"no-etag") {
        request.response.headers_out.unset(b"ETag");
    }
    if request.head.protocol > 1000 && request.env.contains(b"downgrade-1.0") {
        request.head.protocol = 1000;
    }
    if wire::status::is_header_only(request.response.status) {
        for name in [&b"Transfer-Encoding"[..], b"Content-Length"] {
            request.response.headers_out.unset(name);
        }
        request.response.content_type = None;
        request.response.content_encoding = None;
        request.response.content_languages.clear();
        request.response.chunked = false;
        return;
    }
    // The request's own values of content fields override fields set by hand.
    if request.response.headers_out.contains(b"Content-Type")
        && let Some(value) = request.media_type().map(Cow::into_owned)
    {
        request.response.headers_out.set(b"Content-Type", &value);
    }
    if request.response.content_encoding.is_some() {
        request.response.headers_out.unset(b"Content-Encoding");
    }
    join_languages(request);
}

/// Joins languages from a field with those of the file.
fn join_languages(request: &mut Request) {
    let languages = &mut request.response.content_languages;
    if languages.is_empty() {
        return;
    }
    let Some(list) = request.response.headers_out.get(b"Content-Language") else { return };
    for item in wire::list::items(list).map(wire::list::condensed) {
        if !languages.iter().any(|known| known.eq_ignore_ascii_case(&item)) {
            languages.push(item);
        }
    }
    request.response.headers_out.unset(b"Content-Language");
}

pub(crate) fn frame(request: &mut Request) -> Length {
    // Another process sends the body, whatever the fields say of it.
    if request.response.passing.is_some() {
        return Length::None;
    }
    if request.response.is_raw {
        return Length::UntilClose;
    }
    if wire::status::is_header_only(request.response.status) {
        return Length::None;
    }
    if request.head.header_only {
        return head_of_head(request);
    }
    match request.response.body.length() {
        // A module has set the framing: a length beside it would be ambiguous.
        Some(_)
            if !request.response.chunked
                && request.response.headers_out.contains(b"Transfer-Encoding") =>
        {
            request.response.headers_out.unset(b"Content-Length");
            Length::Known
        }
        Some(length) if !request.response.chunked && !lacks_length(request) => {
            let mut digits = itoa::Buffer::new();
            request.response.headers_out.set(b"Content-Length", digits.format(length).as_bytes());
            Length::Known
        }
        _ => {
            // Remove a length that a filter has made wrong, or a second framing.
            request.response.headers_out.unset(b"Content-Length");
            request.response.headers_out.unset(b"Transfer-Encoding");
            // If the connection ends anyway, Apache does not count requests. A handler's own status
            // ends it, too, but the body is still in chunks.
            let ends = request.kept::<EndsConnection>().is_some() && !is_refused_in_chunks(request)
                || request.kept::<FailedInFilter>().is_some()
                    && !may_keep_alive(request, request.connection.keepalives.get(), false);
            if request.head.protocol >= 1001 && !ends {
                Length::Chunked
            } else {
                Length::UntilClose
            }
        }
    }
}

fn is_refused_in_chunks(request: &Request) -> bool {
    request.response.status == 413 && request.kept::<RefusedInChunks>().is_some()
}

/// The length that GET would have, but never a 0, which may be a default (`http_cl_head_zero`).
fn head_of_head(request: &mut Request) -> Length {
    let length = request.response.body.length().filter(|_| !lacks_length(request));
    // HTTP/2 has no codings.
    let has_coding =
        request.head.protocol < 2000 && request.response.headers_out.contains(b"Transfer-Encoding");
    if request.response.chunked || length.is_none() || has_coding {
        request.response.headers_out.unset(b"Content-Length");
    } else if let Some(length) = length.filter(|length| *length > 0) {
        let mut digits = itoa::Buffer::new();
        request.response.headers_out.set(b"Content-Length", digits.format(length).as_bytes());
    }
    if request.response.headers_out.get(b"Content-Length") == Some(b"0") {
        request.response.headers_out.unset(b"Content-Length");
    }
    Length::None
}

/// Whether only a handler can set the length: Apache's filter for it has already been passed.
fn lacks_length(request: &Request) -> bool {
    request.kept::<FailedInFilter>().is_some()
        && !request.response.headers_out.contains(b"Content-Length")
}

/// Whether the connection must close: by `force-response-1.0`, a module, or the status.
fn wants_close(request: &Request) -> bool {
    is_forced_10(request)
        || request.response.headers_out.contains_token(b"Connection", b"close")
        || ends_connection(request)
}

fn is_forced_10(request: &Request) -> bool {
    request.head.protocol == 1000 && request.env.contains(b"force-response-1.0")
}

/// Whether a variable affects how responses are sent.
pub fn has_connection_variable(request: &Request) -> bool {
    CONNECTION_VARIABLES.iter().any(|name| request.env.contains(name))
}

/// The variables that are read for each response, cached or not.
const CONNECTION_VARIABLES: [&[u8]; 4] =
    [b"nokeepalive", b"force-no-vary", b"force-response-1.0", b"downgrade-1.0"];

/// Writes status line and fields.
pub fn write_head(request: &Request, framing: Framing, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_forced_10(request) { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    put_status_line(&request.response, request.connection.stream.is_some(), out);
    out.extend_from_slice(b"\r\nDate: ");
    out.extend_from_slice(request.response.of_origin(b"Date").unwrap_or(&request.engine.date()));
    let server = out.len();
    before_connection(request, option(request, framing.says_keep), out);
    let (status, responses) = (request.response.status, request.connection.keepalives.get());
    let by = (status, request.kept::<MadeBy>().copied());
    write_connection(request, by, responses, framing.says_keep, server, out);
    if framing.length == Length::Chunked {
        out.extend_from_slice(CHUNKED);
    }
    after_connection(request, out);
}

/// Writes the module's status line, or the usual one. Digits alone get the usual reason; the line
/// of another status (a condition has made a 304 of it) is passed over, as in
/// `validate_status_line`.
#[inline]
fn put_status_line(response: &Response, is_streamed: bool, out: &mut Vec<u8>) {
    let (own, status) = (response.status_line.as_deref(), response.status);
    match own.filter(|line| is_line_of(status, line)) {
        Some(line) if line.len() > STATUS_DIGITS => out.extend_from_slice(line),
        Some(digits) => {
            out.extend_from_slice(digits);
            out.push(b' ');
            out.extend_from_slice(wire::status::reason(status).as_bytes());
        }
        // HTTP/2 has the number alone, whatever it is.
        None if is_streamed
            && wire::status::reason(status).is_empty()
            && wire::status::is_valid(status) =>
        {
            out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
            out.push(b' ');
        }
        None => out.extend_from_slice(wire::status::line(status).as_bytes()),
    }
}

/// The length of a status code.
const STATUS_DIGITS: usize = 3;

fn is_line_of(status: u16, line: &[u8]) -> bool {
    let digits = line.get(..STATUS_DIGITS.min(line.len())).unwrap_or_default();
    std::str::from_utf8(digits).is_ok_and(|digits| digits.parse() == Ok(status))
}

/// The lines of a head that are the same for all responses from the cache.
pub struct ReusableHead {
    /// From `Date` to the connection's own lines.
    pub before: Vec<u8>,
    /// From the connection's own lines to the empty line.
    pub after: Vec<u8>,
    /// Whether the body is chunked.
    pub chunked: bool,
}

/// The lines that are the same for all responses; `None` if any may vary.
pub fn reusable_head(request: &mut Request) -> Option<ReusableHead> {
    prepare(request);
    let response = &request.response;
    let has_usual_line =
        response.status_line.is_none() && !wire::status::reason(response.status).is_empty();
    if request.head.method != Method::GET || !has_usual_line {
        return None;
    }
    let chunked = match frame(request) {
        Length::None | Length::Known => false,
        Length::Chunked => true,
        Length::UntilClose => return None,
    };
    if request.response.headers_out.contains(b"Connection") || broken_field(request).is_some() {
        return None;
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    before_connection(request, None, &mut before);
    if chunked {
        after.extend_from_slice(CHUNKED);
    }
    after_connection(request, &mut after);
    Some(ReusableHead { before, after, chunked })
}

/// The field of a chunked body.
const CHUNKED: &[u8] = b"Transfer-Encoding: chunked\r\n";

/// Writes the lines from the date to the connection's own. The connection's option joins the first
/// `Connection` of a module.
fn before_connection(request: &Request, mut option: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
    let own = request.engine.server.banner.as_bytes();
    write_field(out, b"Server", request.response.of_origin(b"Server").unwrap_or(own));
    for (name, value) in request.response.headers_out.iter() {
        if request.response.is_of_origin(name) {
            continue;
        }
        if name.eq_ignore_ascii_case(b"Connection")
            && let Some(option) = option.take()
        {
            write_field(out, name, &[value, b", ", option].concat());
        } else {
            write_field(out, name, value);
        }
    }
}

/// Writes the lines after the connection's own.
fn after_connection(request: &Request, out: &mut Vec<u8>) {
    // A field of this name has the value, and its own place, as that of a backend.
    if !request.response.headers_out.contains(b"Content-Type")
        && let Some(value) = request.media_type()
    {
        write_field(out, b"Content-Type", &value);
    }
    if let Some(value) = &request.response.content_encoding {
        write_field(out, b"Content-Encoding", value);
    }
    if !request.response.content_languages.is_empty() {
        write_field(out, b"Content-Language", &request.response.content_languages.join(&b","[..]));
    }
    if request.response.no_cache && !request.response.headers_out.contains(b"Expires") {
        write_field(out, b"Expires", &request.engine.date());
    }
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}
