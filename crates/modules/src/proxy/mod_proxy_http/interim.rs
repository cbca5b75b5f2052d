//! Interim responses of the backend (RFC 9110 section 15.2). Source:
//! `ap_proxy_http_process_response`, `ap_send_interim_response`.

use server::errorlog::Verbatim;
use server::log::Level;
use wire::Table;
use wire::chars::{is_field_value, is_token_string};
use wire::response::ResponseHead;

use super::{ProxyHttp, answer};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{reverse, via};

/// The field whose values outlive an interim response.
const SET_COOKIE: &[u8] = b"Set-Cookie";

/// Forwards one, whose bytes are in `buf`, as `proxy-interim-response` says.
pub(super) fn forward(exchange: &mut Exchange<'_>, head: &ResponseHead, buf: &[u8]) {
    let mut fields = Table::new();
    for field in head.fields.iter().filter(|field| field.is_kept) {
        answer::add(&mut fields, field, buf);
    }
    reverse::map_fields(exchange.request, exchange.bound, &mut fields);
    let is_forwarded = is_forwarded(exchange, head.status);
    // As in Apache, cookies that the client has not got are those of the next response.
    let waiting = &mut exchange.request.response.headers_out;
    if !is_forwarded {
        return fields.get_all(SET_COOKIE).for_each(|cookie| waiting.add(SET_COOKIE, cookie));
    }
    waiting.get_all(SET_COOKIE).for_each(|cookie| fields.add(SET_COOKIE, cookie));
    waiting.unset(SET_COOKIE);
    // A reason that could end the line is replaced, as that of a final response.
    let reason = match head.has_valid_reason(buf) {
        true => head.reason(buf),
        false => wire::status::reason(head.status).as_bytes(),
    };
    // A final response with another field is refused. The client can do without this one.
    let mut lines = Vec::new();
    for (name, value) in fields.iter() {
        if is_token_string(name) && is_field_value(value) {
            lines.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
        }
    }
    push(exchange, head.status, reason, &lines);
}

/// Whether `proxy-interim-response` lets one with this status pass. A `100 Continue` tells a client
/// that does not wait for it nothing.
fn is_forwarded(exchange: &mut Exchange<'_>, status: u16) -> bool {
    let request = &mut *exchange.request;
    if request.head.protocol < 1001 {
        return false;
    }
    let is_continue = status == 100;
    let policy = request.env.get(b"proxy-interim-response");
    let is_strict = policy.is_some_and(|policy| policy.eq_ignore_ascii_case(b"RFC"));
    if let Some(policy) = policy.filter(|_| !is_strict) {
        if !policy.eq_ignore_ascii_case(b"Suppress") {
            let policy = Verbatim::new(policy);
            let text = format_args!("undefined proxy interim response policy ({policy})");
            request.log::<ProxyHttp>(Level::Warn, 1108, text);
        }
        return false;
    }
    if is_continue && request.body_in.is_empty() && request.body_in.awaits_continue() {
        request.body_in.has_continued();
        return true;
    }
    // Reading the body sends it to a client that waits for it.
    !is_continue || is_strict && !request.body_in.expects_continue()
}

/// Adds one, with the lines of its fields, to those that wait for the client.
pub(in crate::proxy) fn push(exchange: &Exchange<'_>, status: u16, reason: &[u8], fields: &[u8]) {
    let request = &*exchange.request;
    let mut out = request.connection.interim.take().into_vec();
    out.extend_from_slice(format!("HTTP/1.1 {status:03} ").as_bytes());
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(fields);
    if let Some(via) = via::of_request(request, exchange.bound) {
        out.extend_from_slice(&[b"Via: ", &via[..], b"\r\n"].concat());
    }
    out.extend_from_slice(b"\r\n");
    request.connection.interim.set(out.into());
}
