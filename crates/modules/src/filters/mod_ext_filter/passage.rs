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

    /// The program's next output; `None` at the end, when the program has all of the source, too,
    /// if `must_drain`: otherwise the source is refused.
    pub fn poll_output(
        &mut self,
        cx: &mut Context<'_>,
        must_drain: bool,
    ) -> Poll<Option<Result<Bytes, Broken<S::Error>>>> {
        if self.is_over {
            return if must_drain { self.poll_rest(cx) } else { Poll::Ready(None) };
        }
        let moved = self.exchange.poll_move(cx, PIECE_BYTES);
        if self.log_refusal() && must_drain {
            return self.refuse();
        }
        match moved {
            Poll::Pending if self.exchange.received.is_empty() => return Poll::Pending,
            Poll::Ready(Err(broken)) => return self.fail(broken),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        if self.exchange.has_ended {
            self.is_over = true;
            let outcome = self.exchange.program.outcome();
            self.exchange.lines.log_rest();
            if !must_drain || !self.exchange.is_sending() {
                self.exchange.program.release();
            }
            if let Err(status) = self.judge(outcome) {
                return Poll::Ready(Some(Err(Broken::Program(status))));
            }
            if self.exchange.received.is_empty() {
                return if must_drain { self.poll_rest(cx) } else { Poll::Ready(None) };
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

    /// Logs why the program was not started, if it was not.
    ///
    /// # Errors
    /// The status of the response.
    fn judge(&mut self, outcome: Option<Outcome>) -> Result<(), u16> {
        match outcome {
            Some(Outcome::Busy) => {
                self.exchange.lines.log(b"too many programs wait");
                Err(503)
            }
            Some(Outcome::NotStarted(_, errno)) => {
                let cause = nix::errno::Errno::from_raw(errno).desc();
                self.exchange.lines.log(format!("({errno}){cause}: exec failed").as_bytes());
                Err(500)
            }
            Some(Outcome::Ended(_)) | None => Ok(()),
        }
    }

    /// Gives the program the rest of the source: it may read on after it has closed its output.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken<S::Error>>>> {
        let sent = self.exchange.poll_sent(cx, usize::MAX);
        if self.log_refusal() {
            return self.refuse();
        }
        match ready!(sent) {
            Ok(()) => {
                self.exchange.program.release();
                Poll::Ready(None)
            }
            Err(broken) => self.fail(broken),
        }
    }

    /// What is left of a request's body must not be taken for all of it.
    fn refuse(&mut self) -> Poll<Option<Result<Bytes, Broken<S::Error>>>> {
        self.is_over = true;
        self.exchange.program.release();
        Poll::Ready(Some(Err(Broken::Program(400))))
    }

    fn fail(
        &mut self,
        broken: exchange::Broken<S::Error>,
    ) -> Poll<Option<Result<Bytes, Broken<S::Error>>>> {
        self.is_over = true;
        Poll::Ready(Some(Err(match broken {
            exchange::Broken::Source(error) => Broken::Source(error),
            exchange::Broken::Program(error) => {
                let text = format!("apr_file_read(child output), len -1: {error}");
                self.exchange.lines.log_about(Level::Error, 1466, text.as_bytes());
                Broken::Program(500)
            }
        })))
    }
}
