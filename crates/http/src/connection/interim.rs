//! Interim responses (RFC 9110 section 15.2) that a handler forwards while it waits.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt::Stream;
use server::connection_info::ConnectionInfo;

use super::request_body::{Pipe, Shared};

/// Polls the phases of a request, and sends the interim responses that they leave: as much as the
/// client takes at once. The rest precedes the final response.
pub(super) fn poll<F: Future>(
    work: Pin<&mut F>,
    cx: &mut Context<'_>,
    stream: Option<&mut Stream>,
    pipe: Option<&Shared>,
    info: &ConnectionInfo,
) -> Poll<F::Output> {
    let polled = work.poll(cx);
    let waiting = info.interim.take();
    if waiting.is_empty() {
        return polled;
    }
    let rest = match (stream, pipe) {
        (Some(stream), _) => send(stream, waiting),
        (None, Some(pipe)) => match pipe.borrow_mut().as_mut().and_then(Pipe::stream_between) {
            Some(stream) => send(stream, waiting),
            None => waiting,
        },
        (None, None) => waiting,
    };
    info.interim.set(rest);
    polled
}

/// Sends what the client takes at once; returns the rest. An error is found again by the final
/// response.
fn send(stream: &mut Stream, waiting: Box<[u8]>) -> Box<[u8]> {
    match stream.try_write(&waiting) {
        Ok(sent) => waiting.get(sent..).unwrap_or_default().into(),
        Err(_) => waiting,
    }
}

/// Sends what is left of them.
pub(super) async fn finish(
    stream: &mut Stream,
    info: &ConnectionInfo,
    timeout: std::time::Duration,
) -> io::Result<()> {
    let waiting = info.interim.take();
    if waiting.is_empty() { Ok(()) } else { stream.write_all(&waiting, timeout).await }
}
