//! A body whose length is known, though its parts do not tell it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Body, BodyStream, Chunk};

struct Measured {
    body: Body,
    length: u64,
}

impl BodyStream for Measured {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        self.get_mut().body.poll_chunk(cx)
    }

    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn in_memory(&self) -> Option<u64> {
        self.body.at_hand()
    }

    fn poll_ahead(self: Pin<&mut Self>, cx: &mut Context<'_>) {
        self.get_mut().body.poll_ahead(cx);
    }
}

impl Body {
    /// The same body, of which so many bytes are announced.
    pub fn with_length(self, length: u64) -> Body {
        Body::Stream(Box::pin(Measured { body: self, length }))
    }
}
