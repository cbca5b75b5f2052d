//! The output of a program as the body of a response.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt::Deadline;
use server::body::{Body, BodyStream, Chunk};
use server::log::Level;

use super::conversation::Conversation;

/// Bytes that are sent at once, if as many have arrived.
const PIECE_BYTES: usize = 64 * 1024;

/// The rest of a program's output. Dropping it ends the program.
pub(super) struct Output {
    /// `None` once it is read.
    conversation: Option<Conversation>,
    /// When the wait for more ends, if there is one.
    waits_until: Option<Deadline>,
    /// Something was given since the last flush.
    gave: bool,
}

impl Output {
    /// The body of the rest of the output: bytes if its end is there already, so that the client
    /// learns the length.
    pub async fn body(mut conversation: Conversation) -> Body {
        std::future::poll_fn(|cx| {
            conversation.poll_errors(cx);
            while !conversation.has_ended && conversation.received.len() < PIECE_BYTES {
                match conversation.poll_receive(cx, Deadline::NEVER) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(_)) | Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
        if !conversation.has_ended {
            let waits_until = None;
            let output = Output { conversation: Some(conversation), waits_until, gave: false };
            return Body::Stream(Box::pin(output));
        }
        let rest = std::mem::take(&mut conversation.received);
        conversation.end().await;
        if rest.is_empty() { Body::Empty } else { Body::Bytes(rest.into()) }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let Some(conversation) = &mut self.conversation else { return Poll::Ready(None) };
        loop {
            conversation.poll_errors(cx);
            if conversation.received.len() >= PIECE_BYTES {
                break;
            }
            if conversation.has_ended {
                // Its messages end with it, unless it has left something running.
                if let Some(conversation) = self.conversation.take() {
                    return Poll::Ready(last(conversation));
                }
                return Poll::Ready(None);
            }
            let timeout = conversation.timeout();
            let handle = conversation.program.output.handle();
            let deadline = *self.waits_until.get_or_insert_with(|| handle.deadline(timeout));
            match conversation.poll_receive(cx, deadline) {
                Poll::Ready(Ok(_)) => self.waits_until = None,
                Poll::Ready(Err(error)) => {
                    let text = format!("the output is incomplete: {error}");
                    conversation.lines.log_about(Level::Error, 574, text.as_bytes());
                    self.conversation = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending if conversation.received.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        let piece = std::mem::take(&mut conversation.received);
        Poll::Ready(Some(Ok(Chunk::Bytes(piece.into()))))
    }
}

/// Ends a conversation, and returns what is left of it.
fn last(mut conversation: Conversation) -> Option<io::Result<Chunk>> {
    let rest = std::mem::take(&mut conversation.received);
    conversation.lines.log_rest();
    conversation.program.finish();
    (!rest.is_empty()).then(|| Ok(Chunk::Bytes(rest.into())))
}

/// The body of a response to HEAD: its length is unknown, unless a filter reads all of it.
pub(super) struct Unsent(pub Vec<u8>);

impl BodyStream for Unsent {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        let output = std::mem::take(&mut self.0);
        Poll::Ready((!output.is_empty()).then(|| Ok(Chunk::Bytes(output.into()))))
    }
}

impl BodyStream for Output {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        match self.poll_piece(cx) {
            Poll::Ready(piece) => {
                self.gave = true;
                Poll::Ready(piece)
            }
            // The client gets what there is while the program makes more.
            Poll::Pending if std::mem::take(&mut self.gave) => Poll::Ready(Some(Ok(Chunk::Flush))),
            Poll::Pending => Poll::Pending,
        }
    }
}
