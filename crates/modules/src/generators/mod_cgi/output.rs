//! The output of a program as the body of a response.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use server::body::{Body, BodyStream, Chunk};
use server::errorlog::Verbatim;
use server::log::Level;
use server::module::Module;
use server::request_body::BodyError;

use super::Cgi;
use super::conversation::{Conversation, Upload};
use crate::util_script::exchange::{Broken, Exchange};
use crate::util_script::prompt::Prompt;

/// Bytes that are sent at once, if as many have arrived.
const PIECE_BYTES: usize = 64 * 1024;

/// The rest of a program's output. Dropping it ends the program.
pub(super) struct Output {
    /// `None` once it is read.
    exchange: Option<Exchange<Upload>>,
    /// The file that the program is.
    executed: Vec<u8>,
    /// Why there is no more.
    failure: Option<Broken<BodyError>>,
}

impl Output {
    /// The body of the rest of the output: bytes if its end is there already, so that the client
    /// learns the length.
    pub async fn body(mut conversation: Conversation) -> Body {
        let exchange = &mut conversation.exchange;
        let moved = std::future::poll_fn(|cx| Poll::Ready(exchange.poll_move(cx, PIECE_BYTES)));
        let failure = match moved.await {
            Poll::Ready(Err(broken)) => Some(broken),
            Poll::Ready(Ok(())) | Poll::Pending => None,
        };
        if !exchange.has_ended || failure.is_some() {
            let (exchange, executed) = (Some(conversation.exchange), conversation.executed);
            let output = Output { exchange, executed, failure };
            return Body::Stream(Box::pin(Prompt::new(output)));
        }
        let rest = std::mem::take(&mut exchange.received);
        exchange.log_start(&conversation.executed);
        conversation.end().await;
        if rest.is_empty() { Body::Empty } else { Body::Bytes(rest.into()) }
    }
}

impl BodyStream for Output {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        let Output { exchange: place, executed, failure } = &mut *self;
        let Some(exchange) = place else { return Poll::Ready(None) };
        let moved = match failure.take() {
            Some(broken) => Poll::Ready(Err(broken)),
            None => exchange.poll_move(cx, PIECE_BYTES),
        };
        match moved {
            Poll::Pending if exchange.received.is_empty() => return Poll::Pending,
            Poll::Ready(Err(broken)) => {
                let error = broken_off(exchange, broken, executed);
                *place = None;
                return Poll::Ready(Some(Err(error)));
            }
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        let piece = std::mem::take(&mut exchange.received);
        if exchange.has_ended
            && let Some(mut exchange) = place.take()
        {
            exchange.log_start(executed);
            exchange.leave();
        }
        Poll::Ready((!piece.is_empty()).then(|| Ok(Chunk::Bytes(piece.into()))))
    }
}

/// Logs that the output of a program does not come in time, as mod_cgi does.
///
/// Source: `cgi_bucket_read`
pub(super) fn log_late(exchange: &Exchange<Upload>, executed: &[u8]) {
    if exchange.lines.module() == Cgi::FILE {
        let file = Verbatim::new(executed);
        let text = format!("Timeout waiting for output from CGI script {file}");
        exchange.lines.log_about(Level::Warn, 1220, text.as_bytes());
    }
}

/// Logs why a response ends early.
fn broken_off(
    exchange: &Exchange<Upload>,
    broken: Broken<BodyError>,
    executed: &[u8],
) -> io::Error {
    let error = match broken {
        Broken::Program(error) | Broken::Source(BodyError::Io(error)) => error,
        Broken::Source(_) => io::Error::other("the request's body is refused"),
    };
    if error.kind() == io::ErrorKind::TimedOut {
        log_late(exchange, executed);
    }
    let text = format!("the output is incomplete: {error}");
    exchange.lines.log_about(Level::Error, 574, text.as_bytes());
    error
}
