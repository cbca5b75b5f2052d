//! The header fields at the beginning of a file.
//!
//! Source: `ap_scan_script_header_err_core_ex` (server/util_script.c). mod_asis continues after an
//! error: fields that were set stay set, and gathered ones are lost.

use bstr::BStr;
use server::log::Level;
use server::request::Request;
use wire::Table;
use wire::field_lines::{self, FieldLine};
use wire::table::Overlap;

use super::Asis;
use crate::atoi::atoi;

/// Fields of the response itself; all others are sent with errors as well.
const OWN: [&[u8]; 5] =
    [b"Location", b"Content-Length", b"Content-Range", b"Transfer-Encoding", b"ETag"];

/// Copies the fields into the response, and returns the position at which the body begins.
pub(super) fn take(request: &mut Request, text: &[u8]) -> usize {
    let (mut rest, mut fields, mut cookies) = (text, Table::new(), Table::new());
    let mut is_first = true;
    while let Some(line) = field_lines::take(&mut rest) {
        match line {
            FieldLine::Field(name, value) => {
                field(request, name, value, &mut fields, &mut cookies);
            }
            FieldLine::End => {
                merge(request, &fields, &cookies);
                return text.len() - rest.len();
            }
            FieldLine::Malformed(_) => {
                // When Apache logs the line, it has already overwritten it.
                log(request, "malformed header from script", Some("Bad header: "));
                return text.len();
            }
        }
        is_first = false;
    }
    let fault = "End of script output before headers";
    log(request, if is_first { fault } else { "Premature end of script headers" }, None);
    text.len()
}

fn field(
    request: &mut Request,
    name: &[u8],
    value: &[u8],
    fields: &mut Table,
    cookies: &mut Table,
) {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    if is(b"Content-Type") {
        let media_type = field_lines::media_type(value);
        request.response.content_type = Some(media_type).filter(|text| !text.is_empty());
    } else if is(b"Status") {
        status(request, value);
    } else if is(b"Last-Modified") {
        modified(request, value);
    } else if is(b"Set-Cookie") {
        cookies.add(name, value);
    } else if OWN.into_iter().any(is) {
        request.response.headers_out.set(name, value);
    } else {
        fields.add(name, value);
    }
}

/// A number that is no status stays the response's, whose line is that of a 500: the connection
/// stays open.
fn status(request: &mut Request, line: &[u8]) {
    let status = u16::try_from(atoi(line)).unwrap_or(0);
    request.response.status = status;
    let is_sendable = field_lines::is_status_line(line, status);
    request.response.status_line = is_sendable.then(|| line.to_vec());
    if !(100..600).contains(&status) {
        let shown = BStr::new(line.get(..30).unwrap_or(line)).to_string();
        log(request, "Invalid status line from script", Some(&shown));
    }
}

/// A time in the future is that of the request.
fn modified(request: &mut Request, value: &[u8]) {
    let Some(date) = wire::date::parse(value) else { return };
    let now = i64::try_from(request.time_us / 1_000_000).unwrap_or(i64::MAX);
    let date = date.min(now);
    request.response.mtime_us = u64::try_from(date).ok().map(|seconds| seconds * 1_000_000);
    request.response.headers_out.set(b"Last-Modified", &wire::date::format(date));
}

fn merge(request: &mut Request, fields: &Table, cookies: &Table) {
    let all = &mut request.response.err_headers_out;
    let earlier: Vec<Vec<u8>> = all.get_all(b"Set-Cookie").map(<[u8]>::to_vec).collect();
    all.overlap(fields, Overlap::Merge);
    if !cookies.is_empty() {
        all.unset(b"Set-Cookie");
        for cookie in &earlier {
            all.add(b"Set-Cookie", cookie);
        }
        all.extend(cookies);
    }
}

fn log(request: &Request, what: &str, details: Option<&str>) {
    let name = request.resource.filename.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = BStr::new(name);
    match details {
        Some(details) => {
            request.log::<Asis>(Level::Error, 0, format_args!("{what} '{name}': {details}"))
        }
        None => request.log::<Asis>(Level::Error, 0, format_args!("{what}: {name}")),
    }
}
