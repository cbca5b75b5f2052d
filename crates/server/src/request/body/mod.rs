//! The body of a response: nothing, bytes, a part of a file, several of these, or a stream.

pub(crate) mod head;
mod measured;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;

/// A part of an open file.
#[derive(Clone)]
pub struct FileSlice {
    /// The open file; its own position is never used or changed.
    pub file: Rc<File>,
    /// The offset in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}

/// An item of a stream.
pub enum Chunk {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A part of a file, sent without reading it if the connection allows.
    File(FileSlice),
    /// Send what is buffered.
    Flush,
}

/// A body that is produced while it is sent.
pub trait BodyStream {
    /// The next piece; `None` at the end. An error ends the connection, because the status has
    /// already been sent.
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>>;

    /// The length of the whole body in bytes, if it is known before sending. Default: it is not.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Bytes of the whole body, if all of them are in memory although a length may not be told.
    fn in_memory(&self) -> Option<u64> {
        None
    }

    /// Whether it has no bytes and only tells the length that another server has announced (HEAD).
    fn is_announced(&self) -> bool {
        false
    }

    /// Reads ahead what is there, within a bound of its own, while the client takes what was given
    /// before: called each time the sender waits for the client. Default: nothing.
    fn poll_ahead(self: Pin<&mut Self>, _: &mut Context<'_>) {}
}

/// The body of a response.
#[derive(Default)]
pub enum Body {
    /// No body.
    #[default]
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// A part of a file.
    File(FileSlice),
    /// Several parts of known length, in order (multipart ranges).
    Parts(VecDeque<Body>),
    /// A stream, often of unknown length.
    Stream(Pin<Box<dyn BodyStream>>),
}

/// A body that can't be made.
struct Failed;

impl BodyStream for Failed {
    fn poll_chunk(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        Poll::Ready(Some(Err(io::ErrorKind::OutOfMemory.into())))
    }
}

impl Body {
    /// A body that can't be made: the connection ends without a response.
    pub fn failed() -> Body {
        Body::Stream(Box::pin(Failed))
    }

    /// The length in bytes, if it is known before sending.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::File(slice) => Some(slice.length),
            Body::Parts(parts) => parts.iter().map(Body::length).sum(),
            Body::Stream(stream) => stream.length(),
        }
    }

    /// Bytes of the whole body, unless it is a stream that may have to be waited for.
    pub fn at_hand(&self) -> Option<u64> {
        match self {
            Body::Stream(stream) => stream.in_memory(),
            body => body.length(),
        }
    }

    /// Whether another server has only announced it: see [`BodyStream::is_announced`].
    pub fn is_announced(&self) -> bool {
        matches!(self, Body::Stream(stream) if stream.is_announced())
    }

    /// Lets a stream read ahead: see [`BodyStream::poll_ahead`].
    pub fn poll_ahead(&mut self, cx: &mut Context<'_>) {
        if let Body::Stream(stream) = self {
            stream.as_mut().poll_ahead(cx);
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
