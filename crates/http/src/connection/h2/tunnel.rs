//! A WebSocket on a stream (RFC 8441): bytes of its DATA frames pass to and from a server of
//! HTTP/1.1 that has switched protocols.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use rt::{Deadline, Stream as Socket};
use server::log::Level;
use server::request::Request;
use server::tunnel::{Message, Tunnel};
use wire::h2::Code;

use super::respond::parse_head;
use super::stream::{BodyEnd, Stream};

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
    deadline: Deadline,
    idle: std::time::Duration,
    /// Bytes from the server.
    carried: u64,
}

/// Sends the head, and passes bytes until both ends have ended.
pub(super) async fn run(stream: &Stream, request: &mut Request, tunnel: Tunnel) -> io::Result<()> {
    let (_, fields) = parse_head(&tunnel.head).ok_or(io::ErrorKind::InvalidData)?;
    let fields = fields.filter(|(name, _)| !name.eq_ignore_ascii_case(OF_HTTP1));
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    request.response.status = 200;
    stream.send(|protocol| protocol.respond(stream.id, 200, fields, false));
    let handle = request.engine.handle.clone();
    let mut pipe = Pipe {
        far: tunnel.far,
        outward: Bytes::new(),
        has_client_ended: false,
        inward: tunnel.received,
        has_server_ended: false,
        deadline: handle.deadline(tunnel.idle),
        idle: tunnel.idle,
        carried: 0,
    };
    let outcome = poll_fn(|cx| pipe.poll(cx, stream)).await;
    request.response.bytes_sent = pipe.carried;
    if let Err(error) = &outcome {
        let is_silent = error.kind() == io::ErrorKind::TimedOut;
        if let Some(&Message { module, number, text }) = tunnel.timed_out.filter(|_| is_silent) {
            request.log_as(module, Level::Error, number, format_args!("{text}"));
        }
        stream.send(|protocol| protocol.reset(stream.id, Code::CANCEL));
    }
    drop(tunnel.guard);
    outcome
}

impl Pipe {
    fn poll(&mut self, cx: &mut Context<'_>, stream: &Stream) -> Poll<io::Result<()>> {
        let inward = self.poll_inward(cx, stream)?;
        let outward = self.poll_outward(cx, stream)?;
        if inward.is_ready() && (outward.is_ready() || stream.end.get() != BodyEnd::No) {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    fn restart(&mut self) {
        self.deadline = self.far.handle().deadline(self.idle);
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
                    self.restart();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.far.poll_writable(cx, self.deadline) {
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
                self.carried += sent as u64;
                self.restart();
            }
            if self.has_server_ended {
                return Ok(Poll::Ready(()));
            }
            self.inward.reserve(READ_BYTES);
            match self.far.poll_read(cx, &mut self.inward, self.deadline) {
                Poll::Ready(Ok(0)) => {
                    self.has_server_ended = true;
                    stream.add(b"", 0, true);
                }
                Poll::Ready(Ok(_)) => self.restart(),
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
