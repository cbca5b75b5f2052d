//! The output of a program on its way to the client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use server::body::{BodyStream, Chunk};

/// A body whose client gets what there is while the source makes more.
pub(crate) struct Prompt<S> {
    source: S,
    /// Something was given since the last flush.
    gave: bool,
}

impl<S> Prompt<S> {
    /// A source of which nothing is given yet.
    pub fn new(source: S) -> Prompt<S> {
        Prompt { source, gave: false }
    }
}

impl<S: BodyStream + Unpin> BodyStream for Prompt<S> {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        match Pin::new(&mut self.source).poll_chunk(cx) {
            Poll::Ready(piece) => {
                self.gave = true;
                Poll::Ready(piece)
            }
            Poll::Pending if std::mem::take(&mut self.gave) => Poll::Ready(Some(Ok(Chunk::Flush))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn length(&self) -> Option<u64> {
        self.source.length()
    }
}
