//! OPTIONS, TRACE, and the `Allow` field.
//!
//! Source: `make_allow`, `ap_send_http_trace`, `http_send_options` (modules/http).

use bytes::Bytes;
use wire::method::Method;

use crate::api::hooks::{Bound, Step, Verdict};
use crate::core::HttpCore;
use crate::core::server_config::Trace;
use crate::request::Request;
use crate::request::body::Body;
use crate::request::request_body::BodyError;

/// The value of `Allow`: the methods that handlers declared, in Apache's order.
pub(crate) fn allow(request: &Request) -> Vec<u8> {
    const FIRST: [(Method, &[u8]); 4] = [
        (Method::OPTIONS, b"OPTIONS"),
        (Method::GET, b"HEAD"),
        (Method::GET, b"GET"),
        (Method::POST, b"POST"),
    ];
    let allowed = request.response.allowed;
    let mut names: Vec<&[u8]> = Vec::new();
    names.extend(FIRST.iter().filter(|(of, _)| allowed.contains(*of)).map(|(_, name)| *name));
    let registry = &request.engine.server.methods;
    for method in allowed.iter() {
        let listed = FIRST.iter().any(|(of, _)| *of == method) || method == Method::TRACE;
        if let (false, Some(name)) = (listed, method.name(registry)) {
            names.push(name);
        }
    }
    if request.host.core.trace_enable.or(Trace::On) != Trace::Off {
        names.push(b"TRACE");
    }
    names.join(&b","[..])
}

/// Responds to `OPTIONS *` at once, without `Allow`.
pub(super) fn options<'r>(_: Bound<'r, HttpCore>, request: &'r mut Request) -> Step<'r> {
    if request.head.method != Method::OPTIONS || request.resource.uri != b"*" {
        return Step::DECLINED;
    }
    request.response.body = Body::Empty;
    Step::DONE
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
                Err(BodyError::Status(status)) => return Verdict::Status(status),
                Err(BodyError::Io(_)) => return Verdict::Status(400),
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
