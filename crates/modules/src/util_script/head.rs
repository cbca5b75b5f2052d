//! The head of a program's output, put into the response.
//!
//! Source: `ap_scan_script_header_err_core_ex`.

use server::errorlog::Verbatim;
use server::log::Level;
use server::module::Module;
use server::request::Request;
use wire::script_head::{ScriptFault, ScriptHead};
use wire::table::Overlap;
use wire::{Method, Table};

use crate::core::handler::condition;

/// Puts the fields of a head into the response. If it was not complete, those that are gathered
/// up to its end are lost.
///
/// A number that is no response's stays the status, whose line is that of a 500: the connection
/// stays open.
pub(crate) fn put<M: Module>(request: &mut Request, head: &ScriptHead, is_complete: bool) {
    let response = &mut request.response;
    if let Some(media_type) = &head.content_type {
        response.content_type = Some(media_type.clone()).filter(|text| !text.is_empty());
    }
    if let Some(status) = head.status {
        response.status = status;
        response.status_line = Some(head.status_line.clone()).filter(|line| !line.is_empty());
    }
    response.headers_out.overlap(&head.own, Overlap::Set);
    put_time(request, head.last_modified);
    if let Some(value) = &head.invalid_date {
        let text = format_args!("Ignored invalid header value: Last-Modified: '{value}'");
        request.log::<M>(Level::Info, 10247, text);
    }
    if let Some(line) = &head.invalid_status {
        log::<M>(request, "Invalid status line from script", Some(&line.to_string()));
    }
    if is_complete {
        merge(&mut request.response.err_headers_out, &head.fields, &head.cookies);
    }
}

/// Logs what is wrong with a program's output, with the name of the file.
pub(crate) fn log<M: Module>(request: &Request, what: &str, details: Option<&str>) {
    let name = request.resource.filename.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = Verbatim::new(name);
    match details {
        Some(details) => {
            request.log::<M>(Level::Error, 0, format_args!("{what} '{name}': {details}"))
        }
        None => request.log::<M>(Level::Error, 0, format_args!("{what}: {name}")),
    }
}

/// What a complete head means for the response: its framing is this server's, and the request's
/// conditions hold for what has no `Status`.
///
/// # Errors
/// The status of the response that the conditions ask for.
pub(crate) fn finish(request: &mut Request, head: &ScriptHead) -> Result<(), u16> {
    drop_framing(request);
    let is_conditional = head.status.is_none() && request.head.method == Method::GET;
    if is_conditional && let Some(status) = condition(request) {
        return Err(status);
    }
    Ok(())
}

/// Removes the fields about framing; `ap_trust_cgilike_cl` keeps the length.
pub(crate) fn drop_framing(request: &mut Request) {
    let fields = &mut request.response.headers_out;
    if !request.env.contains(b"ap_trust_cgilike_cl") {
        fields.unset(b"Content-Length");
    }
    fields.unset(b"Transfer-Encoding");
}

/// Logs why a head can't be read; returns the status of the response.
pub(crate) fn refuse<M: Module>(request: &Request, fault: &ScriptFault) -> u16 {
    match fault {
        ScriptFault::Malformed(line) => {
            let details = format!("Bad header: {line}");
            log::<M>(request, "malformed header from script", Some(&details));
        }
        fault => log::<M>(request, &fault.to_string(), None),
    }
    fault.status()
}

/// A time in the future is that of the request.
fn put_time(request: &mut Request, modified: Option<i64>) {
    let Some(date) = modified else { return };
    let now = i64::try_from(request.time_us / 1_000_000).unwrap_or(i64::MAX);
    let date = date.min(now);
    request.response.mtime_us = u64::try_from(date).ok().map(|seconds| seconds * 1_000_000);
    request.response.headers_out.set(b"Last-Modified", &wire::date::format(date));
}

/// Fields of a name are joined, except cookies.
fn merge(all: &mut Table, fields: &Table, cookies: &Table) {
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
