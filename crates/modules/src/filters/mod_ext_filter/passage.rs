//! A body on its way through a program.
//!
//! Source: `ef_unified_filter`, `pass_data_to_filter`, which let pass an unfiltered rest if a
//! program closes its input early.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use mpm::companion::spawner::Outcome;
use server::log::Level;

use crate::util_script::error_lines::ErrorLines;
use crate::util_script::exchange::{self, Exchange, Source};
use crate::util_script::program::Program;

/// Bytes of output that are given at once, if as many have arrived.
const PIECE_BYTES: usize = 64 * 1024;

/// Why there is no more output.
pub(super) enum Broken<E> {
    /// The source can't be read.
    Source(E),
    /// The program was not started, or does not go on. This has been logged.
    Program(u16),
}

/// A body and the program that filters it. Dropping it ends the program.
pub(super) struct Passage<S> {
    exchange: Exchange<S>,
    /// The program is no longer read.
    is_over: bool,
}

impl<S: Source> Passage<S> {
    /// Begins with a program that was started, whose messages are logged or dropped.
    pub fn new(
        source: S,
        program: Program,
        messages: (ErrorLines, bool),
        timeout: Duration,
    ) -> Passage<S> {
        Passage { exchange: Exchange::new(source, program, messages, timeout), is_over: false }
    }

    /// The program's next output; `None` at the end, when the source is read to its end, too, if
    /// `must_drain`.
    pub fn poll_output(
        &mut self,
        cx: &mut Context<'_>,
        must_drain: bool,
    ) -> Poll<Option<Result<Bytes, Broken<S::Error>>>> {
        if self.is_over {
            return if must_drain { self.poll_drain(cx) } else { Poll::Ready(None) };
        }
        let moved = self.exchange.poll_move(cx, PIECE_BYTES);
        if self.log_refusal() && must_drain {
            // What is left of a request's body must not be taken for all of it.
            self.is_over = true;
            self.exchange.program.release();
            return Poll::Ready(Some(Err(Broken::Program(400))));
        }
        match moved {
            Poll::Pending if self.exchange.received.is_empty() => return Poll::Pending,
            Poll::Ready(Err(exchange::Broken::Source(error))) => {
                return Poll::Ready(Some(Err(Broken::Source(error))));
            }
            Poll::Ready(Err(exchange::Broken::Program(error))) => {
                let text = format!("apr_file_read(child output), len -1: {error}");
                self.exchange.lines.log_about(Level::Error, 1466, text.as_bytes());
                self.is_over = true;
                return Poll::Ready(Some(Err(Broken::Program(500))));
            }
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        if self.exchange.has_ended {
            self.is_over = true;
            if let Err(status) = self.end() {
                return Poll::Ready(Some(Err(Broken::Program(status))));
            }
            if self.exchange.received.is_empty() {
                return if must_drain { self.poll_drain(cx) } else { Poll::Ready(None) };
            }
        }
        Poll::Ready(Some(Ok(std::mem::take(&mut self.exchange.received).into())))
    }

    /// Logs that the program has all that it wants, before the end of the source; whether it has.
    fn log_refusal(&mut self) -> bool {
        let Some(error) = self.exchange.refusal.take() else { return false };
        let text = format!("apr_file_write(child input), len 0: {error}");
        self.exchange.lines.log_about(Level::Debug, 1461, text.as_bytes());
        true
    }

    /// The output has ended: what the program has left running goes on.
    ///
    /// # Errors
    /// The status of the response, if the program was not started.
    fn end(&mut self) -> Result<(), u16> {
        let exchange = &mut self.exchange;
        let outcome = exchange.program.outcome();
        exchange.lines.log_rest();
        exchange.program.release();
        match outcome {
            Some(Outcome::Busy) => {
                exchange.lines.log(b"too many programs wait");
                Err(503)
            }
            Some(Outcome::NotStarted(_, errno)) => {
                let cause = nix::errno::Errno::from_raw(errno).desc();
                exchange.lines.log(format!("({errno}){cause}: exec failed").as_bytes());
                Err(500)
            }
            Some(Outcome::Ended(_)) | None => Ok(()),
        }
    }

    /// Reads the rest of the source.
    fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken<S::Error>>>> {
        let drained = ready!(self.exchange.poll_drain(cx));
        Poll::Ready(drained.err().map(|error| Err(Broken::Source(error))))
    }
}
