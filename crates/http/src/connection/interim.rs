//! Interim responses (RFC 9110 section 15.2) that a handler forwards while it waits.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt::Stream;
use server::connection_info::ConnectionInfo;

use super::request_body::Shared;

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
    if !info.interim.borrow().is_empty() {
        match (stream, pipe) {
            (Some(stream), _) => send(stream, info),
            (None, Some(pipe)) => {
                let mut pipe = pipe.borrow_mut();
                if let Some(stream) = pipe.as_mut().and_then(|pipe| pipe.stream_between()) {
                    send(stream, info);
                }
            }
            (None, None) => {}
        }
    }
    polled
}

fn send(stream: &mut Stream, info: &ConnectionInfo) {
    let mut waiting = info.interim.borrow_mut();
    // An error is found again by the final response.
    if let Ok(sent) = stream.try_write(&waiting) {
        waiting.drain(..sent);
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
