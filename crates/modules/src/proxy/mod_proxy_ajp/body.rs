//! The body of a request as packets.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::request::Request;
use server::request_body::{BodyError, BodyIn};
use wire::ajp::{BODY_HEADER_BYTES, END_OF_BODY, body_header};

use crate::proxy::mod_proxy::outgoing::Outgoing;
use crate::proxy::mod_proxy::upload::Upload;

/// What of a request's body is not sent.
pub(super) struct PacketBody {
    /// `None` once something of it was taken.
    unsent: Option<Outgoing>,
    /// Read, but not sent.
    ready: VecDeque<Bytes>,
    rest: Upload,
    /// The length in bytes, if it is known.
    length: Option<u64>,
    /// Bytes that came from the client.
    taken: u64,
    /// What is wrong with what follows.
    failure: Option<BodyError>,
    /// All of it was taken.
    is_read: bool,
    packet_bytes: usize,
}

impl PacketBody {
    /// The body in packets of at most `packet_bytes`.
    pub fn new(request: &Request, outgoing: Outgoing, packet_bytes: usize) -> PacketBody {
        let first: VecDeque<Bytes> = outgoing.first().iter().cloned().collect();
        PacketBody {
            length: request.body_in.length(),
            taken: first.iter().map(|piece| piece.len() as u64).sum(),
            ready: first,
            rest: Upload::of(&outgoing),
            unsent: Some(outgoing),
            failure: None,
            is_read: false,
            packet_bytes,
        }
    }

    /// The body, if nothing of it was taken.
    pub fn take_unsent(&mut self) -> Option<Outgoing> {
        self.unsent.take()
    }

    /// Whether some of it is still to come from the client.
    pub fn needs_client(&self) -> bool {
        matches!(self.rest, Upload::Client) && !self.is_read && self.length != Some(self.taken)
    }

    /// What is still to come from the client is in this file.
    pub fn set_spooled(&mut self, file: std::fs::File, length: u64) {
        self.rest = Upload::Spooled { file: file.into(), at: 0, length };
    }

    /// Appends the next packet, which is empty at the end, however often it is asked for; returns
    /// how much of the body it has. Without `body` the client can't be asked.
    pub fn poll_packet(
        &mut self,
        cx: &mut Context<'_>,
        mut body: Option<&mut BodyIn>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<usize, BodyError>> {
        if let Some(why) = self.failure.take() {
            return Poll::Ready(Err(why));
        }
        let piece = ready!(self.poll_piece(cx, body.as_deref_mut()))?;
        self.unsent = None;
        let Some(piece) = piece else {
            out.extend_from_slice(&END_OF_BODY);
            return Poll::Ready(Ok(0));
        };
        let at = out.len();
        out.extend_from_slice(&body_header(0));
        let mut length = self.take(piece, 0, out);
        // What else is there goes with it; what is wrong with it shows in the next packet.
        while length < self.most() {
            match self.poll_piece(cx, body.as_deref_mut()) {
                Poll::Ready(Ok(Some(piece))) => length = self.take(piece, length, out),
                Poll::Ready(Err(why)) => {
                    self.failure = Some(why);
                    break;
                }
                Poll::Ready(Ok(None)) | Poll::Pending => break,
            }
        }
        if let Some(header) = out.get_mut(at..at + BODY_HEADER_BYTES) {
            header.copy_from_slice(&body_header(length));
        }
        Poll::Ready(Ok(length))
    }

    /// Most bytes of the body in one packet.
    fn most(&self) -> usize {
        self.packet_bytes - BODY_HEADER_BYTES
    }

    /// Appends as much of the piece as fits into a packet that has `length` bytes already; returns
    /// how many it has now.
    fn take(&mut self, mut piece: Bytes, length: usize, out: &mut Vec<u8>) -> usize {
        let now = piece.split_to(piece.len().min(self.most() - length));
        if !piece.is_empty() {
            self.ready.push_front(piece);
        }
        out.extend_from_slice(&now);
        length + now.len()
    }

    /// The next piece that is not empty.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        mut body: Option<&mut BodyIn>,
    ) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            let piece = match self.ready.pop_front() {
                Some(piece) => piece,
                None if self.is_read => return Poll::Ready(Ok(None)),
                None if matches!(self.rest, Upload::Client) && self.length == Some(self.taken) => {
                    return Poll::Ready(Ok(None));
                }
                None => match ready!(self.rest.poll_next(cx, body.as_deref_mut())) {
                    None => {
                        self.is_read = true;
                        return Poll::Ready(Ok(None));
                    }
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                    Some(Ok(piece)) => {
                        self.taken += piece.len() as u64;
                        piece
                    }
                },
            };
            if !piece.is_empty() {
                return Poll::Ready(Ok(Some(piece)));
            }
        }
    }
}
