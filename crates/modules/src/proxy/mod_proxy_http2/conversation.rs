//! A connection while it carries a request and its response, in both directions at a time.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use rt::Deadline;
use server::request_body::{BodyError, BodyIn};
use wire::HeadLimits;
use wire::Table;
use wire::h2::{Code, Connection, Event, Failure, Limits, Pseudo, StreamId};

use super::body::RequestBody;
use super::request_head::RequestHead;
use crate::proxy::mod_proxy::backend::Backend;
use crate::proxy::mod_proxy::busy::Busy;

/// Bytes that are read at once.
const READ_BYTES: usize = 32 * 1024;

/// Bytes that wait to be sent, beyond which nothing more of the request's body is framed.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Bytes of a response's body that the backend may send ahead of the client.
const WINDOW_BYTES: u32 = 256 * 1024;

/// The limits of a response's head.
const HEAD: HeadLimits = HeadLimits { line_bytes: 8190, field_bytes: 8190, fields: 1000 };

/// A request in progress.
pub(super) struct Conversation {
    backend: Backend,
    protocol: Box<Connection>,
    stream: StreamId,
    pub body: RequestBody,
    /// A piece of the body of which not all fits into the backend's window.
    piece: Bytes,
    /// Whether the client, and thus its body, waits for the backend's `100 Continue`.
    pub waits_for_continue: bool,
    /// Whether the end of the request was sent.
    has_ended: bool,
    _busy: Busy,
    input: Vec<u8>,
    /// How much of the output was sent.
    sent: usize,
    timeout: Duration,
    /// When the backend must have said or taken something; `None` while it need not.
    deadline: Option<Deadline>,
    /// The last stream that the backend may have acted upon, once it leaves.
    last: Option<StreamId>,
    /// Whether anything of the response has arrived.
    pub has_answered: bool,
    /// Bytes of the request's body that were framed.
    pub body_bytes: u64,
}

/// What the backend says.
pub(super) enum Said {
    /// The head of an interim response.
    Interim(u16, Table),
    /// The head of the response; whether that is all of it.
    Head(u16, Table, bool),
    /// A part of the body; whether it is the last one.
    Body(Bytes, bool),
    /// The trailer fields, which end the response.
    Trailers(Table),
}

/// Why a response does not continue.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection is broken, or the time is up.
    Io(io::Error),
    /// The backend has closed the connection.
    Closed,
    /// The connection has ended because of what the backend has sent.
    Protocol(Failure),
    /// The stream was reset.
    Reset(Code),
    /// The backend takes no more requests on this connection.
    Refused,
    /// The request's body is not complete.
    Client(BodyError),
}

impl Broken {
    /// Whether the backend has certainly not acted upon the request (RFC 9113 section 8.7).
    pub fn is_unprocessed(&self) -> bool {
        matches!(self, Broken::Refused | Broken::Reset(Code::REFUSED_STREAM))
    }
}

impl Conversation {
    /// Sends the head of a request on a connection; `None` if that takes no more requests.
    pub fn begin(
        (mut backend, busy): (Backend, Busy),
        timeout: Duration,
        (method, head): (&[u8], &RequestHead),
        body: RequestBody,
    ) -> Option<Conversation> {
        let now_ms = backend.stream.handle().clock().now_ms();
        let limits = Limits { window_bytes: WINDOW_BYTES, head: HEAD, ..Limits::default() };
        let known = backend.take_protocol();
        let mut protocol = known.unwrap_or_else(|| Box::new(Connection::client(limits, now_ms)));
        let RequestHead { scheme, authority, path, fields } = head;
        let pseudo = Pseudo { method, scheme, authority, path };
        let has_ended = body.is_empty();
        let stream = protocol.request(&pseudo, fields.iter(), has_ended)?;
        Some(Conversation {
            backend,
            protocol,
            stream,
            body,
            piece: Bytes::new(),
            waits_for_continue: false,
            has_ended,
            _busy: busy,
            input: Vec::new(),
            sent: 0,
            timeout,
            deadline: None,
            last: None,
            has_answered: false,
            body_bytes: 0,
        })
    }

    /// What the backend says next. Without `client` the rest of the request's body can't be read.
    pub fn poll_said(
        &mut self,
        cx: &mut Context<'_>,
        mut client: Option<&mut BodyIn>,
    ) -> Poll<Result<Said, Broken>> {
        loop {
            while let Some(event) = self.protocol.next_event() {
                if let Some(said) = self.take_event(event) {
                    self.deadline = None;
                    return Poll::Ready(said);
                }
            }
            if let Some(failure) = self.protocol.failure() {
                // The backend learns why.
                let _ = self.poll_send(cx);
                return Poll::Ready(Err(Broken::Protocol(failure)));
            }
            let waits_for_client = self.upload(cx, client.as_deref_mut())?;
            if let Err(error) = self.poll_send(cx) {
                return Poll::Ready(Err(Broken::Io(error)));
            }
            ready!(self.poll_receive(cx, waits_for_client))?;
        }
    }

    fn take_event(&mut self, event: Event) -> Option<Result<Said, Broken>> {
        match event {
            Event::Response { stream, status, fields, ends } if stream == self.stream => {
                self.has_answered = true;
                self.waits_for_continue &= status != 100;
                Some(Ok(match status {
                    ..200 => Said::Interim(status, fields),
                    _ => Said::Head(status, fields, ends),
                }))
            }
            Event::Data { stream, bytes, ends } if stream == self.stream => {
                self.protocol.taken(stream, bytes.len());
                if bytes.is_empty() && !ends {
                    return None;
                }
                Some(Ok(Said::Body(bytes.into(), ends)))
            }
            Event::Trailers { stream, fields } if stream == self.stream => {
                Some(Ok(Said::Trailers(fields)))
            }
            Event::Reset { stream, code } if stream == self.stream => {
                Some(Err(Broken::Reset(code)))
            }
            Event::Leaves { last } => {
                self.last = Some(last);
                (last < self.stream).then_some(Err(Broken::Refused))
            }
            Event::Data { stream, bytes, .. } => {
                self.protocol.taken(stream, bytes.len());
                None
            }
            _ => None,
        }
    }

    /// Frames as much of the request's body as the backend takes; whether the client is waited for.
    fn upload(
        &mut self,
        cx: &mut Context<'_>,
        mut client: Option<&mut BodyIn>,
    ) -> Result<bool, Broken> {
        while !self.has_ended && !self.waits_for_continue {
            if self.protocol.output.len() - self.sent >= OUTPUT_BYTES {
                return Ok(false);
            }
            if self.piece.is_empty() {
                match self.body.poll_piece(cx, client.as_deref_mut()) {
                    Poll::Ready(Ok(Some(piece))) => self.piece = piece,
                    Poll::Ready(Ok(None)) => {
                        match client.and_then(|client| client.trailers()) {
                            Some(fields) => {
                                self.protocol.respond_trailers(self.stream, fields.iter());
                            }
                            None => drop(self.protocol.send_data(self.stream, b"", true)),
                        }
                        self.has_ended = true;
                        return Ok(false);
                    }
                    Poll::Ready(Err(error)) => return Err(Broken::Client(error)),
                    Poll::Pending => return Ok(true),
                }
            }
            let Some(_) = self.protocol.window(self.stream) else {
                // The backend wants no more of it.
                self.has_ended = true;
                return Ok(false);
            };
            let most = self.piece.len().min(OUTPUT_BYTES);
            let piece = self.piece.get(..most).unwrap_or_default();
            let sent = self.protocol.send_data(self.stream, piece, false);
            if sent == 0 {
                return Ok(false);
            }
            self.body_bytes += sent as u64;
            let _ = self.piece.split_to(sent);
        }
        Ok(false)
    }

    /// Sends what the backend takes.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let rest = self.protocol.output.get(self.sent..).unwrap_or_default();
            if rest.is_empty() {
                self.protocol.output.clear();
                self.sent = 0;
                // Records of TLS may still wait for the socket.
                return match self.backend.stream.poll_flush(cx) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => Ok(()),
                };
            }
            match self.backend.stream.try_write(rest) {
                Ok(count) => {
                    self.sent += count;
                    self.deadline = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let deadline = self.deadline();
                    match self.backend.stream.poll_writable(cx, deadline) {
                        Poll::Ready(outcome) => outcome?,
                        Poll::Pending => return Ok(()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        waits_for_client: bool,
    ) -> Poll<Result<(), Broken>> {
        // The client has limits of its own.
        let deadline = if waits_for_client { Deadline::NEVER } else { self.deadline() };
        self.input.reserve(READ_BYTES);
        let count = ready!(self.backend.stream.poll_read(cx, &mut self.input, deadline));
        match count {
            Ok(0) => Poll::Ready(Err(Broken::Closed)),
            Ok(_) => {
                let now_ms = self.backend.stream.handle().clock().now_ms();
                let taken = self.protocol.receive_responses(&self.input, now_ms);
                self.input.drain(..taken);
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(Broken::Io(error))),
        }
    }

    fn deadline(&mut self) -> Deadline {
        let handle = self.backend.stream.handle();
        *self.deadline.get_or_insert_with(|| handle.deadline(self.timeout))
    }

    /// The next wait for the backend has its whole time: what was waited for was the client.
    pub fn restart_wait(&mut self) {
        self.deadline = None;
    }

    /// Ends a complete conversation, or one whose response is of no use. The connection is kept if
    /// all that was to be sent on it fits into its socket.
    pub fn end(mut self) {
        self.protocol.release(self.stream);
        while let Some(rest) = self.protocol.output.get(self.sent..).filter(|rest| !rest.is_empty())
        {
            match self.backend.stream.try_write(rest) {
                Ok(count) => self.sent += count,
                Err(_) => return,
            }
        }
        self.protocol.output.clear();
        let is_usable = self.input.is_empty() && self.last.is_none();
        if is_usable && self.protocol.has_place() {
            self.protocol.output = Vec::new();
            self.backend.put_protocol(self.protocol);
            self.backend.give_back();
        }
    }
}
