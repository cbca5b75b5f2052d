//! What either end sends on a connection.

use super::connection::Connection;
use super::fields::OF_CONNECTION;
use super::frame::{self, Head, flag, kind};
use super::hpack::{Encoder, Indexing};
use super::prepared::{Piece, Prepared};
use super::stream::State;
use super::{Code, StreamId};

/// Data that is shorter, and fills the window, is short because of the window.
const SHORT_BYTES: usize = 1024;

/// The place of the flags in a frame's head.
const FLAGS_AT: usize = 4;

/// The last number of a stream.
const LAST_STREAM: StreamId = 0x7fff_ffff;

/// How a block of fields begins.
pub(super) enum Start<'a> {
    /// With the status of a response.
    Status(u16),
    /// With the pseudo-header fields of a request.
    Pseudo(&'a [(&'a [u8], &'a [u8])]),
    /// With a field: it is one of trailers.
    Trailers,
    /// With the pseudo-header fields of a request whose response is pushed on this stream.
    Promise(StreamId, &'a [(&'a [u8], &'a [u8])]),
}

impl Connection {
    /// Appends the head of a response. `ends`: it has no body. Without effect if the stream is
    /// gone.
    pub fn respond<'f>(
        &mut self,
        stream: StreamId,
        status: u16,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        ends: bool,
    ) {
        if self.find(stream).is_some_and(|stream| stream.may_send()) {
            self.write_fields(stream, Start::Status(status), fields, ends);
            if ends {
                self.end_own(stream);
            }
        }
    }

    /// The same with a first field, whose name is in lower case, before the prepared ones.
    pub fn respond_prepared(
        &mut self,
        stream: StreamId,
        status: u16,
        first: (&[u8], &[u8]),
        rest: &Prepared,
        ends: bool,
    ) {
        if self.find(stream).is_none_or(|stream| !stream.may_send()) {
            return;
        }
        self.write_block(stream, Start::Status(status), ends, |encoder, out| {
            encoder.field(first.0, first.1, indexing(first.0), out);
            for piece in rest.pieces() {
                match piece {
                    Piece::Encoded(fields) => out.extend_from_slice(fields),
                    Piece::Field { name, value, mark } => encoder.shared(name, value, mark, out),
                }
            }
        });
        if ends {
            self.end_own(stream);
        }
    }

    /// Appends the trailer fields behind a body, which end it.
    pub fn respond_trailers<'f>(
        &mut self,
        stream: StreamId,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
    ) {
        if self.find(stream).is_some_and(|stream| stream.may_send()) {
            self.write_fields(stream, Start::Trailers, fields, true);
            self.end_own(stream);
        }
    }

    pub(super) fn write_fields<'f>(
        &mut self,
        stream: StreamId,
        start: Start<'_>,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        ends: bool,
    ) {
        let mut lower = std::mem::take(&mut self.lower);
        self.write_block(stream, start, ends, |encoder, out| {
            for (name, value) in fields {
                lower.clear();
                lower.extend(name.iter().map(u8::to_ascii_lowercase));
                let name = &*lower;
                if !OF_CONNECTION.contains(&name) {
                    encoder.field(name, value, indexing(name), out);
                }
            }
        });
        self.lower = lower;
    }

    /// Writes the frames of a block, whose fields `write` encodes.
    fn write_block(
        &mut self,
        stream: StreamId,
        start: Start<'_>,
        ends: bool,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let padding = self.next_padding();
        let out = &mut self.output;
        let begin = out.len();
        let end_stream = if ends { flag::END_STREAM } else { 0 };
        let is_promise = matches!(start, Start::Promise(..));
        let kind = if is_promise { kind::PUSH_PROMISE } else { kind::HEADERS };
        let head = Head { length: 0, kind, flags: flag::END_HEADERS | end_stream, stream };
        head.write(out);
        if let Start::Promise(promised, _) = start {
            out.extend_from_slice(&promised.to_be_bytes());
        }
        self.encoder.begin(out);
        match start {
            Start::Status(status) => self.encoder.status(status, out),
            Start::Pseudo(fields) | Start::Promise(_, fields) => {
                for (name, value) in fields {
                    self.encoder.field(name, value, indexing(name), out);
                }
            }
            Start::Trailers => {}
        }
        write(&mut self.encoder, out);
        let mut length = out.len() - begin - frame::HEAD_BYTES;
        if let Some(padding) = padding
            && length + usize::from(padding) < frame::PAYLOAD_BYTES
        {
            out.insert(begin + frame::HEAD_BYTES, padding);
            length += 1 + usize::from(padding);
            out.resize(begin + frame::HEAD_BYTES + length, 0);
            if let Some(flags) = out.get_mut(begin + FLAGS_AT) {
                *flags |= flag::PADDED;
            }
        }
        if length <= frame::PAYLOAD_BYTES {
            let [_, a, b, c] = (length as u32).to_be_bytes();
            if let Some(bytes) = out.get_mut(begin..begin + 3) {
                bytes.copy_from_slice(&[a, b, c]);
            }
            return;
        }
        let block = out.split_off(begin + frame::HEAD_BYTES);
        out.truncate(begin);
        write_long(&block, head, out);
    }

    /// The bytes of bodies that may be sent on all streams now.
    pub fn connection_window(&self) -> usize {
        self.send_window.available()
    }

    /// The bytes of a body that may be sent on this stream now; `None` if it takes none any more.
    pub fn window(&self, stream: StreamId) -> Option<usize> {
        self.stream_window(stream).map(|window| window.min(self.connection_window()))
    }

    /// The same, as if all others were silent.
    pub fn stream_window(&self, stream: StreamId) -> Option<usize> {
        let at = self.streams.binary_search_by_key(&stream, |stream| stream.id).ok()?;
        let stream = self.streams.get(at).filter(|stream| stream.may_send())?;
        Some(stream.send_window.available())
    }

    /// Appends as much of a response's body as the windows allow, and returns how much that is.
    /// `ends`: nothing follows after all of `bytes`.
    pub fn send_data(&mut self, stream: StreamId, bytes: &[u8], ends: bool) -> usize {
        let Some(window) = self.window(stream) else { return 0 };
        let sent = window.min(bytes.len());
        let is_all = sent == bytes.len();
        if sent == 0 && !(ends && is_all) {
            return 0;
        }
        let frame_bytes = self.limits.data_bytes.clamp(1, frame::PAYLOAD_BYTES);
        let mut rest = bytes.get(..sent).unwrap_or_default();
        let mut spare = window - sent;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(frame_bytes));
            rest = after;
            let is_last = ends && is_all && rest.is_empty();
            let flags = if is_last { flag::END_STREAM } else { 0 };
            spare -= self.write_data(flags, stream, piece, spare);
            if sent >= SHORT_BYTES || sent < window {
                self.ledger.sent_data();
            }
            if rest.is_empty() {
                break;
            }
        }
        self.send_window.take(sent);
        self.ledger.carried(sent);
        if let Some(stream) = self.find(stream) {
            stream.send_window.take(sent);
        }
        if ends && is_all {
            self.end_own(stream);
        }
        sent
    }

    /// Writes a frame, with padding if `room` bytes of the windows suffice for it; returns how many
    /// of them it takes.
    fn write_data(&mut self, flags: u8, id: StreamId, piece: &[u8], room: usize) -> usize {
        let padding = self.next_padding().filter(|padding| {
            let more = usize::from(*padding) + 1;
            more <= room && piece.len() + more <= frame::PAYLOAD_BYTES
        });
        let Some(padding) = padding else {
            frame::write(kind::DATA, flags, id, piece, &mut self.output);
            return 0;
        };
        let zeros = [0; u8::MAX as usize];
        let zeros = zeros.get(..usize::from(padding)).unwrap_or_default();
        let payload = [&[padding], piece, zeros].concat();
        frame::write(kind::DATA, flags | flag::PADDED, id, &payload, &mut self.output);
        let more = zeros.len() + 1;
        self.send_window.take(more);
        if let Some(stream) = self.find(id) {
            stream.send_window.take(more);
        }
        more
    }

    pub(super) fn end_own(&mut self, id: StreamId) {
        if let Some(stream) = self.find(id) {
            stream.end_own();
        }
        // Only what the client asked for is progress.
        if !self.is_client && !id.is_multiple_of(2) {
            self.ledger.responded();
        }
    }

    /// Whether the peer may still send on a stream.
    pub fn expects_more(&mut self, stream: StreamId) -> bool {
        self.find(stream).is_some_and(|stream| stream.peer_may_send())
    }

    /// Resets a stream, unless it is closed already.
    pub fn reset(&mut self, id: StreamId, code: Code) {
        let Some(stream) = self.find(id).filter(|stream| stream.state != State::Closed) else {
            return;
        };
        stream.state = State::Closed;
        self.write_reset(id, code);
    }

    /// Bytes of a body have been taken: the peer may send as many more.
    pub fn taken(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.find(id) else { return };
        let bytes = bytes.min(stream.untaken);
        stream.untaken -= bytes;
        let grant = stream.receive_window.give_back(bytes).filter(|_| stream.peer_may_send());
        if let Some(grant) = grant {
            frame::write_window(id, grant, &mut self.output);
        }
        self.return_to_connection(bytes);
    }

    /// A stream is of no more use: another one may take its place.
    pub fn release(&mut self, id: StreamId) {
        let Ok(at) = self.streams.binary_search_by_key(&id, |stream| stream.id) else { return };
        let stream = self.streams.remove(at);
        self.pushed -= usize::from(id.is_multiple_of(2));
        match stream.state {
            State::Closed => {}
            _ if self.is_client => self.write_reset(id, Code::CANCEL),
            // The request's body was not needed (RFC 9113 section 8.1).
            State::OwnEnded => self.write_reset(id, Code::NO_ERROR),
            State::Open | State::PeerEnded => self.write_reset(id, Code::INTERNAL_ERROR),
        }
        self.return_to_connection(stream.untaken);
    }

    /// Whether no request is being served.
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Asks the client to send no more requests, while those on their way are still served. The
    /// second call comes once they must have arrived.
    pub fn ask_to_leave(&mut self) {
        if self.goaway.is_none() {
            self.goaway = Some(LAST_STREAM);
            frame::write_goaway(LAST_STREAM, Code::NO_ERROR, "shutdown", &mut self.output);
        }
    }

    /// Serves no further request.
    pub fn leave(&mut self) {
        if self.goaway.is_none_or(|last| last == LAST_STREAM) {
            self.goaway = Some(self.last);
            frame::write_goaway(self.last, Code::NO_ERROR, "", &mut self.output);
        }
    }

    /// Whether further requests are refused.
    pub fn has_left(&self) -> bool {
        self.goaway.is_some_and(|last| last != LAST_STREAM)
    }

    /// Whether the client was asked to leave.
    pub fn is_leaving(&self) -> bool {
        self.goaway.is_some()
    }
}

/// Appends a block that is longer than one frame.
fn write_long(block: &[u8], head: Head, out: &mut Vec<u8>) {
    let mut pieces = block.chunks(frame::PAYLOAD_BYTES).peekable();
    let (mut kind, mut flags) = (head.kind, head.flags & !flag::END_HEADERS);
    while let Some(piece) = pieces.next() {
        let end = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
        frame::write(kind, flags | end, head.stream, piece, out);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}

/// Whether a field belongs to a connection of HTTP/1 (RFC 9113 section 8.2.2).
pub fn is_of_connection(name: &[u8]) -> bool {
    OF_CONNECTION.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// How a field is encoded, by its name in lower case.
pub(super) fn indexing(name: &[u8]) -> Indexing {
    match name {
        b"set-cookie" | b"cookie" | b"authorization" | b"proxy-authorization" => Indexing::Never,
        // Their values are different in most messages.
        b":path" | b"content-length" | b"content-range" | b"etag" | b"last-modified"
        | b"location" | b"content-location" | b"age" => Indexing::None,
        _ => Indexing::Table,
    }
}
