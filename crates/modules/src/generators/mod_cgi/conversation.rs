//! A request and its program: the body goes in, the head comes out.
//!
//! Apache sends all of the body before it reads anything, so that a program that writes much before
//! it has read all hangs until the time is over. Here both directions move at once. If the output
//! exceeds [`OUTPUT_BYTES`] meanwhile, the response begins while the body still arrives.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use server::request_body::{BodyError, BodyIn};
use wire::script_head::{ScriptFault, ScriptHead, ScriptHeadParser, ScriptProgress};

use super::script_log::Messages;
use crate::util_script::error_lines::ErrorLines;
use crate::util_script::exchange::{self, Exchange, Source};
use crate::util_script::program::Program;

/// Bytes of output that are kept while the request's body is not sent.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Bytes of output that a log entry has.
const REST_BYTES: usize = 1 << 20;

/// A request in progress.
pub(super) struct Conversation {
    /// The program, and what it reads and writes.
    pub exchange: Exchange<Upload>,
    /// The file that the program is.
    pub executed: Vec<u8>,
    /// Its messages in `ScriptLog`.
    pub messages: Option<Rc<Messages>>,
    /// Whether it ends with the standard error of the program, not with its output.
    pub awaits_errors: bool,
}

/// A request's body on its way to the program.
pub(super) struct Upload {
    body: BodyIn,
    /// Its beginning, up to the capacity.
    kept: Vec<u8>,
}

/// Why there is no head.
#[derive(Debug)]
pub(super) enum Broken {
    /// The output is no head.
    Fault(ScriptFault),
    /// It did not come in time.
    Late,
    /// The output can't be read.
    Unreadable(io::Error),
    /// The request's body is not complete.
    Client(BodyError),
}

impl Upload {
    /// A body, of whose beginning as many bytes are kept.
    pub fn new(body: BodyIn, kept_bytes: usize) -> Upload {
        Upload { body, kept: Vec::with_capacity(kept_bytes) }
    }
}

impl Source for Upload {
    type Error = BodyError;

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let next = pin!(self.body.next()).poll(cx);
        if let Poll::Ready(Some(Ok(piece))) = &next {
            let room = self.kept.capacity() - self.kept.len();
            let first = piece.get(..room.min(piece.len()));
            self.kept.extend_from_slice(first.unwrap_or_default());
        }
        next
    }
}

impl From<exchange::Broken<BodyError>> for Broken {
    fn from(broken: exchange::Broken<BodyError>) -> Broken {
        match broken {
            exchange::Broken::Source(error) => Broken::Client(error),
            exchange::Broken::Program(error) if error.kind() == io::ErrorKind::TimedOut => {
                Broken::Late
            }
            exchange::Broken::Program(error) => Broken::Unreadable(error),
        }
    }
}

impl Conversation {
    /// Begins.
    pub fn new(
        upload: Upload,
        program: Program,
        executed: Vec<u8>,
        lines: ErrorLines,
        timeout: Duration,
    ) -> Conversation {
        let exchange = Exchange::new(upload, program, (lines, true), timeout);
        Conversation { exchange, executed, messages: None, awaits_errors: true }
    }

    /// Writes the program's messages into `ScriptLog`, too.
    pub fn copy_messages(&mut self, messages: Messages) {
        let messages = Rc::new(messages);
        let copies = messages.clone();
        self.exchange.lines.copy = Some(Box::new(move |line| copies.write(line)));
        self.messages = Some(messages);
    }

    /// The beginning of the request's body, as far as it was to be kept.
    pub fn kept(&self) -> &[u8] {
        &self.exchange.source().kept
    }

    /// Sends the body; what the program writes meanwhile is kept. Returns whether that is so much
    /// that the response must begin before the rest of the body is sent.
    pub async fn send(&mut self, request: &Request) -> Result<bool, Broken> {
        let exchange = &mut self.exchange;
        std::future::poll_fn(|cx| exchange.poll_sent(cx, OUTPUT_BYTES)).await?;
        if exchange.refusal.is_some() {
            let file = Verbatim::new(&request.resource.filename);
            let text = format_args!("Error writing request body to script {file}");
            request.log_as(exchange.lines.module(), Level::Info, 2651, text);
            // The rest must not be taken for another request.
            std::future::poll_fn(|cx| exchange.poll_drain(cx)).await.map_err(Broken::Client)?;
        }
        Ok(exchange.is_sending())
    }

    /// Reads the head; what follows it is left in `received`. `head` has what came of it also if it
    /// is not complete.
    pub async fn read_head(&mut self, head: &mut ScriptHead) -> Result<(), Broken> {
        let mut parser = ScriptHeadParser::new();
        loop {
            let exchange = &mut self.exchange;
            match parser.parse(head, &exchange.received) {
                ScriptProgress::Done { consumed } => {
                    exchange.received.drain(..consumed);
                    return Ok(());
                }
                ScriptProgress::Refused(fault) => {
                    exchange.received.drain(..parser.taken());
                    return Err(Broken::Fault(fault));
                }
                ScriptProgress::NeedMore if exchange.has_ended => {
                    exchange.received.clear();
                    return Err(Broken::Fault(parser.end_of_input()));
                }
                ScriptProgress::NeedMore => {}
            }
            self.receive().await?;
        }
    }

    /// Reads the rest of the output and drops it, then the messages, and lets the program go.
    pub async fn end(mut self) {
        while !self.exchange.has_ended && self.receive().await.is_ok() {
            self.exchange.received.clear();
        }
        if self.awaits_errors {
            self.exchange.finish_errors().await;
        } else {
            let exchange = &mut self.exchange;
            let read = |cx: &mut Context<'_>| {
                exchange.poll_errors(cx);
                Poll::Ready(())
            };
            std::future::poll_fn(read).await;
        }
        self.exchange.leave();
    }

    /// Reads the rest of the output, up to a bound.
    pub async fn rest(&mut self) -> Vec<u8> {
        while !self.exchange.has_ended
            && self.exchange.received.len() < REST_BYTES
            && self.receive().await.is_ok()
        {}
        std::mem::take(&mut self.exchange.received)
    }

    /// Waits for more output, or its end.
    async fn receive(&mut self) -> Result<(), Broken> {
        let exchange = &mut self.exchange;
        let enough = exchange.received.len() + 1;
        Ok(std::future::poll_fn(|cx| exchange.poll_move(cx, enough)).await?)
    }
}
