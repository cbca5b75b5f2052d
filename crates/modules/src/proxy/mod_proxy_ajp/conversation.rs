//! A connection while it carries a request and its response: the container says when it wants more
//! of the request's body.

use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rt::Deadline;
use server::request_body::{BodyError, BodyIn};
use wire::ajp::{AjpEvent, AjpFault, PacketDecoder, SendHeaders};

use super::body::PacketBody;
use crate::proxy::mod_proxy::backend::Backend;
use crate::proxy::mod_proxy::busy::Busy;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// A request in progress.
pub(super) struct Conversation {
    pub backend: Backend,
    pub body: PacketBody,
    _busy: Busy,
    decoder: PacketDecoder,
    /// What was received. Bytes before `at` are decoded.
    received: Vec<u8>,
    at: usize,
    /// Packets to send. Bytes before `sent` are sent.
    outgoing: Vec<u8>,
    sent: usize,
    /// The container wants a packet of the body.
    is_asked: bool,
    timeout: Duration,
    /// When the container must have said or taken something; `None` while it need not.
    deadline: Option<Deadline>,
    /// Whether the container has said anything.
    pub has_answered: bool,
    /// Whether it has sent a packet.
    pub has_packet: bool,
    /// Bytes of the request's body that were sent.
    pub body_bytes: u64,
}

/// What a container says. The range is of [`Conversation::bytes`], until the next call.
pub(super) enum Said {
    /// The head of the response.
    Head,
    /// A part of the body; an empty one asks for a flush.
    Body(Range<usize>),
    /// The response is complete; the connection can be used again, or not.
    End { reuse: bool },
}

/// Why a response does not continue.
#[derive(Debug)]
pub(crate) enum Broken {
    /// What arrived is no packet, or not one that may come now.
    Fault(AjpFault),
    /// The connection ended or is broken, or the time is up, and what is missing therefore; nothing
    /// if it could not be written to.
    Io(io::Error, Option<AjpFault>),
    /// The request's body is not complete.
    Client(BodyError),
    /// The request's body can't be kept for later: the status of the response.
    Unread(u16),
}

impl Broken {
    /// Whether it is the client's fault.
    pub fn is_of_client(&self) -> bool {
        matches!(self, Broken::Client(_) | Broken::Unread(_))
    }

    /// Whether the time is up.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Broken::Io(error, _) if error.kind() == io::ErrorKind::TimedOut)
    }
}

impl From<BodyError> for Broken {
    fn from(error: BodyError) -> Broken {
        Broken::Client(error)
    }
}

impl Conversation {
    /// Begins with the packet of the request, behind which the first one of the body follows
    /// unasked if `sends_first`.
    pub fn new(
        (backend, busy): (Backend, Busy),
        timeout: Duration,
        packet: Vec<u8>,
        (body, sends_first): (PacketBody, bool),
        packet_bytes: usize,
    ) -> Conversation {
        Conversation {
            backend,
            body,
            _busy: busy,
            decoder: PacketDecoder::new(packet_bytes),
            received: Vec::new(),
            at: 0,
            outgoing: packet,
            sent: 0,
            is_asked: sends_first,
            timeout,
            deadline: None,
            has_answered: false,
            has_packet: false,
            body_bytes: 0,
        }
    }

    /// The bytes of a range in the latest [`Said`].
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.received.get(range).unwrap_or_default()
    }

    /// What the container says next; `on_head` gets the head. Without `client` the rest of the
    /// request's body can't be asked for.
    pub fn poll_said(
        &mut self,
        cx: &mut Context<'_>,
        mut client: Option<&mut BodyIn>,
        on_head: &mut dyn FnMut(&SendHeaders<'_>),
    ) -> Poll<Result<Said, Broken>> {
        loop {
            ready!(self.poll_send(cx, client.as_deref_mut()))?;
            let rest = self.received.get(self.at..).unwrap_or_default();
            let event = match self.decoder.decode(rest) {
                Ok(event) => event,
                Err(fault) => {
                    self.has_packet |= !fault.is_before_kind();
                    return Poll::Ready(Err(Broken::Fault(fault)));
                }
            };
            self.has_packet |= !matches!(event, AjpEvent::NeedMore);
            let said = match event {
                AjpEvent::NeedMore => {
                    ready!(self.poll_receive(cx))?;
                    continue;
                }
                AjpEvent::Headers { consumed, headers } => {
                    on_head(&headers);
                    self.at += consumed;
                    Said::Head
                }
                AjpEvent::Body { consumed, bytes } => {
                    let length = bytes.len();
                    self.at += consumed;
                    // One byte follows the text.
                    let end = self.at - 1;
                    Said::Body(end - length..end)
                }
                AjpEvent::GetBody { consumed, .. } => {
                    self.at += consumed;
                    self.is_asked = true;
                    continue;
                }
                AjpEvent::End { consumed, reuse } => {
                    self.at += consumed;
                    Said::End { reuse }
                }
                AjpEvent::Pong { consumed } => {
                    self.at += consumed;
                    continue;
                }
            };
            return Poll::Ready(Ok(said));
        }
    }

    /// The next wait for the container has its whole time: what was waited for was the client.
    pub fn restart_wait(&mut self) {
        self.deadline = None;
    }

    /// Ends a complete conversation. The connection is kept, if nothing follows.
    pub fn end(self, reuse: bool) {
        if reuse && self.at == self.received.len() {
            self.backend.give_back();
        }
    }

    /// Sends what is to be sent.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        mut client: Option<&mut BodyIn>,
    ) -> Poll<Result<(), Broken>> {
        loop {
            while let Some(rest) = self.outgoing.get(self.sent..).filter(|rest| !rest.is_empty()) {
                match self.backend.stream.try_write(rest) {
                    Ok(count) => {
                        self.sent += count;
                        self.deadline = None;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let deadline = self.deadline();
                        let writable = ready!(self.backend.stream.poll_writable(cx, deadline));
                        writable.map_err(|error| Broken::Io(error, None))?;
                    }
                    Err(error) => return Poll::Ready(Err(Broken::Io(error, None))),
                }
            }
            self.outgoing.clear();
            self.sent = 0;
            if !self.is_asked {
                return Poll::Ready(Ok(()));
            }
            let polled = self.body.poll_packet(cx, client.as_deref_mut(), &mut self.outgoing);
            self.body_bytes += ready!(polled)? as u64;
            self.is_asked = false;
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.received.drain(..self.at);
        self.at = 0;
        self.received.reserve(READ_BYTES);
        let deadline = self.deadline();
        let count = ready!(self.backend.stream.poll_read(cx, &mut self.received, deadline));
        self.deadline = None;
        match count {
            Ok(0) => Poll::Ready(Err(self.cut(io::ErrorKind::UnexpectedEof.into()))),
            Ok(_) => {
                self.has_answered = true;
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(self.cut(error))),
        }
    }

    /// Nothing follows what was received.
    fn cut(&self, error: io::Error) -> Broken {
        Broken::Io(error, Some(self.decoder.end_of_input(&self.received)))
    }

    fn deadline(&mut self) -> Deadline {
        let handle = self.backend.stream.handle();
        *self.deadline.get_or_insert_with(|| handle.deadline(self.timeout))
    }
}
