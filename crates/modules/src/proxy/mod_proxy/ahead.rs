//! What has been received of a response before its client takes it, so that a slow client does not
//! keep the backend: [`MEMORY_BYTES`] in memory, and what `ProxySpool` allows in a file.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use server::body::{Body, BodyStream, Chunk};
use server::engine::Engine;

use super::spool::{Limits, Spool};

/// The most that is kept in memory, bytes.
const MEMORY_BYTES: usize = 64 * 1024;

/// The rest of a response, and what of it was received ahead.
pub struct Ahead<S> {
    source: S,
    /// What comes first.
    memory: VecDeque<Chunk>,
    memory_bytes: usize,
    /// What follows, if there may be a file.
    spool: Option<Spool>,
    /// Why the rest is missing.
    failure: Option<io::Error>,
    has_ended: bool,
}

impl<S: BodyStream + Unpin + 'static> Ahead<S> {
    /// The rest of a response as a body that is read ahead.
    pub fn body(source: S, engine: &Engine, limits: Option<Limits>) -> Body {
        let spool = limits.map(|limits| Spool::new(limits, engine.handle.blocking().clone()));
        Body::Stream(Box::pin(Ahead {
            source,
            memory: VecDeque::new(),
            memory_bytes: 0,
            spool,
            failure: None,
            has_ended: false,
        }))
    }

    /// Whether more may be received. Only what does not fit in memory is spooled.
    fn has_room(&mut self) -> bool {
        self.memory_has_room() || self.spool.as_mut().is_some_and(Spool::has_room)
    }

    fn memory_has_room(&self) -> bool {
        let is_first = self.spool.as_ref().is_none_or(Spool::is_empty);
        is_first && self.memory_bytes < MEMORY_BYTES
    }

    fn push(&mut self, chunk: Chunk) {
        let keeps = self.memory_has_room();
        match (chunk, &mut self.spool) {
            (Chunk::Bytes(bytes), Some(spool)) if !keeps => spool.push(bytes),
            // What is behind gets everything at once.
            (Chunk::Flush, _) if matches!(self.memory.back(), Some(Chunk::Flush)) || !keeps => {}
            (chunk, _) => {
                self.memory_bytes += length(&chunk);
                self.memory.push_back(chunk);
            }
        }
    }
}

/// Bytes in memory.
fn length(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Bytes(bytes) => bytes.len(),
        Chunk::File(_) | Chunk::Flush => 0,
    }
}

impl<S: BodyStream + Unpin + 'static> BodyStream for Ahead<S> {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        let ahead = &mut *self;
        if let Some(chunk) = ahead.memory.pop_front() {
            ahead.memory_bytes -= length(&chunk);
            return Poll::Ready(Some(Ok(chunk)));
        }
        if let Some(spool) = &mut ahead.spool {
            match spool.poll_next(cx) {
                Poll::Ready(None) => {}
                next => return next.map(|chunk| chunk.map(Ok)),
            }
        }
        if let Some(error) = ahead.failure.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if ahead.has_ended {
            return Poll::Ready(None);
        }
        Pin::new(&mut ahead.source).poll_chunk(cx)
    }

    fn length(&self) -> Option<u64> {
        self.source.length()
    }

    fn poll_ahead(mut self: Pin<&mut Self>, cx: &mut Context<'_>) {
        let ahead = &mut *self;
        loop {
            if let Some(spool) = &mut ahead.spool {
                spool.poll_write(cx);
            }
            if ahead.has_ended || !ahead.has_room() {
                return;
            }
            match Pin::new(&mut ahead.source).poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => ahead.push(chunk),
                Poll::Ready(Some(Err(error))) => {
                    ahead.failure = Some(error);
                    ahead.has_ended = true;
                }
                Poll::Ready(None) => ahead.has_ended = true,
                Poll::Pending => return,
            }
        }
    }
}
