//! The head of a container's response becomes that of the response to the client.
//! Source: `ajp_unmarshal_response`.

use server::errors;
use server::hooks::Bound;
use server::request::Request;
use wire::ajp::SendHeaders;
use wire::chars::is_field_value;

use crate::proxy::mod_proxy::{Proxy, reverse};

/// Puts status and fields into the request's response.
pub(super) fn put(request: &mut Request, bound: Bound<'_, Proxy>, head: &SendHeaders<'_>) {
    let response = &mut request.response;
    response.keeps_origin = true;
    // Apache writes 500 for what is no status.
    let status = Some(head.status).filter(|status| (100..=999).contains(status));
    response.status = status.unwrap_or(500);
    response.status_line = head
        .message
        .filter(|_| status.is_some())
        .and_then(|reason| status_line(head.status, reason));
    let mut fields = std::mem::take(&mut response.headers_out);
    fields.clear();
    for (name, value) in head.fields() {
        // The packets have lengths of their own.
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("Content-Length") || is("Transfer-Encoding") {
            continue;
        }
        if is("Content-Type") {
            request.response.content_type = Some(value.to_vec());
        }
        fields.add(name, value);
    }
    reverse::map_fields(request, bound, &mut fields);
    request.response.headers_out = fields;
    if status.is_none() {
        request.keep(errors::NoStatus);
    }
}

/// The status line, if it is not the usual one.
fn status_line(status: u16, reason: &[u8]) -> Option<Vec<u8>> {
    let line = [format!("{status:03} ").as_bytes(), reason].concat();
    let is_usual = line == wire::status::line(status).as_bytes();
    (!is_usual && is_field_value(reason)).then_some(line)
}
