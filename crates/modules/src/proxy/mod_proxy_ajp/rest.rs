//! The body of a response, as it is sent to the client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use server::body::{BodyStream, Chunk};

use super::conversation::{Conversation, Said};
use super::failed::Log;

/// Bytes that are sent at once, if as many have arrived.
const PIECE_BYTES: usize = 64 * 1024;

/// The rest of a response.
pub(super) struct Rest {
    /// What has been read of it with the head.
    pub first: Bytes,
    /// `None` once it is read.
    pub conversation: Option<Conversation>,
    /// Send what was given.
    pub flushes: bool,
    /// Whether the rest can't be read: an error, after what could be.
    pub is_broken: bool,
    /// For the log.
    pub log: Log,
}

impl BodyStream for Rest {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            return Poll::Ready(Some(Ok(Chunk::Bytes(first))));
        }
        if std::mem::take(&mut self.flushes) {
            return Poll::Ready(Some(Ok(Chunk::Flush)));
        }
        let mut piece = Vec::new();
        let Rest { conversation: place, flushes, is_broken, log, .. } = &mut *self;
        while let Some(conversation) = place {
            match conversation.poll_said(cx, None, &mut |_| {}) {
                Poll::Ready(Ok(Said::Body(range))) if range.is_empty() => {
                    *flushes = true;
                    break;
                }
                Poll::Ready(Ok(Said::Body(range))) => {
                    piece.extend_from_slice(conversation.bytes(range));
                    if piece.len() >= PIECE_BYTES {
                        break;
                    }
                }
                Poll::Ready(Ok(Said::Head)) => {}
                Poll::Ready(Ok(Said::End { reuse })) => {
                    if let Some(conversation) = place.take() {
                        conversation.end(reuse);
                    }
                }
                Poll::Ready(Err(why)) => {
                    log.broken(&why, conversation);
                    *place = None;
                    *is_broken = true;
                }
                Poll::Pending if piece.is_empty() => return Poll::Pending,
                Poll::Pending => {
                    conversation.restart_wait();
                    break;
                }
            }
        }
        if !piece.is_empty() {
            return Poll::Ready(Some(Ok(Chunk::Bytes(piece.into()))));
        }
        if std::mem::take(flushes) {
            return Poll::Ready(Some(Ok(Chunk::Flush)));
        }
        if std::mem::take(is_broken) {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        }
        Poll::Ready(None)
    }
}
