//! The head of the backend's response becomes that of the response to the client.
//! Source: `ap_proxy_http_process_response`, `process_proxy_header`.

use std::cell::Cell;

use server::request::Request;
use wire::date::DATE_BYTES;
use wire::response::{Field, FieldName, ResponseHead};

use super::warnings;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{reverse, via};

/// Dates that a loop remembers.
const DATES_KEPT: usize = 4;

/// Puts status and fields of `head`, whose bytes are in `buf`, into the request's response.
pub(super) fn take(exchange: &mut Exchange<'_>, head: &ResponseHead, buf: &[u8]) {
    let bound = exchange.bound;
    let request = &mut *exchange.request;
    let response = &mut request.response;
    response.keeps_origin = true;
    // What modules have set before, as mod_rewrite its `Vary`, is replaced.
    response.headers_out.clear();
    response.status = head.status;
    response.status_line = status_line(head, buf);
    for field in head.fields.iter().filter(|field| field.is_kept) {
        add(request, field, buf);
    }
    let mut fields = std::mem::take(&mut request.response.headers_out);
    if head.has(FieldName::Warning) {
        warnings::clean(&mut fields);
    }
    reverse::map_fields(request, bound, &mut fields);
    via::of_response(request, bound, &mut fields);
    // A HEAD is answered as the GET would be.
    let is_chunked = head.has(FieldName::TransferEncoding) && !fields.contains(b"Content-Length");
    if request.head.header_only && is_chunked && request.head.protocol >= 1001 {
        fields.set(b"Transfer-Encoding", b"chunked");
    }
    request.response.headers_out = fields;
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

fn add(request: &mut Request, field: &Field, buf: &[u8]) {
    let (name, value) = (field.name(buf), field.value(buf));
    let fields = &mut request.response.headers_out;
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
        FieldName::ContentType => {
            fields.add(name, &value);
            // The first one counts.
            let own = &mut request.response.content_type;
            *own = own.take().or_else(|| Some(value.into_owned()));
        }
        _ => fields.add(name, &value),
    }
}
