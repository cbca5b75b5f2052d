//! The body of an application's response.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::body::{BodyStream, Chunk};
use server::request_body::BodyIn;

use super::conversation::{Broken, Conversation, Next};

/// Bytes of a body that are kept while the head is made.
const BEGINNING_BYTES: usize = 64 * 1024;

/// The most bytes of a request's body that are read for an application that does not read it.
const DISCARD_BYTES: u64 = 64 * 1024 * 1024;

/// What follows the head. Dropping it tells the worker that the client has gone.
pub(super) struct Output {
    /// `None` at the end.
    conversation: Option<Conversation>,
    /// What has come already.
    first: VecDeque<Bytes>,
    /// The length that the application has announced.
    length: Option<u64>,
    given: u64,
    /// The application has failed behind what has come.
    has_failed: bool,
    /// The rest of the request's body, which is read before the end.
    unread: Option<Unread>,
}

/// What there is of a body while the head is made.
pub(super) enum Beginning {
    /// All of it.
    Whole(Vec<Bytes>),
    /// These pieces, and more to come.
    Part(Vec<Bytes>),
    /// The application has failed after these pieces.
    Failed(Vec<Bytes>, Broken),
}

impl Output {
    /// The rest of a conversation, after these pieces.
    pub fn new(conversation: Conversation, first: Vec<Bytes>, length: Option<u64>) -> Output {
        Output { conversation: Some(conversation), ..Output::complete(first, length) }
    }

    /// A body of which nothing follows these pieces. If they are less than the length, the client
    /// must not take it for complete.
    pub fn complete(pieces: Vec<Bytes>, length: Option<u64>) -> Output {
        Output {
            conversation: None,
            first: pieces.into(),
            length,
            given: 0,
            has_failed: false,
            unread: None,
        }
    }

    /// One that breaks off after these pieces: the client must not take it for complete.
    pub fn broken(pieces: Vec<Bytes>, length: Option<u64>) -> Output {
        Output { has_failed: true, ..Output::complete(pieces, length) }
    }

    /// Gives no more than was announced: a client would take the rest for the next response.
    fn fit(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        if let Some(length) = self.length {
            let left = length.saturating_sub(self.given);
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
        self.given += bytes.len() as u64;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// The end of the pieces: what was announced must have come.
    fn end(&mut self) -> Option<io::Result<Chunk>> {
        let is_short = self.length.take().is_some_and(|length| self.given < length);
        let has_failed = std::mem::take(&mut self.has_failed) || is_short;
        has_failed.then(|| Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

/// Takes what has arrived by now, and at least what comes with the head: a piece, or the end.
pub(super) async fn beginning(conversation: &mut Conversation) -> Beginning {
    let (mut pieces, mut count) = (Vec::new(), 0);
    std::future::poll_fn(|cx| {
        loop {
            if count > BEGINNING_BYTES {
                return Poll::Ready(Beginning::Part(std::mem::take(&mut pieces)));
            }
            let next = match conversation.poll_next(cx) {
                Poll::Pending if pieces.is_empty() => return Poll::Pending,
                Poll::Pending => return Poll::Ready(Beginning::Part(std::mem::take(&mut pieces))),
                Poll::Ready(next) => next,
            };
            return Poll::Ready(match next {
                Ok(Next::Data(bytes)) => {
                    count += bytes.len();
                    pieces.push(bytes);
                    continue;
                }
                Ok(Next::End) => Beginning::Whole(std::mem::take(&mut pieces)),
                Ok(_) => Beginning::Failed(
                    std::mem::take(&mut pieces),
                    Broken::Worker(wire::wsgi::WsgiFault::Truncated),
                ),
                Err(broken) => Beginning::Failed(std::mem::take(&mut pieces), broken),
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
        loop {
            if let Some(bytes) = self.first.pop_front() {
                match self.fit(bytes) {
                    Some(bytes) => return Poll::Ready(Some(Ok(Chunk::Bytes(bytes)))),
                    None => continue,
                }
            }
            let Some(conversation) = &mut self.conversation else {
                if let Some(body) = &mut self.unread {
                    ready!(body.poll(cx));
                    self.unread = None;
                }
                return Poll::Ready(self.end());
            };
            match ready!(conversation.poll_next(cx)) {
                Ok(Next::Data(bytes)) => self.first.push_back(bytes),
                Ok(Next::End) => {
                    self.unread = conversation.unread_body().map(Unread::new);
                    self.conversation = None;
                }
                Ok(_) => (self.conversation, self.has_failed) = (None, true),
                Err(broken) => {
                    conversation.log_broken(&broken);
                    (self.conversation, self.has_failed) = (None, true);
                }
            }
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

/// The body of a request that an application has not read: it is read for it, as long as that is
/// not too much.
pub(super) struct Unread {
    body: BodyIn,
    left: u64,
}

impl Unread {
    /// Nothing of it is read if it is too long.
    pub fn new(body: BodyIn) -> Unread {
        let is_long = body.length().is_some_and(|length| length > DISCARD_BYTES);
        Unread { body, left: if is_long { 0 } else { DISCARD_BYTES } }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.left > 0 {
            match ready!(pin!(self.body.next()).poll(cx)) {
                Some(Ok(bytes)) => self.left = self.left.saturating_sub(bytes.len() as u64),
                Some(Err(_)) | None => self.left = 0,
            }
        }
        Poll::Ready(())
    }

    /// Reads it; returns what is left.
    pub async fn discard(mut self) -> BodyIn {
        std::future::poll_fn(|cx| self.poll(cx)).await;
        self.body
    }
}
