//! What the long way teaches the short one: an answer that was made is kept, if it may be.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use rt::Witness;

use super::{Connection, send};
use crate::cache::resource::{
    Content, IN_MEMORY_BYTES, Lesson, MADE_BYTES, MADE_FROM_BYTES, Resource,
};
use crate::respond;
use server::body::{Body, BodyStream, Chunk};
use server::files::validity::Trace;
use server::request::Request;

/// Before the long way: watches what this target looked at last time, and notes what it looks at.
pub(super) fn arm(connection: &Connection, request: &mut Request) -> Lesson {
    let engine = &connection.engine;
    let witness = engine.handle.witness();
    let lesson = engine.resources.arm(witness, request);
    if !matches!(lesson, Lesson::None) {
        request.trace = Some(Trace::default());
    }
    lesson
}

/// After the long way: keeps the answer, or notes what to watch next time.
pub(super) async fn remember(connection: &Connection, request: &mut Request, lesson: Lesson) {
    let engine = &connection.engine;
    let witness = engine.handle.witness();
    if !is_reusable(request, matches!(witness, Witness::Watcher(_))) {
        return;
    }
    let armed = match lesson {
        Lesson::None => return,
        Lesson::Paths => {
            let looked_at = request.trace.take().unwrap_or_default();
            return engine.resources.note(request, looked_at.paths);
        }
        Lesson::Answer(armed) => armed,
    };
    if matches!(request.body, Body::Stream(_)) {
        make(request).await;
    }
    let content = match &request.body {
        Body::File(slice) if slice.length > IN_MEMORY_BYTES => Content::File(slice.clone()),
        Body::File(slice) => match send::read(slice) {
            Ok(bytes) => Content::Memory(bytes),
            Err(_) => return,
        },
        Body::Bytes(bytes) if bytes.len() <= MADE_BYTES => Content::Memory(bytes.clone()),
        _ => return,
    };
    let Some(head) = respond::reusable_head(request) else { return };
    let content = match content {
        Content::Memory(bytes) if head.chunked => {
            Content::Memory(engine.server.contents.share(one_chunk(&bytes)))
        }
        // It would have to leave in pieces, with something around each.
        Content::File(_) if head.chunked => return,
        Content::Memory(bytes) => Content::Memory(engine.server.contents.share(bytes)),
        content => content,
    };
    let resource = Resource::new(request, head, content);
    engine.resources.keep(witness, armed, request, resource);
}

/// An answer by nobody's decision but the configuration's and that of declared facets.
fn is_reusable(request: &Request, is_watched: bool) -> bool {
    request.pure
        && !request.matching.has_undecided()
        && request.status == 200
        && request.has_plain_env()
        && request.trailers_out.is_empty()
        && !request.no_cache
        && request.user.is_none()
        // A watch does not see a write by another of its names.
        && (request.file.links <= 1 || !is_watched)
        && match &request.body {
            Body::File(_) | Body::Bytes(_) => true,
            Body::Stream(_) => request.file.size <= MADE_FROM_BYTES,
            Body::Empty | Body::Parts(_) => false,
        }
}

/// Makes the whole of a body that would be made while it is sent. It still leaves as one whose
/// length was not known. Where it is too long or breaks off it goes on as before from there.
async fn make(request: &mut Request) {
    request.chunked = true;
    let mut rest = std::mem::take(&mut request.body);
    let mut made = Vec::new();
    let after = loop {
        match std::future::poll_fn(|cx| rest.poll_chunk(cx)).await {
            // Nothing waits for a part of it.
            Some(Ok(Chunk::Flush)) => {}
            Some(Ok(Chunk::Bytes(bytes))) => made.extend_from_slice(&bytes),
            Some(Ok(Chunk::File(slice))) => break [Body::File(slice), rest],
            Some(Err(error)) => {
                break [Body::Empty, Body::Stream(Box::pin(Broken(Some(error))))];
            }
            None => {
                request.body = Body::Bytes(made.into());
                return;
            }
        }
        if made.len() > MADE_BYTES {
            break [Body::Empty, rest];
        }
    };
    let mut parts = VecDeque::from([Body::Bytes(made.into())]);
    parts.extend(after);
    request.body = Body::Parts(parts);
}

/// The end of a body that could not be made.
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
