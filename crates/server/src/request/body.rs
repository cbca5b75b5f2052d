//! What an answer carries: nothing, bytes, a piece of a file, several of these, or a stream.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;

/// A piece of an open file.
#[derive(Clone)]
pub struct FileSlice {
    /// The open file; its own position is never used or changed.
    pub file: Rc<File>,
    /// Where the piece starts, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub length: u64,
}

/// What a stream yields.
pub enum Chunk {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A piece of a file, sent without being read where the connection allows.
    File(FileSlice),
    /// What came so far should leave now.
    Flush,
}

/// A body that is made while it is sent.
pub trait BodyStream {
    /// The next piece; `None` at the end. An error ends the connection, because the status has
    /// already left.
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>>;
}

/// The body of an answer.
#[derive(Default)]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// A piece of a file.
    File(FileSlice),
    /// Several of known length, in order (multipart ranges).
    Parts(VecDeque<Body>),
    /// Of unknown length.
    Stream(Pin<Box<dyn BodyStream>>),
}

impl Body {
    /// The length in bytes, where it is known before sending.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::File(slice) => Some(slice.length),
            Body::Parts(parts) => parts.iter().map(Body::length).sum(),
            Body::Stream(_) => None,
        }
    }

    /// The next piece; `None` at the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        match self {
            Body::Stream(stream) => return stream.as_mut().poll_chunk(cx),
            Body::Parts(parts) => {
                while let Some(first) = parts.front_mut() {
                    match first.poll_chunk(cx) {
                        Poll::Ready(None) => parts.pop_front(),
                        other => return other,
                    };
                }
                return Poll::Ready(None);
            }
            _ => {}
        }
        Poll::Ready(match std::mem::take(self) {
            Body::Bytes(bytes) if !bytes.is_empty() => Some(Ok(Chunk::Bytes(bytes))),
            Body::File(slice) if slice.length > 0 => Some(Ok(Chunk::File(slice))),
            _ => None,
        })
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(bytes.into())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::Bytes(Bytes::from_static(text.as_bytes()))
    }
}
