//! A connection while it carries a request and its response: records go out and come in at the same
//! time, since a server may respond before it has read the request's body.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread::LocalKey;
use std::time::Duration;

use rt::Deadline;
use server::request::Request;
use server::request_body::{BodyError, BodyIn};
use wire::fastcgi::{END_OF_STDIN, Event, Fault, RecordDecoder, STDIN_RECORD_BYTES, stdin_header};

use crate::proxy::mod_proxy::backend::Backend;
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::shared::State;
use crate::proxy::mod_proxy::upload::Upload;
use crate::proxy::mod_proxy::workers::Worker;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// The longest buffers that a loop keeps, bytes.
const KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// Empty buffers, to receive into and for records. A conversation has none while it waits: all
    /// of a turn use the same ones, which stay in the processor's cache.
    static RECEIVED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static RECORDS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer for records.
pub(super) fn take_records() -> Vec<u8> {
    RECORDS.take()
}

fn give_back(mut buffer: Vec<u8>, place: &'static LocalKey<Cell<Vec<u8>>>) {
    buffer.clear();
    buffer.shrink_to(KEPT_BYTES);
    place.set(buffer);
}

/// A request in progress.
pub(super) struct Conversation {
    backend: Backend,
    _busy: Busy,
    /// That of a balancer's member, whose bytes are counted.
    counts: Option<Arc<State>>,
    decoder: RecordDecoder,
    /// What was received. Bytes before `at` are decoded.
    received: Vec<u8>,
    at: usize,
    /// Records to send. Bytes before `sent` are sent.
    outgoing: Vec<u8>,
    sent: usize,
    /// Whether the request's last record is sent or in `outgoing`, or can't be sent.
    is_complete: bool,
    /// Whether the server waits for the rest of a record: no other request can follow.
    is_cut: bool,
    upload: Upload,
    timeout: Duration,
    /// When the server must have said or taken something; `None` while nothing waits for it.
    deadline: Option<Deadline>,
    /// Whether the server has said anything.
    pub has_answered: bool,
}

/// What a server says. The ranges are of [`Conversation::bytes`], until the next call.
pub(super) enum Said {
    /// Output of the program.
    Output(Range<usize>),
    /// The output has ended.
    EndOfOutput,
    /// A message for the log.
    Message(Range<usize>),
    /// A record of a type without meaning.
    Unknown(u8),
    /// The response is complete.
    End,
}

/// Why a response does not continue.
#[derive(Debug)]
pub(super) enum Broken {
    /// What arrived is no record, or not a whole one.
    Fault(Fault),
    /// The connection is broken, or the time is up.
    Io(io::Error),
    /// The request's body is not complete.
    Client(BodyError),
}

impl Broken {
    /// Whether the time is up.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Broken::Io(error) if error.kind() == io::ErrorKind::TimedOut)
    }

    /// The status of the response, if it has none yet.
    pub fn status(&self, request: &Request) -> u16 {
        match self {
            Broken::Client(error) => error.status(request),
            Broken::Io(_) if self.is_timeout() => 504,
            Broken::Io(_) => 503,
            Broken::Fault(fault) => fault.status(),
        }
    }
}

impl Conversation {
    /// Begins a conversation with `worker` by `records`, behind which only those of `upload` are
    /// missing.
    pub fn new(
        worker: &Worker,
        (backend, busy): (Backend, Busy),
        timeout: Duration,
        records: Vec<u8>,
        upload: Upload,
    ) -> Conversation {
        Conversation {
            backend,
            _busy: busy,
            counts: worker.is_member.then(|| worker.state.clone()),
            decoder: RecordDecoder::new(false),
            received: Vec::new(),
            at: 0,
            outgoing: records,
            sent: 0,
            is_complete: matches!(upload, Upload::Complete),
            is_cut: false,
            upload,
            timeout,
            deadline: None,
            has_answered: false,
        }
    }

    /// The bytes of a range in the latest [`Said`].
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.received.get(range).unwrap_or_default()
    }

    /// Whether all of the request is sent, or the server takes no more.
    pub fn has_sent_all(&self) -> bool {
        self.is_complete && self.sent == self.outgoing.len()
    }

    /// Sends no more of the request's body.
    pub fn stop_sending(&mut self) {
        self.is_complete = true;
        self.is_cut = true;
        self.outgoing.clear();
        self.sent = 0;
    }

    /// Sends what is left of the request, and returns what the server says meanwhile.
    pub async fn next(&mut self, body: &mut BodyIn) -> Result<Said, Broken> {
        std::future::poll_fn(|cx| {
            let waits_for_client = match self.poll_send(cx, body) {
                Ok(waits) => waits,
                Err(error) => return Poll::Ready(Err(Broken::Client(error))),
            };
            if waits_for_client {
                self.deadline = Some(Deadline::NEVER);
            }
            let said = self.poll_said(cx);
            if waits_for_client {
                self.deadline = None;
            }
            said
        })
        .await
    }

    /// What the server says next.
    pub fn poll_said(&mut self, cx: &mut Context<'_>) -> Poll<Result<Said, Broken>> {
        loop {
            let rest = self.received.get(self.at..).unwrap_or_default();
            let event = self.decoder.decode(rest).map_err(Broken::Fault)?;
            let (consumed, len) = match event {
                Event::NeedMore { consumed } => (consumed, 0),
                Event::Stdout { consumed, len } | Event::Stderr { consumed, len } => {
                    (consumed, len)
                }
                Event::Values { consumed, .. }
                | Event::EndOfStdout { consumed }
                | Event::Ignored { consumed, .. }
                | Event::End { consumed, .. } => (consumed, 0),
            };
            self.at += consumed;
            let range = self.at - len..self.at;
            return Poll::Ready(Ok(match event {
                Event::Stdout { .. } => Said::Output(range),
                Event::Stderr { .. } => Said::Message(range),
                Event::EndOfStdout { .. } => Said::EndOfOutput,
                Event::Ignored { kind, .. } => Said::Unknown(kind),
                Event::End { .. } => Said::End,
                Event::NeedMore { .. } | Event::Values { .. } => {
                    ready!(self.poll_receive(cx))?;
                    continue;
                }
            }));
        }
    }

    /// The next wait for the server has its whole time: what was waited for was the client.
    pub fn restart_wait(&mut self) {
        self.deadline = None;
    }

    /// Ends a complete conversation. The connection is kept, if nothing follows.
    pub fn end(self) {
        if self.at == self.received.len() && self.has_sent_all() && !self.is_cut {
            self.backend.give_back();
        }
        give_back(self.received, &RECEIVED);
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let deadline = self.deadline();
        let mut received = std::mem::take(&mut self.received);
        received.drain(..std::mem::take(&mut self.at));
        if received.capacity() == 0 {
            received = RECEIVED.take();
        }
        received.reserve(READ_BYTES);
        let count = self.backend.stream.poll_read(cx, &mut received, deadline);
        match received.is_empty() {
            true => give_back(received, &RECEIVED),
            false => self.received = received,
        }
        let count = ready!(count);
        self.deadline = None;
        match count {
            Ok(0) => Poll::Ready(Err(Broken::Fault(self.decoder.end_of_input()))),
            Ok(bytes) => {
                self.has_answered = true;
                if let Some(state) = &self.counts {
                    state.count_read(bytes as u64);
                }
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(Broken::Io(error))),
        }
    }

    fn deadline(&mut self) -> Deadline {
        let handle = self.backend.stream.handle();
        *self.deadline.get_or_insert_with(|| handle.deadline(self.timeout))
    }

    /// Sends as much as the server takes and the client has sent; returns whether more depends on
    /// the client.
    fn poll_send(&mut self, cx: &mut Context<'_>, body: &mut BodyIn) -> Result<bool, BodyError> {
        loop {
            if self.sent < self.outgoing.len() && !self.poll_write(cx) {
                return Ok(false);
            }
            self.sent = 0;
            if self.is_complete {
                if self.outgoing.capacity() > 0 {
                    give_back(std::mem::take(&mut self.outgoing), &RECORDS);
                }
                return Ok(false);
            }
            self.outgoing.clear();
            match self.upload.poll_next(cx, Some(body)) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Some(Ok(piece))) => write_stdin(&mut self.outgoing, &piece),
                Poll::Ready(Some(Err(error))) => return Err(error),
                Poll::Ready(None) => {
                    self.outgoing.extend_from_slice(&END_OF_STDIN);
                    self.is_complete = true;
                }
            }
        }
    }

    /// Whether all that was to send is sent. A server that takes no more may have responded
    /// before.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let rest = self.outgoing.get(self.sent..).unwrap_or_default();
            if rest.is_empty() {
                return true;
            }
            match self.backend.stream.try_write(rest) {
                Ok(count) => {
                    self.sent += count;
                    self.deadline = None;
                    if let Some(state) = &self.counts {
                        state.count_transferred(count as u64);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let deadline = self.deadline();
                    match self.backend.stream.poll_writable(cx, deadline) {
                        Poll::Ready(Ok(())) => {}
                        // Reading finds out the same.
                        Poll::Ready(Err(_)) | Poll::Pending => return false,
                    }
                }
                Err(_) => {
                    self.stop_sending();
                    return true;
                }
            }
        }
    }
}

/// Appends records of the body.
pub(super) fn write_stdin(out: &mut Vec<u8>, body: &[u8]) {
    for piece in body.chunks(STDIN_RECORD_BYTES) {
        out.extend_from_slice(&stdin_header(piece.len()));
        out.extend_from_slice(piece);
    }
}
