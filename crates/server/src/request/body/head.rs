//! The beginning of a body, which a filter looks at before the response is sent.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};

use super::{Body, BodyStream, Chunk, FileSlice};

/// Most bytes of a file that are read in one turn of the loop.
const TURN_BYTES: usize = 64 * 1024;

/// Waits for the first `wanted` bytes of a body, or for its end. [`Body::split_head`] returns them.
pub(crate) async fn gather(mut body: Body, wanted: usize) -> Body {
    if matches!(body, Body::Empty | Body::Bytes(_)) {
        return body;
    }
    let length = body.length();
    let known = length.map(|length| usize::try_from(length).unwrap_or(wanted).min(wanted));
    let mut head = BytesMut::with_capacity(known.unwrap_or_default());
    let mut ahead: Option<io::Result<FileSlice>> = None;
    while head.len() < wanted {
        let chunk = match ahead.take() {
            Some(slice) => slice.map(Chunk::File),
            None => match poll_fn(|cx| body.poll_chunk(cx)).await {
                Some(chunk) => chunk,
                None => return Body::Bytes(head.freeze()),
            },
        };
        match chunk {
            Ok(Chunk::Bytes(bytes)) => head.extend_from_slice(&bytes),
            Ok(Chunk::File(slice)) => {
                let count = (wanted - head.len()).min(TURN_BYTES);
                match take(slice, count, &mut head) {
                    Ok(rest) => ahead = rest.map(Ok),
                    Err(error) => {
                        ahead = Some(Err(error));
                        break;
                    }
                }
                if ahead.is_some() && head.len() < wanted {
                    // Others have their turn.
                    rt::after_sockets().await;
                }
            }
            // Nothing is sent before the filter has seen the head.
            Ok(Chunk::Flush) => {}
            Err(error) => {
                ahead = Some(Err(error));
                break;
            }
        }
    }
    let length = length.map(|length| length.saturating_sub(head.len() as u64));
    let rest = Body::Stream(Box::pin(Rest { ahead, body, length }));
    Body::Parts([Body::Bytes(head.freeze()), rest].into())
}

/// Reads up to `count` bytes of a file; returns what follows them.
fn take(mut slice: FileSlice, count: usize, head: &mut BytesMut) -> io::Result<Option<FileSlice>> {
    use std::os::unix::fs::FileExt;
    let count = usize::try_from(slice.length).unwrap_or(count).min(count);
    let start = head.len();
    head.resize(start + count, 0);
    slice.file.read_exact_at(head.get_mut(start..).unwrap_or_default(), slice.offset)?;
    slice.offset += count as u64;
    slice.length -= count as u64;
    Ok((slice.length > 0).then_some(slice))
}

/// What follows the head.
struct Rest {
    /// What was taken from `body` with the head and is no part of it.
    ahead: Option<io::Result<FileSlice>>,
    body: Body,
    length: Option<u64>,
}

impl BodyStream for Rest {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let this = self.get_mut();
        match this.ahead.take() {
            Some(ahead) => Poll::Ready(Some(ahead.map(Chunk::File))),
            None => this.body.poll_chunk(cx),
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn poll_ahead(self: Pin<&mut Self>, cx: &mut Context<'_>) {
        self.get_mut().body.poll_ahead(cx);
    }
}

impl Body {
    /// Waits for the first `wanted` bytes, or for the end of a shorter body, which then is
    /// [`Body::Bytes`].
    pub async fn gathered(self, wanted: usize) -> Body {
        gather(self, wanted).await
    }

    /// The bytes that were gathered for a filter (`OutputFilter::looks_at`), and what follows them:
    /// [`Body::Empty`] if they are all.
    pub fn split_head(self) -> (Bytes, Body) {
        match self {
            Body::Bytes(bytes) => (bytes, Body::Empty),
            Body::Parts(mut parts) => match parts.pop_front() {
                Some(Body::Bytes(head)) => {
                    let only = if parts.len() == 1 { parts.pop_front() } else { None };
                    (head, only.unwrap_or(Body::Parts(parts)))
                }
                Some(first) => {
                    parts.push_front(first);
                    (Bytes::new(), Body::Parts(parts))
                }
                None => (Bytes::new(), Body::Empty),
            },
            Body::Empty => (Bytes::new(), Body::Empty),
            other => (Bytes::new(), other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use super::*;

    struct Pieces(VecDeque<io::Result<Chunk>>);

    impl BodyStream for Pieces {
        fn poll_chunk(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<io::Result<Chunk>>> {
            Poll::Ready(self.get_mut().0.pop_front())
        }
    }

    fn gathered(pieces: Vec<io::Result<Chunk>>, wanted: usize) -> (Bytes, Body) {
        let body = Body::Stream(Box::pin(Pieces(pieces.into())));
        let mut future = std::pin::pin!(gather(body, wanted));
        let mut cx = Context::from_waker(Waker::noop());
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(body) => body.split_head(),
            Poll::Pending => panic!("nothing to wait for"),
        }
    }

    fn piece(text: &'static str) -> io::Result<Chunk> {
        Ok(Chunk::Bytes(Bytes::from_static(text.as_bytes())))
    }

    #[test]
    fn a_short_body_is_its_head() {
        let (head, rest) = gathered(vec![piece("ab"), Ok(Chunk::Flush), piece("c")], 10);
        assert_eq!(head, "abc");
        assert!(matches!(rest, Body::Empty));
    }

    #[test]
    fn the_rest_and_its_error_follow() {
        let error = || Err(io::Error::other("gone"));
        let (head, mut rest) = gathered(vec![piece("ab"), piece("cd"), error()], 3);
        assert_eq!(head, "abcd");
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(rest.poll_chunk(&mut cx), Poll::Ready(Some(Err(_)))));
        let (head, mut rest) = gathered(vec![piece("ab"), error()], 3);
        assert_eq!(head, "ab");
        assert!(matches!(rest.poll_chunk(&mut cx), Poll::Ready(Some(Err(_)))));
    }
}
