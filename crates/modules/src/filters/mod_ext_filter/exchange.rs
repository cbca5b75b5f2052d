//! What a program reads and writes: both directions move at once, so that neither side waits for
//! the other's full pipe.
//!
//! Source: `ef_unified_filter`, `pass_data_to_filter`, which let pass an unfiltered rest if a
//! program closes its input early.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mpm::companion::spawner::Outcome;
use rt::Deadline;
use server::log::Level;

use crate::util_script::error_lines::ErrorLines;
use crate::util_script::program::Program;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// Bytes of output that are given at once, if as many have arrived.
const PIECE_BYTES: usize = 64 * 1024;

/// What a program reads.
pub(super) trait Source {
    /// Why it can't be read.
    type Error;

    /// The next bytes; `None` at the end.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>>;
}

/// Why there is no more output.
pub(super) enum Broken<E> {
    /// The source can't be read.
    Source(E),
    /// The program was not started, or does not go on. This has been logged.
    Program(u16),
}

/// A program at work. Dropping it ends the program.
pub(super) struct Exchange<S> {
    source: S,
    has_source_ended: bool,
    /// `None` after the end of its output.
    program: Option<Program>,
    lines: ErrorLines,
    logs_errors: bool,
    /// What the program has not taken yet.
    unsent: Bytes,
    /// What it has written and is not given yet.
    received: Vec<u8>,
    /// The longest wait for the program.
    timeout: Duration,
    deadline: Option<Deadline>,
}

impl<S: Source> Exchange<S> {
    /// Begins with a program that was started, whose messages are logged or dropped.
    pub fn new(
        source: S,
        program: Program,
        (lines, logs_errors): (ErrorLines, bool),
        timeout: Duration,
    ) -> Exchange<S> {
        Exchange {
            source,
            has_source_ended: false,
            program: Some(program),
            lines,
            logs_errors,
            unsent: Bytes::new(),
            received: Vec::new(),
            timeout,
            deadline: None,
        }
    }

    /// The program's next output; `None` at the end, when the source is read to its end, too, if
    /// `must_drain`.
    pub fn poll_output(
        &mut self,
        cx: &mut Context<'_>,
        must_drain: bool,
    ) -> Poll<Option<Result<Bytes, Broken<S::Error>>>> {
        loop {
            let Some(program) = &mut self.program else {
                return if must_drain { self.poll_drain(cx) } else { Poll::Ready(None) };
            };
            poll_errors(program, &mut self.lines, self.logs_errors, cx);
            let has_sent = match self.poll_send(cx) {
                Ok(has_sent) => has_sent,
                Err(error) => return Poll::Ready(Some(Err(Broken::Source(error)))),
            };
            match self.poll_receive(cx, has_sent) {
                Poll::Ready(Ok(0)) => {
                    if let Err(status) = self.end() {
                        return Poll::Ready(Some(Err(Broken::Program(status))));
                    }
                    if !self.received.is_empty() {
                        return Poll::Ready(Some(Ok(self.take())));
                    }
                }
                Poll::Ready(Ok(_)) if self.received.len() >= PIECE_BYTES => {
                    return Poll::Ready(Some(Ok(self.take())));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => {
                    let text = format!("apr_file_read(child output), len -1: {error}");
                    self.lines.log_about(Level::Error, 1466, text.as_bytes());
                    self.program = None;
                    return Poll::Ready(Some(Err(Broken::Program(500))));
                }
                Poll::Pending if has_sent => {}
                Poll::Pending if !self.received.is_empty() => {
                    return Poll::Ready(Some(Ok(self.take())));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.received).into()
    }

    /// Gives the program what the source has; returns whether something has moved.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<bool, S::Error> {
        let Some(program) = &mut self.program else { return Ok(false) };
        let Some(input) = &mut program.input else { return Ok(false) };
        if self.unsent.is_empty() {
            match self.source.poll_bytes(cx) {
                Poll::Ready(Some(bytes)) => self.unsent = bytes?,
                Poll::Ready(None) => {
                    self.has_source_ended = true;
                    program.input = None;
                    return Ok(true);
                }
                Poll::Pending => return Ok(false),
            }
        }
        match input.poll_write(cx, &self.unsent, Deadline::NEVER) {
            Poll::Ready(Ok(count)) => {
                self.unsent = self.unsent.slice(count.min(self.unsent.len())..);
                Ok(true)
            }
            Poll::Ready(Err(error)) => {
                // The program has all that it wants.
                let text = format!("apr_file_write(child input), len 0: {error}");
                self.lines.log_about(Level::Debug, 1461, text.as_bytes());
                self.unsent = Bytes::new();
                program.input = None;
                Ok(true)
            }
            Poll::Pending => Ok(false),
        }
    }

    /// Reads output; waits for it up to `Timeout` unless the source is what keeps the program
    /// waiting.
    fn poll_receive(&mut self, cx: &mut Context<'_>, has_sent: bool) -> Poll<io::Result<usize>> {
        let Some(program) = &mut self.program else { return Poll::Ready(Ok(0)) };
        let waits_for_program = program.input.is_none() || !self.unsent.is_empty();
        if has_sent || !waits_for_program {
            self.deadline = None;
        }
        let handle = program.output.handle();
        let deadline = match waits_for_program {
            true => *self.deadline.get_or_insert_with(|| handle.deadline(self.timeout)),
            false => Deadline::NEVER,
        };
        self.received.reserve(READ_BYTES);
        let read = program.output.poll_read(cx, &mut self.received, deadline);
        if read.is_ready() {
            self.deadline = None;
        }
        read
    }

    /// The output has ended: lets the program go.
    ///
    /// # Errors
    /// The status of the response, if the program was not started.
    fn end(&mut self) -> Result<(), u16> {
        self.unsent = Bytes::new();
        let Some(program) = self.program.take() else { return Ok(()) };
        let outcome = program.outcome();
        self.lines.log_rest();
        program.finish();
        match outcome {
            Some(Outcome::Busy) => {
                self.lines.log(b"too many programs wait");
                Err(503)
            }
            Some(Outcome::NotStarted(_, errno)) => {
                let cause = nix::errno::Errno::from_raw(errno).desc();
                self.lines.log(format!("({errno}){cause}: exec failed").as_bytes());
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
        while !self.has_source_ended {
            match self.source.poll_bytes(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => {
                    self.has_source_ended = true;
                    return Poll::Ready(Some(Err(Broken::Source(error))));
                }
                Poll::Ready(None) => self.has_source_ended = true,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(None)
    }
}

/// Reads the messages that have arrived.
fn poll_errors(
    program: &mut Program,
    lines: &mut ErrorLines,
    are_logged: bool,
    cx: &mut Context<'_>,
) {
    while let Some(errors) = &mut program.errors {
        lines.buffer.reserve(READ_BYTES);
        match errors.poll_read(cx, &mut lines.buffer, Deadline::NEVER) {
            Poll::Ready(Ok(1..)) if are_logged => lines.log_whole(),
            Poll::Ready(Ok(1..)) => lines.buffer.clear(),
            Poll::Ready(Ok(0) | Err(_)) => program.errors = None,
            Poll::Pending => return,
        }
    }
}
