//! What follows the handler: responses that the phases made are put into the cache, and ranges are
//! cut from them.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use rt::ChangeSource;

use super::{Active, Connection, fast, send};
use crate::byterange;
use crate::cache::response::{
    CachedResponse, Content, Fill, IN_MEMORY_BYTES, MADE_BYTES, MADE_FROM_BYTES,
};
use crate::{persistence, respond};
use server::body::{Body, BodyStream, Chunk};
use server::errors;
use server::explain::{Event, Kind};
use server::files::validity::Trace;
use server::filter::{self, Stage};
use server::request::{FileKind, Request};
use server::variant_key::Inputs;

/// Before the phases: prepares to cache the response.
pub(super) fn begin(connection: &Connection, active: &Active, request: &mut Request) -> Fill {
    let engine = &connection.engine;
    let fill =
        engine.responses.begin_fill(engine.handle.change_source(), request, active.head.path());
    if !matches!(fill, Fill::None) {
        request.depends.trace = Some(Trace::default());
    }
    fill
}

/// Whether the response is the complete one from which ranges are cut.
pub(super) fn is_whole(request: &Request) -> bool {
    let is_behind = |stage: Stage| stage > Stage::PROTOCOL;
    !request.response.filters.iter().any(|attached| is_behind(attached.stage))
}

/// After the phases: caches the response, or notes the paths that it depends on.
pub(super) async fn store(
    connection: &Connection,
    active: &Active,
    request: &mut Request,
    fill: Fill,
) {
    let engine = &connection.engine;
    let change_source = engine.handle.change_source();
    let (is_watched, path) =
        (matches!(change_source, ChangeSource::Watcher(_)), active.head.path());
    if !is_reusable(request, is_watched) || !has_own_query(active, request) {
        return;
    }
    if matches!(fill, Fill::Paths) && !is_watched {
        let looked_at = request.depends.trace.take().unwrap_or_default();
        return engine.responses.note_paths(request, path, looked_at.paths);
    }
    if matches!(request.response.body, Body::Stream(_)) && !request.head.header_only {
        make_whole(request).await;
    }
    let Some(head) = respond::reusable_head(request) else { return };
    let Some(content) = content(connection, request, head.chunked) else { return };
    let Ok(cached) = CachedResponse::new(request, head, content) else { return };
    engine.responses.store(fill, request, path, cached);
}

/// Applies what follows the handler: the cache, ranges and filters.
#[inline]
pub(super) async fn conclude(
    connection: &mut Connection,
    active: &Active,
    request: &mut Request,
    fill: Fill,
) {
    if !matches!(fill, Fill::None) && is_whole(request) {
        filter::apply_all(request).await;
        store(connection, active, request, fill).await;
    } else if connection.engine.recorder.is_some() {
        if is_whole(request) {
            filter::apply_all(request).await;
        }
        record(active, request);
    }
    byterange::attach(request);
    filter::apply_all(request).await;
    let is_refused = byterange::refuse_unsatisfiable(request).await;
    if is_refused && persistence::may_keep_alive(request, connection.responses, false) {
        // Apache has made the decision for the response that was not sent, and counts both.
        connection.responses += 1;
        connection.info.keepalives.set(connection.responses);
    }
}

/// The body, as it is sent each time.
fn content(connection: &Connection, request: &Request, is_chunked: bool) -> Option<Content> {
    if request.head.header_only {
        return Some(Content::EMPTY);
    }
    let bytes = match &request.response.body {
        // Each piece would need a chunk head.
        Body::File(_) if is_chunked => return None,
        Body::File(slice) if slice.length > IN_MEMORY_BYTES => {
            return Some(Content::File(slice.clone()));
        }
        Body::File(slice) => send::read(slice).ok()?,
        Body::Bytes(bytes) if bytes.len() <= MADE_BYTES => bytes.clone(),
        Body::Empty if !is_chunked => return Some(Content::EMPTY),
        _ => return None,
    };
    let bytes = if is_chunked { one_chunk(&bytes) } else { bytes };
    Some(Content::Memory(connection.engine.server.contents.share(bytes)))
}

/// Whether the response depends only on configuration, files and declared variant keys.
fn is_reusable(request: &Request, is_watched: bool) -> bool {
    obstacle(request, is_watched).is_none()
}

/// Why a response can't be cached.
fn obstacle(request: &Request, is_watched: bool) -> Option<&'static str> {
    let (response, file) = (&request.response, &request.resource.file);
    let is_kept =
        matches!(response.status, 200 | 304) || errors::is_reusable_status(response.status);
    let writes_log = request.depends.variant_keys.inputs().any(Inputs::ONCE);
    // A watch does not see a write through another name of the file.
    let has_other_names = file.kind == FileKind::Regular && file.links > 1;
    Some(match &response.body {
        _ if !request.depends.pure => "the response depends on more than its path",
        _ if writes_log => "each request writes to the error log",
        _ if request.matching.has_undecided() => "a regular expression was not decided",
        _ if !is_kept => "responses with this status are not cached",
        _ if respond::has_connection_variable(request) => "a variable affects the connection",
        _ if !response.trailers_out.is_empty() => "the response has trailers",
        _ if response.no_cache => "a module forbids it",
        _ if request.user.is_some() => "the response is for one user",
        _ if has_other_names && is_watched => "the file has other names (hard links)",
        Body::Stream(_) if file.size > MADE_FROM_BYTES => "the body is made of a long file",
        Body::Parts(_) => "the body is made of parts",
        _ => return None,
    })
}

/// Records whether the response would be cached.
#[cold]
pub(super) fn record(active: &Active, request: &Request) {
    let Some(recorder) = request.engine.recording() else { return };
    let why = if !fast::is_cacheable(active) {
        Some("only responses to GET and HEAD without a body are cached")
    } else if !is_whole(request) {
        Some("a filter changes what was cut into ranges")
    } else if !has_own_query(active, request) {
        Some("the response depends on the query")
    } else {
        obstacle(request, true)
    };
    recorder.add(match why {
        Some(why) => Event::new(Kind::Note, "cached").came_to("no").with("why", why),
        None => Event::new(Kind::Note, "cached").came_to("yes"),
    });
}

/// Whether the query is the client's, and the response does not depend on it.
fn has_own_query(active: &Active, request: &Request) -> bool {
    let query = request.own_query();
    query == active.head.query()
        && (query.is_none() || !request.depends.variant_keys.inputs().any(Inputs::QUERY))
}

/// Makes a body completely that would be made while it is sent. Unless its length is known, the
/// response is still chunked, and no ranges are cut of it in any case. If the body is too long or
/// fails, the rest is made while it is sent.
async fn make_whole(request: &mut Request) {
    let length = request.response.body.length();
    match length {
        Some(_) => request.refuse_ranges(),
        None => request.response.chunked = true,
    }
    let mut rest = std::mem::take(&mut request.response.body);
    let mut made = Vec::new();
    let after = loop {
        match std::future::poll_fn(|cx| rest.poll_chunk(cx)).await {
            // No client waits for a part of it.
            Some(Ok(Chunk::Flush)) => {}
            Some(Ok(Chunk::Bytes(bytes))) => made.extend_from_slice(&bytes),
            Some(Ok(Chunk::File(slice))) => break [Body::File(slice), rest],
            Some(Err(error)) => {
                break [Body::Empty, Body::Stream(Box::pin(Broken(Some(error))))];
            }
            None => {
                request.response.body = Body::Bytes(made.into());
                return;
            }
        }
        if made.len() > MADE_BYTES {
            break [Body::Empty, rest];
        }
    };
    let mut parts = VecDeque::from([Body::Bytes(made.into())]);
    parts.extend(after);
    request.response.body = match length {
        Some(length) => Body::Parts(parts).with_length(length),
        None => Body::Parts(parts),
    };
}

/// The end of a body that failed.
struct Broken(Option<io::Error>);

impl BodyStream for Broken {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

/// A whole body in chunked coding (RFC 9112 section 7.1).
fn one_chunk(body: &Bytes) -> Bytes {
    let mut framed = Vec::with_capacity(body.len() + 32);
    if !body.is_empty() {
        framed.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
        framed.extend_from_slice(body);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(b"0\r\n\r\n");
    framed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_body_is_one_chunk() {
        assert_eq!(one_chunk(&Bytes::from_static(&[b'x'; 26]))[..6], *b"1a\r\nxx");
        assert!(one_chunk(&Bytes::from_static(b"abc")).ends_with(b"abc\r\n0\r\n\r\n"));
        assert_eq!(one_chunk(&Bytes::new())[..], *b"0\r\n\r\n");
    }
}
