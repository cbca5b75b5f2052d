//! A program as a filter of responses.
//!
//! Source: `ef_output_filter`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use server::body::{Body, BodyStream, Chunk};
use server::errors;
use server::filter::{Beginning, OutputFilter};
use server::request::Request;

use super::order::{add_variables, applies, find, is_removed, start, trace};
use super::passage::{Broken, Passage};
use crate::filters::rewritten::{Piece, Pieces};
use crate::util_script::exchange::Source;
use crate::util_script::program::Program;
use crate::util_script::prompt::Prompt;

/// A result of up to as many bytes has a length.
const WHOLE_BYTES: usize = 64 * 1024;

/// Creates the filter of a name.
pub(super) fn make(_: &mut Request, name: &str) -> Option<Box<dyn OutputFilter>> {
    Some(Box::new(Filter { name: name.to_owned() }))
}

struct Filter {
    name: String,
}

impl OutputFilter for Filter {
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        let media_type = request.response.content_type.as_deref();
        let is_run = |filter| applies(request, &filter, media_type);
        comes || find(request, &self.name).is_ok_and(is_run)
    }

    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        Some(Box::pin(begin(&self.name, request)))
    }

    fn apply(self: Box<Self>, _: &mut Request, body: Body) -> Body {
        body
    }
}

impl Source for Pieces {
    type Error = io::Error;

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            return match self.poll_piece(cx) {
                // When its output is sent is the program's choice.
                Poll::Ready(Some(Ok(Piece::Flush))) => continue,
                Poll::Ready(Some(Ok(Piece::Bytes(bytes)))) => Poll::Ready(Some(Ok(bytes))),
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            };
        }
    }
}

/// Starts the program and replaces the body; returns false if the response has become an error.
async fn begin(name: &str, request: &mut Request) -> bool {
    match filtered(name, request).await {
        Ok(()) => true,
        Err(Failure::Unused(errno)) => {
            if is_removed(request, name, errno, false) {
                return true;
            }
            fail(request, 500).await
        }
        Err(Failure::Status(status)) => fail(request, status).await,
    }
}

async fn fail(request: &mut Request, status: u16) -> bool {
    Box::pin(errors::fail_before_handler(request, status)).await;
    // Apache has sent the head of its own response when the filter fails.
    request.response.chunked = true;
    false
}

/// Why a response does not pass the filter.
enum Failure {
    /// The program can't be started.
    Unused(Errno),
    /// It ended before the response could begin.
    Status(u16),
}

async fn filtered(name: &str, request: &mut Request) -> Result<(), Failure> {
    let filter = find(request, name).map_err(Failure::Unused)?;
    let is_filtered = applies(request, &filter, request.response.content_type.as_deref());
    if !is_filtered {
        trace(request, &filter, false);
        return Ok(());
    }
    add_variables(request).await;
    let mut start = start(request, &filter).map_err(Failure::Unused)?;
    let order = std::mem::take(&mut start.order);
    let program = Program::start(request, &start.line, order, true).await;
    let program = program
        .map_err(|error| Failure::Unused(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)))?;
    if let Some(media_type) = &filter.out_type {
        request.response.content_type = Some(media_type.clone());
    }
    let body = std::mem::take(&mut request.response.body);
    let length = body.length();
    if !filter.preserves_length {
        request.response.unset_length();
    }
    trace(request, &filter, true);
    let is_stream = matches!(body, Body::Stream(_));
    let messages = (start.lines, start.logs_errors);
    let timeout = request.host.core.timeout();
    let mut passage = Passage::new(Pieces::of(body), program, messages, timeout);
    let (head, has_ended) = gather(&mut passage, is_stream).await?;
    request.response.body = match has_ended {
        true if head.is_empty() => Body::Empty,
        true => Body::Bytes(head),
        false => {
            let length = length.filter(|_| filter.preserves_length);
            Body::Stream(Box::pin(Prompt::new(Output { head, passage, length, given: 0 })))
        }
    };
    if has_ended {
        // What the program wrote is known, whatever PreservesContentLength promises.
        request.response.unset_length();
    }
    Ok(())
}

/// Waits for the beginning of the output: for all of it if it is short, and the source is there at
/// once. Returns whether that is all.
async fn gather(passage: &mut Passage<Pieces>, is_stream: bool) -> Result<(Bytes, bool), Failure> {
    let mut head = BytesMut::new();
    loop {
        let next = std::future::poll_fn(|cx| passage.poll_output(cx, false)).await;
        match next {
            None => return Ok((head.freeze(), true)),
            Some(Ok(bytes)) => {
                head.extend_from_slice(&bytes);
                if is_stream || head.len() >= WHOLE_BYTES {
                    return Ok((head.freeze(), false));
                }
            }
            Some(Err(Broken::Program(status))) => return Err(Failure::Status(status)),
            Some(Err(Broken::Source(_))) => return Err(Failure::Status(500)),
        }
    }
}

/// The output of a program as a body.
struct Output {
    /// What has been received of it already.
    head: Bytes,
    passage: Passage<Pieces>,
    /// The length that the response has announced, bytes.
    length: Option<u64>,
    /// Bytes given.
    given: u64,
}

impl Output {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if !self.head.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.head))));
        }
        self.passage.poll_output(cx, false).map(|next| {
            next.map(|piece| {
                piece.map_err(|broken| match broken {
                    Broken::Source(error) => error,
                    Broken::Program(_) => io::ErrorKind::BrokenPipe.into(),
                })
            })
        })
    }
}

impl BodyStream for Output {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        match ready!(self.poll_piece(cx)) {
            Some(Ok(mut bytes)) => {
                if let Some(length) = self.length {
                    let left = usize::try_from(length - self.given).unwrap_or(usize::MAX);
                    bytes.truncate(left);
                    if bytes.is_empty() {
                        return Poll::Ready(None);
                    }
                }
                self.given += bytes.len() as u64;
                Poll::Ready(Some(Ok(Chunk::Bytes(bytes))))
            }
            None if self.length.is_some_and(|length| length > self.given) => {
                Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())))
            }
            None => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}
