//! The body of an application's response.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use server::body::{BodyStream, Chunk};

use super::conversation::{Broken, Conversation, Next};

/// Bytes of a body that are kept while the head is made.
const BEGINNING_BYTES: usize = 64 * 1024;

/// What follows the head. Dropping it tells the worker that the client has gone.
pub(super) struct Output {
    /// `None` at the end.
    conversation: Option<Conversation>,
    /// What has come already.
    first: Vec<Bytes>,
    /// The length that the application has announced.
    length: Option<u64>,
    given: u64,
}

/// What there is of a body while the head is made.
pub(super) enum Beginning {
    /// All of it.
    Whole(Vec<Bytes>),
    /// These pieces, and more to come.
    Part(Vec<Bytes>),
    /// The application has failed.
    Failed(Broken),
}

impl Output {
    /// The rest of a conversation, after these pieces.
    pub fn new(conversation: Conversation, first: Vec<Bytes>, length: Option<u64>) -> Output {
        let mut first = first;
        first.reverse();
        Output { conversation: Some(conversation), first, length, given: 0 }
    }

    /// Gives no more than was announced: a client would take the rest for the next response.
    fn give(&mut self, mut bytes: Bytes) -> Poll<Option<io::Result<Chunk>>> {
        if let Some(length) = self.length {
            let left = length.saturating_sub(self.given);
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
        self.given += bytes.len() as u64;
        Poll::Ready(Some(Ok(Chunk::Bytes(bytes))))
    }

    /// The end of the frames: what was announced must have come.
    fn end(&mut self) -> Poll<Option<io::Result<Chunk>>> {
        self.conversation = None;
        let is_short = self.length.is_some_and(|length| self.given < length);
        Poll::Ready(is_short.then(|| Err(io::ErrorKind::UnexpectedEof.into())))
    }
}

/// Takes what has arrived by now.
pub(super) async fn beginning(conversation: &mut Conversation) -> Beginning {
    std::future::poll_fn(|cx| {
        let (mut pieces, mut count) = (Vec::new(), 0);
        loop {
            if count > BEGINNING_BYTES {
                return Poll::Ready(Beginning::Part(pieces));
            }
            return Poll::Ready(match conversation.poll_next(cx) {
                Poll::Pending => Beginning::Part(pieces),
                Poll::Ready(Ok(Next::Data(bytes))) => {
                    count += bytes.len();
                    pieces.push(bytes);
                    continue;
                }
                Poll::Ready(Ok(Next::End)) => Beginning::Whole(pieces),
                Poll::Ready(Ok(_)) => {
                    Beginning::Failed(Broken::Worker(wire::wsgi::WsgiFault::Truncated))
                }
                Poll::Ready(Err(broken)) => Beginning::Failed(broken),
            });
        }
    })
    .await
}

impl BodyStream for Output {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        if let Some(bytes) = self.first.pop() {
            return self.give(bytes);
        }
        let Some(conversation) = &mut self.conversation else { return Poll::Ready(None) };
        match conversation.poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(Next::Data(bytes))) => self.give(bytes),
            Poll::Ready(Ok(Next::End)) => self.end(),
            Poll::Ready(Ok(_)) => {
                self.conversation = None;
                Poll::Ready(Some(Err(io::Error::other("the application has failed"))))
            }
            Poll::Ready(Err(broken)) => {
                conversation.log_broken(&broken);
                self.conversation = None;
                Poll::Ready(Some(Err(io::Error::other(broken.to_string()))))
            }
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

/// A body that breaks off at once: the client must not take the response for complete.
pub(super) struct Failed;

impl BodyStream for Failed {
    fn poll_chunk(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())))
    }
}

/// A body that is complete, of pieces that the application has made one by one.
pub(super) struct Pieces(pub Vec<Bytes>);

impl BodyStream for Pieces {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        Poll::Ready(match self.0.is_empty() {
            true => None,
            false => Some(Ok(Chunk::Bytes(self.0.remove(0)))),
        })
    }
}
