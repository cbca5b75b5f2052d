//! The head of a backend's response becomes that of the response to the client.
//! Source: `h2_proxy_stream_add_header_out`, `h2_proxy_stream_end_headers_out`.

use wire::Table;

use super::link;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{reverse, via};
use crate::proxy::mod_proxy_http::interim;

/// Fields that end here.
const IGNORED: [&[u8]; 1] = [b"Alt-Svc"];

/// Puts status and fields into the request's response.
pub(super) fn put(exchange: &mut Exchange<'_>, status: u16, mut fields: Table) {
    let bound = exchange.bound;
    map(exchange, &mut fields);
    let request = &mut *exchange.request;
    let response = &mut request.response;
    response.keeps_origin = true;
    response.status = status;
    response.status_line = None;
    if let Some(first) = fields.get(b"Content-Type") {
        response.content_type = Some(first.to_vec());
    }
    // What was there before, as cookies that modules have set, stays.
    response.headers_out.extend(&fields);
    let mut fields = std::mem::take(&mut response.headers_out);
    via::of_response(request, bound, &mut fields);
    request.response.headers_out = fields;
}

/// Takes out what ends here, and maps what names the backend.
fn map(exchange: &Exchange<'_>, fields: &mut Table) {
    for name in IGNORED {
        fields.unset(name);
    }
    link::map(exchange, fields);
    reverse::map_fields(exchange.request, exchange.bound, fields);
}

/// Forwards an interim response to a client of HTTP/2, and `100 Continue` to one that waits for it.
/// As in Apache, its fields become those of the response for others.
pub(super) fn take_interim(exchange: &mut Exchange<'_>, status: u16, mut fields: Table) {
    // Reading the body sends it to a client that waits for it.
    if status == 100 {
        return;
    }
    map(exchange, &mut fields);
    let request = &mut *exchange.request;
    if request.connection.stream.is_none() {
        request.response.headers_out.extend(&fields);
        return;
    }
    let line = wire::status::line(status);
    let reason = line.as_bytes().get(4..).unwrap_or_default();
    let mut text = Vec::new();
    for (name, value) in fields.iter() {
        text.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
    }
    interim::push(exchange, status, reason, &text);
}
