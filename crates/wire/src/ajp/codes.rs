//! The codes of names.

/// A method that has no code, and is sent as an attribute.
pub(super) const STORED_METHOD: u8 = 0xff;

/// The methods whose codes Apache uses, by code from 1. ACL (15) and SEARCH (21) have codes, too,
/// but no number in Apache.
const METHODS: [&str; 27] = [
    "OPTIONS",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "",
    "REPORT",
    "VERSION-CONTROL",
    "CHECKIN",
    "CHECKOUT",
    "UNCHECKOUT",
    "",
    "MKWORKSPACE",
    "UPDATE",
    "LABEL",
    "MERGE",
    "BASELINE-CONTROL",
    "MKACTIVITY",
];

/// Fields of requests, by code from 0xA001.
const REQUEST_FIELDS: [&str; 14] = [
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Connection",
    "Content-Type",
    "Content-Length",
    "Cookie",
    "Cookie2",
    "Host",
    "Pragma",
    "Referer",
    "User-Agent",
];

/// Fields of responses, by code from 0xA001.
const RESPONSE_FIELDS: [&str; 11] = [
    "Content-Type",
    "Content-Language",
    "Content-Length",
    "Date",
    "Last-Modified",
    "Location",
    "Set-Cookie",
    "Set-Cookie2",
    "Servlet-Engine",
    "Status",
    "WWW-Authenticate",
];

/// The code of a method (`sc_for_req_method_by_id`).
pub(super) fn method(name: &[u8]) -> u8 {
    let found = METHODS.iter().position(|known| known.as_bytes() == name && !known.is_empty());
    found.map_or(STORED_METHOD, |at| at as u8 + 1)
}

/// The code of a request's field (`sc_for_req_header`).
pub(super) fn request_field(name: &[u8]) -> Option<u16> {
    if !(4..=15).contains(&name.len()) {
        return None;
    }
    let is = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name);
    REQUEST_FIELDS.iter().position(is).map(|at| 0xa001 + at as u16)
}

/// Whether a number stands for the name of a field, instead of its length.
pub(super) const fn is_code(number: u16) -> bool {
    number & 0xff00 == 0xa000
}

/// The name of a response's field (`long_res_header_for_sc`).
pub(super) fn response_field(code: u16) -> Option<&'static str> {
    let at = usize::from(code & 0xff).checked_sub(1)?;
    RESPONSE_FIELDS.get(at).copied()
}
