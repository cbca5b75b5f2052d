//! A request and its program: the body goes in, the head comes out.
//!
//! Apache sends all of the body before it reads anything, so that a program that writes much before
//! it reads hangs until the time is over. Here both directions move at once.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rt::Deadline;
use server::log::Level;
use server::request::Request;
use server::request_body::{BodyError, BodyIn};
use wire::script_head::{ScriptFault, ScriptHead, ScriptHeadParser, ScriptProgress};

use crate::util_script::error_lines::ErrorLines;
use crate::util_script::program::Program;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// Bytes of output that are kept while the request's body is not sent.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Bytes of output that a log entry has.
const REST_BYTES: usize = 1 << 20;

/// A request in progress.
pub(super) struct Conversation {
    /// The program.
    pub program: Program,
    /// The file that the program is.
    pub executed: Vec<u8>,
    /// Its messages.
    pub lines: ErrorLines,
    /// What it has written and is not used yet.
    pub received: Vec<u8>,
    /// Whether its output has ended.
    pub has_ended: bool,
    /// The longest wait for output.
    timeout: Duration,
    deadline: Option<Deadline>,
    /// The part of the body that the program has not taken.
    unsent: Bytes,
    /// Whether the program has closed its input before the end of the body.
    pub stopped_reading: bool,
}

/// Why there is no head.
#[derive(Debug)]
pub(super) enum Broken {
    /// The output is no head.
    Fault(ScriptFault),
    /// It did not come in time.
    Late,
    /// The output can't be read.
    Unreadable,
    /// The request's body is not complete.
    Client(BodyError),
}

impl Conversation {
    /// Begins.
    pub fn new(
        program: Program,
        executed: Vec<u8>,
        lines: ErrorLines,
        timeout: Duration,
    ) -> Conversation {
        Conversation {
            program,
            executed,
            lines,
            received: Vec::new(),
            has_ended: false,
            timeout,
            deadline: None,
            unsent: Bytes::new(),
            stopped_reading: false,
        }
    }

    /// Sends the body; what the program writes meanwhile is kept. `kept` gets its beginning, up to
    /// its capacity.
    pub async fn send(&mut self, request: &mut Request, kept: &mut Vec<u8>) -> Result<(), Broken> {
        let body = &mut request.body_in;
        std::future::poll_fn(|cx| self.poll_send(cx, body, kept)).await?;
        if self.stopped_reading {
            let file = bstr::BStr::new(&request.resource.filename);
            let text = format_args!("Error writing request body to script {file}");
            request.log_as(self.lines.module(), Level::Info, 2651, text);
            // The rest must not be taken for another request.
            while let Some(piece) = request.body_in.next().await {
                piece.map_err(Broken::Client)?;
            }
        }
        Ok(())
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut BodyIn,
        kept: &mut Vec<u8>,
    ) -> Poll<Result<(), Broken>> {
        loop {
            self.poll_errors(cx);
            // Up to the first wait, so that more output wakes this task. What is wrong with it
            // shows when the head is read.
            while self.received.len() < OUTPUT_BYTES
                && !self.has_ended
                && matches!(self.poll_receive(cx, Deadline::NEVER), Poll::Ready(Ok(_)))
            {
            }
            let Some(input) = &mut self.program.input else { return Poll::Ready(Ok(())) };
            if self.unsent.is_empty() {
                match std::pin::pin!(body.next()).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => {
                        self.program.input = None;
                        return Poll::Ready(Ok(()));
                    }
                    Poll::Ready(Some(piece)) => {
                        self.unsent = piece.map_err(Broken::Client)?;
                        let room = kept.capacity() - kept.len();
                        let first = self.unsent.get(..room.min(self.unsent.len()));
                        kept.extend_from_slice(first.unwrap_or_default());
                        continue;
                    }
                }
            }
            let handle = input.handle();
            let deadline = *self.deadline.get_or_insert_with(|| handle.deadline(self.timeout));
            match input.poll_write(cx, &self.unsent, deadline) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) => {
                    self.unsent = self.unsent.slice(count..);
                    self.deadline = None;
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                    return Poll::Ready(Err(Broken::Late));
                }
                Poll::Ready(Err(_)) => {
                    self.program.input = None;
                    self.stopped_reading = true;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Reads the head; what follows it is in [`Conversation::received`]. `head` has what came of it
    /// also if it is not complete.
    pub async fn read_head(&mut self, head: &mut ScriptHead) -> Result<(), Broken> {
        let mut parser = ScriptHeadParser::new();
        loop {
            match parser.parse(head, &self.received) {
                ScriptProgress::Done { consumed } => {
                    self.received.drain(..consumed);
                    return Ok(());
                }
                ScriptProgress::Refused(fault) => {
                    self.received.drain(..parser.taken());
                    return Err(Broken::Fault(fault));
                }
                ScriptProgress::NeedMore if self.has_ended => {
                    self.received.clear();
                    return Err(Broken::Fault(parser.end_of_input()));
                }
                ScriptProgress::NeedMore => {}
            }
            self.receive().await.map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => Broken::Late,
                _ => Broken::Unreadable,
            })?;
        }
    }

    /// Reads the rest of the output and drops it, then the rest of the messages, and lets the
    /// program go.
    pub async fn end(mut self) {
        while !self.has_ended && self.receive().await.is_ok() {
            self.received.clear();
        }
        self.finish_errors().await;
        self.program.finish();
    }

    /// Reads the rest of the output, up to a bound.
    pub async fn rest(&mut self) -> Vec<u8> {
        while !self.has_ended && self.received.len() < REST_BYTES && self.receive().await.is_ok() {}
        std::mem::take(&mut self.received)
    }

    /// Reads messages up to their end.
    async fn finish_errors(&mut self) {
        let handle = self.program.output.handle();
        let deadline = handle.deadline(self.timeout);
        while let Some(errors) = &mut self.program.errors {
            let buffer = &mut self.lines.buffer;
            buffer.reserve(READ_BYTES);
            match std::future::poll_fn(|cx| errors.poll_read(cx, buffer, deadline)).await {
                Ok(1..) => self.lines.log_whole(),
                Ok(0) | Err(_) => self.program.errors = None,
            }
        }
        self.lines.log_rest();
    }

    /// Waits for output.
    pub async fn receive(&mut self) -> io::Result<usize> {
        let deadline = self.program.output.handle().deadline(self.timeout);
        std::future::poll_fn(|cx| {
            self.poll_errors(cx);
            self.poll_receive(cx, deadline)
        })
        .await
    }

    /// Reads output, or waits for it up to `deadline`.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        self.received.reserve(READ_BYTES);
        let read = self.program.output.poll_read(cx, &mut self.received, deadline);
        if let Poll::Ready(Ok(0)) = read {
            self.has_ended = true;
        }
        read
    }

    /// Logs the messages that have arrived.
    pub fn poll_errors(&mut self, cx: &mut Context<'_>) {
        while let Some(errors) = &mut self.program.errors {
            let buffer = &mut self.lines.buffer;
            buffer.reserve(READ_BYTES);
            match errors.poll_read(cx, buffer, Deadline::NEVER) {
                Poll::Ready(Ok(1..)) => self.lines.log_whole(),
                Poll::Ready(Ok(0) | Err(_)) => {
                    self.program.errors = None;
                    self.lines.log_rest();
                }
                Poll::Pending => return,
            }
        }
    }

    /// The longest wait for output.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}
