//! The head of the backend's response becomes that of the response to the client.
//! Source: `ap_proxy_http_process_response`, `process_proxy_header`.

use std::cell::Cell;

use server::errors;
use server::log::Level;
use wire::Table;
use wire::date::DATE_BYTES;
use wire::response::{Field, FieldName, ResponseHead};

use super::{ProxyHttp, warnings};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{failover, reverse, via};

/// Dates that a loop remembers.
const DATES_KEPT: usize = 4;

/// Whether all names of fields are tokens (`check_headers`).
pub(super) fn check_names(
    exchange: &mut Exchange<'_>,
    head: &ResponseHead,
    input: &[u8],
) -> Result<(), u16> {
    let Err(found) = head.check(input) else { return Ok(()) };
    let request = &mut *exchange.request;
    request.log_core(Level::Error, found.log_number(), &found.to_string(), None);
    request.keep(errors::EndsConnection);
    request.keep(errors::FailedInFilter);
    if head.status != 200 {
        request.keep(errors::FailedAgain);
    }
    request.keep(failover::Answered);
    Err(found.status())
}

/// The status of a request before the backend has responded: an error's, if the response will be
/// its document.
pub(super) struct Original {
    status: u16,
    status_line: Option<Vec<u8>>,
}

impl Original {
    /// Puts an error's status back, if `ProxyErrorOverride` has it, and the document a body.
    pub(super) fn restore(self, exchange: &mut Exchange<'_>) {
        let replaced = exchange.bound.dir.error_override.get();
        let is_replaced = replaced.is_some_and(|set| set.has(self.status));
        let request = &mut *exchange.request;
        let has_body = !request.head.header_only && !matches!(request.response.status, 204 | 304);
        if is_replaced && has_body {
            request.response.status = self.status;
            request.response.status_line = self.status_line;
        }
    }
}

/// Puts status and fields of `head`, whose bytes are in `buf`, into the request's response. Returns
/// the status that was there.
pub(super) fn take(exchange: &mut Exchange<'_>, head: &ResponseHead, buf: &[u8]) -> Original {
    let bound = exchange.bound;
    let request = &mut *exchange.request;
    let response = &mut request.response;
    response.keeps_origin = true;
    // What modules have set before, as mod_rewrite its `Vary`, is replaced, except cookies.
    let cookies: Vec<Vec<u8>> =
        response.headers_out.get_all(b"Set-Cookie").map(<[u8]>::to_vec).collect();
    response.headers_out.clear();
    let original = Original { status: response.status, status_line: response.status_line.take() };
    response.status = head.status;
    response.status_line = status_line(head, buf);
    for field in head.fields.iter().filter(|field| field.is_kept) {
        add(&mut request.response.headers_out, field, buf);
    }
    let mut fields = std::mem::take(&mut request.response.headers_out);
    // The first one counts, and replaces that of a file.
    if let Some(first) = fields.get(b"Content-Type") {
        request.response.content_type = Some(first.to_vec());
    }
    if head.has(FieldName::Warning) {
        warnings::clean(&mut fields);
    }
    if head.has(FieldName::SetCookie) {
        // They are the last fields.
        put_before(&mut fields, Vec::new());
    }
    reverse::map_fields(request, bound, &mut fields);
    if !cookies.is_empty() {
        put_before(&mut fields, cookies);
    }
    if !head.is_simple {
        via::of_response(request, bound, &mut fields);
    } else if request.head.header_only {
        // What has been read of HTTP/0.9 is the body, as far as is known.
        fields.set(b"Content-Length", head.preread(buf).len().to_string().as_bytes());
    }
    // A HEAD is answered as the GET would be.
    let is_chunked = head.has(FieldName::TransferEncoding) && !fields.contains(b"Content-Length");
    if request.head.header_only && is_chunked && request.head.protocol >= 1001 {
        fields.set(b"Transfer-Encoding", b"chunked");
    }
    request.response.headers_out = fields;
    original
}

/// Puts cookies that are there already before those of the response.
fn put_before(fields: &mut Table, mut cookies: Vec<Vec<u8>>) {
    cookies.extend(fields.get_all(b"Set-Cookie").map(<[u8]>::to_vec));
    fields.unset(b"Set-Cookie");
    cookies.iter().for_each(|cookie| fields.add(b"Set-Cookie", cookie));
}

/// The status of an error document of this server that replaces the response
/// (`ProxyErrorOverride`). The connection is closed, since the rest of the response is not read.
pub(super) fn overridden(exchange: &mut Exchange<'_>) -> Option<u16> {
    let response = &mut exchange.request.response;
    let status = response.status;
    if !exchange.bound.dir.error_override.get().is_some_and(|set| set.has(status)) {
        return None;
    }
    if status == 401 {
        // The first one counts.
        if let Some(challenge) = response.headers_out.get(b"WWW-Authenticate") {
            response.err_headers_out.set(b"WWW-Authenticate", challenge);
        } else {
            let text = format_args!("origin server sent 401 without WWW-Authenticate header");
            exchange.request.log::<ProxyHttp>(Level::Error, 1109, text);
        }
    }
    let response = &mut exchange.request.response;
    response.status = 200;
    response.keeps_origin = false;
    exchange.request.notes.set(failover::OVERRIDDEN, b"1");
    Some(status)
}

/// The backend's status line, if it is not the usual one.
pub(in crate::proxy) fn status_line(head: &ResponseHead, buf: &[u8]) -> Option<Vec<u8>> {
    if head.is_simple || !head.has_valid_reason(buf) {
        return None;
    }
    let reason = head.reason(buf);
    let usual = wire::status::line(head.status);
    if usual.as_bytes().get(4..) == Some(reason) {
        return None;
    }
    let mut line = format!("{:03} ", head.status).into_bytes();
    line.extend_from_slice(reason);
    Some(line)
}

thread_local! {
    /// The dates that were written last, in the preferred format, and the place of the next.
    static DATES: Cell<([[u8; DATE_BYTES]; DATES_KEPT], usize)> =
        const { Cell::new(([[0; DATE_BYTES]; DATES_KEPT], 0)) };
}

/// Whether it is one of the dates that were written last: many responses have the same.
fn is_preferred(date: &[u8]) -> bool {
    DATES.with(|dates| dates.get().0.iter().any(|known| known == date))
}

fn remember(date: &[u8; DATE_BYTES]) {
    DATES.with(|dates| {
        let (mut known, next) = dates.get();
        if let Some(place) = known.get_mut(next) {
            *place = *date;
        }
        dates.set((known, (next + 1) % DATES_KEPT));
    });
}

/// Adds a field, a date in the preferred format.
pub(super) fn add(fields: &mut Table, field: &Field, buf: &[u8]) {
    let (name, value) = (field.name(buf), field.value(buf));
    match field.name {
        FieldName::Date | FieldName::Expires | FieldName::LastModified => {
            if is_preferred(&value) {
                return fields.add(name, &value);
            }
            match wire::date::parse(&value) {
                Some(seconds) => {
                    let date = wire::date::format(seconds);
                    remember(&date);
                    fields.add(name, &date);
                }
                None => fields.add(name, &value),
            }
        }
        _ => fields.add(name, &value),
    }
}
