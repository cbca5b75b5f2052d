//! OPTIONS and TRACE.
//!
//! Source: `ap_send_http_trace`, `http_send_options` (modules/http).

use bytes::Bytes;
use server::body::Body;
use server::core::Trace;
use server::discard::discard_body_early;
use server::hooks::{Bound, Step, Verdict};
use server::request::Request;
use wire::method::Method;

use super::http_core::HttpCore;

/// Responds to `OPTIONS *` at once, without `Allow`, but not before its body has come.
pub(super) fn options<'r>(_: Bound<'r, HttpCore>, request: &'r mut Request) -> Step<'r> {
    if request.head.method != Method::OPTIONS || request.resource.uri != b"*" {
        return Step::DECLINED;
    }
    request.response.body = Body::Empty;
    if request.body_in.is_empty() {
        return Step::DONE;
    }
    Step::Pending(Box::pin(async {
        discard_body_early(request).await.map_or_else(Verdict::Status, |()| Verdict::Done)
    }))
}

/// Responds to TRACE without a body in a handler (`ap_send_http_trace`).
pub(crate) fn answer_trace(request: &mut Request) -> Verdict {
    let enabled = request.host.core.trace_enable.or(Trace::On);
    let refused = match enabled {
        Trace::Off => Some((405, &b"TRACE denied by server configuration"[..])),
        _ if !request.body_in.is_empty() => {
            Some((413, &b"TRACE with a request body is not allowed"[..]))
        }
        _ => None,
    };
    if let Some((status, why)) = refused {
        request.notes.set(b"error-notes", why);
        return Verdict::Status(status);
    }
    echo(request, &[]);
    Verdict::Ok
}

/// Most bytes of a TRACE body under `extended`.
const TRACE_BODY_LIMIT: usize = 64 * 1024;

/// TRACE: sends the request back.
pub(super) fn trace<'r>(_: Bound<'r, HttpCore>, request: &'r mut Request) -> Step<'r> {
    if request.head.method != Method::TRACE {
        return Step::DECLINED;
    }
    let enabled = request.host.core.trace_enable.or(Trace::On);
    if enabled == Trace::Off {
        request.notes.set(b"error-notes", b"TRACE denied by server configuration");
        return Step::status(405);
    }
    if request.body_in.is_empty() {
        echo(request, &[]);
        return Step::DONE;
    }
    if enabled != Trace::Extended {
        request.notes.set(b"error-notes", b"TRACE with a request body is not allowed");
        return Step::status(413);
    }
    Step::Pending(Box::pin(async move {
        let mut body = Vec::new();
        while let Some(piece) = request.body_in.next().await {
            match piece {
                Ok(piece) if body.len() + piece.len() <= TRACE_BODY_LIMIT => {
                    body.extend_from_slice(&piece);
                }
                Ok(_) => {
                    let why = b"Extended TRACE request bodies cannot exceed 64k";
                    request.notes.set(b"error-notes", why);
                    return Verdict::Status(413);
                }
                Err(error) => return Verdict::Status(error.status(request)),
            }
        }
        echo(request, &body);
        Verdict::Done
    }))
}

fn echo(request: &mut Request, body: &[u8]) {
    let mut first: &Request = request;
    while let Some(prev) = &first.prev {
        first = prev;
    }
    let mut out = first.head.request_line.clone();
    out.extend_from_slice(b"\r\n");
    for (name, value) in first.head.headers_in.iter() {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    request.response.content_type = Some(b"message/http".to_vec());
    request.response.chunked = true;
    request.response.body = Body::Bytes(Bytes::from(out));
}
