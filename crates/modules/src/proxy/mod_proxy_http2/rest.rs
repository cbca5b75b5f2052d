//! The body of a response, as it is sent to the client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use server::body::{BodyStream, Chunk};
use server::request::LateTrailers;
use server::request_body::BodyIn;

use super::conversation::{Conversation, Said};
use super::failed::Log;

/// The rest of a response.
pub(super) struct Rest {
    /// What has been read of it with the head.
    pub first: Bytes,
    /// `None` once it is read.
    pub conversation: Option<Conversation>,
    /// The client, while its request is not complete.
    pub client: Option<Box<BodyIn>>,
    /// The length of the body in bytes, if the head has it.
    pub length: Option<u64>,
    /// Where the trailer fields go.
    pub trailers: LateTrailers,
    /// Something was given since the last flush.
    pub gave: bool,
    /// For the log.
    pub log: Log,
}

impl Rest {
    fn end(&mut self) {
        if let Some(conversation) = self.conversation.take() {
            conversation.end();
        }
    }
}

impl BodyStream for Rest {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        let rest = &mut *self;
        if !rest.first.is_empty() {
            rest.gave = true;
            return Poll::Ready(Some(Ok(Chunk::Bytes(std::mem::take(&mut rest.first)))));
        }
        loop {
            let Some(conversation) = &mut rest.conversation else { return Poll::Ready(None) };
            match conversation.poll_said(cx, rest.client.as_deref_mut()) {
                Poll::Ready(Ok(Said::Body(bytes, ends))) => {
                    if ends {
                        rest.end();
                    }
                    if bytes.is_empty() {
                        continue;
                    }
                    rest.gave = true;
                    return Poll::Ready(Some(Ok(Chunk::Bytes(bytes))));
                }
                Poll::Ready(Ok(Said::Trailers(fields))) => {
                    rest.trailers.borrow_mut().extend(&fields);
                    rest.end();
                }
                Poll::Ready(Ok(Said::Interim(..) | Said::Head(..))) => {}
                Poll::Ready(Err(why)) => {
                    rest.conversation = None;
                    rest.log.broken(&why);
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, "response is cut off");
                    return Poll::Ready(Some(Err(error)));
                }
                // The client gets what there is while the backend makes more.
                Poll::Pending if std::mem::take(&mut rest.gave) => {
                    conversation.restart_wait();
                    return Poll::Ready(Some(Ok(Chunk::Flush)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}
