//! A WebSocket on a stream (RFC 8441): bytes of its DATA frames pass to and from a server of
//! HTTP/1.1 that has switched protocols.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use rt::{Deadline, Sleep, Stream as Socket};
use server::log::Level;
use server::request::Request;
use server::tunnel::{Message, Tunnel};
use wire::h2::Code;

use super::stream::{BodyEnd, Stream};
use crate::head_text;

/// Bytes that are received from the server at once.
const READ_BYTES: usize = 16 * 1024;

/// Fields that mean nothing to a client of HTTP/2; others of a connection are left out anyway.
const OF_HTTP1: &[u8] = b"Sec-WebSocket-Accept";

/// What has not been passed on yet, in both directions.
struct Pipe {
    far: Socket,
    /// For the server.
    outward: Bytes,
    has_client_ended: bool,
    /// For the client.
    inward: Vec<u8>,
    has_server_ended: bool,
    /// The time without any byte after which the tunnel ends.
    idle: Duration,
    /// When it ends, if no byte moves.
    idle_until: Deadline,
    /// When it ends, if it waits for the client.
    client_until: Option<Deadline>,
    sleep: Pin<Box<Sleep>>,
    /// Bytes from the client.
    outward_bytes: u64,
    /// Bytes from the server.
    inward_bytes: u64,
}

/// Sends the head, and passes bytes until both ends have ended.
pub(super) async fn run(stream: &Stream, request: &mut Request, tunnel: Tunnel) -> io::Result<()> {
    let (_, fields) = head_text::parse(&tunnel.head).ok_or(io::ErrorKind::InvalidData)?;
    let fields = fields.filter(|(name, _)| !name.eq_ignore_ascii_case(OF_HTTP1));
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    request.response.status = 200;
    stream.send(|protocol| protocol.respond(stream.id, 200, fields, false));
    let handle = request.engine.handle.clone();
    let idle_until = handle.deadline(tunnel.idle);
    let mut pipe = Pipe {
        far: tunnel.far,
        outward: Bytes::new(),
        has_client_ended: false,
        inward: tunnel.received,
        has_server_ended: false,
        idle: tunnel.idle,
        idle_until,
        client_until: None,
        sleep: Box::pin(handle.sleep_until(idle_until)),
        outward_bytes: 0,
        inward_bytes: 0,
    };
    let outcome = poll_fn(|cx| pipe.poll(cx, stream)).await;
    request.response.bytes_sent = pipe.inward_bytes;
    if let Err(error) = &outcome {
        let is_silent = error.kind() == io::ErrorKind::TimedOut;
        if let Some(&Message { module, number, text }) = tunnel.timed_out.filter(|_| is_silent) {
            request.log_as(module, Level::Error, number, format_args!("{text}"));
        }
        if is_silent && pipe.inward.is_empty() {
            // The client has got all that there is.
            stream.add(b"", 0, true);
        } else {
            stream.send(|protocol| protocol.reset(stream.id, Code::CANCEL));
        }
    }
    drop(tunnel.guard);
    outcome
}

impl Pipe {
    fn poll(&mut self, cx: &mut Context<'_>, stream: &Stream) -> Poll<io::Result<()>> {
        let before = [self.outward_bytes, self.inward_bytes];
        let inward = self.poll_inward(cx, stream)?;
        let outward = self.poll_outward(cx, stream)?;
        if inward.is_ready() && (outward.is_ready() || stream.end.get() != BodyEnd::No) {
            return Poll::Ready(Ok(()));
        }
        self.restart(before, stream);
        self.poll_deadline(cx)
    }

    /// Begins to wait again, if bytes have moved since.
    fn restart(&mut self, before: [u64; 2], stream: &Stream) {
        let has_sent = self.outward_bytes != before[0];
        let has_received = self.inward_bytes != before[1];
        if has_sent || has_received {
            self.idle_until = self.far.handle().deadline(self.idle);
        }
        // What a client sends does not show that it takes anything.
        let has_moved = has_received || has_sent && self.inward.is_empty();
        self.client_until = match self.client_until.filter(|_| !has_moved) {
            _ if self.inward.is_empty() && !self.has_server_ended => None,
            None => Some(stream.deadline()),
            since => since,
        };
    }

    /// Fails once it is time to end. Two open ends may be silent for as long as the tunnel allows,
    /// perhaps forever; a client that is to take bytes, or to end as well, has as long as for any
    /// response.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let deadline =
            self.client_until.map_or(self.idle_until, |until| until.min(self.idle_until));
        self.sleep.as_mut().reset(deadline);
        self.sleep.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// From the client to the server.
    fn poll_outward(&mut self, cx: &mut Context<'_>, stream: &Stream) -> io::Result<Poll<()>> {
        while !self.has_client_ended {
            if self.outward.is_empty() {
                let piece = stream.pieces.borrow_mut().pop_front();
                match (piece, stream.end.get()) {
                    (Some(piece), _) => {
                        let bytes = piece.len();
                        stream.shared.protocol.borrow_mut().taken(stream.id, bytes);
                        stream.shared.wake();
                        self.outward = piece.into();
                    }
                    (None, BodyEnd::Yes) => {
                        self.far.shutdown_write()?;
                        self.has_client_ended = true;
                        break;
                    }
                    (None, BodyEnd::Broken) => return Err(io::ErrorKind::ConnectionReset.into()),
                    (None, BodyEnd::No) => {
                        stream.reader.replace(Some(cx.waker().clone()));
                        return Ok(Poll::Pending);
                    }
                }
            }
            match self.far.try_write(&self.outward) {
                Ok(count) => {
                    self.outward.advance(count);
                    self.outward_bytes += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.far.poll_writable(cx, Deadline::NEVER) {
                        Poll::Ready(outcome) => outcome?,
                        Poll::Pending => return Ok(Poll::Pending),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Poll::Ready(()))
    }

    /// From the server to the client.
    fn poll_inward(&mut self, cx: &mut Context<'_>, stream: &Stream) -> io::Result<Poll<()>> {
        loop {
            while !self.inward.is_empty() {
                let room = match stream.poll_room(cx) {
                    Poll::Ready(room) => room?,
                    Poll::Pending => return Ok(Poll::Pending),
                };
                let sent = stream.add(&self.inward, room, false);
                self.inward.drain(..sent);
                self.inward_bytes += sent as u64;
            }
            if self.has_server_ended {
                return Ok(Poll::Ready(()));
            }
            self.inward.reserve(READ_BYTES);
            match self.far.poll_read(cx, &mut self.inward, Deadline::NEVER) {
                Poll::Ready(Ok(0)) => {
                    self.has_server_ended = true;
                    stream.add(b"", 0, true);
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {
                    // An idle tunnel holds no memory.
                    self.inward = Vec::new();
                    return Ok(Poll::Pending);
                }
            }
        }
    }
}
