//! The client's side: requests to a server, and its responses.

use super::connection::{Connection, Event, Failure, Limits, Phase};
use super::fields;
use super::frame::{self, PREFACE};
use super::hpack::HpackError;
use super::ledger;
use super::receive::Outcome;
use super::response_fields::ResponseFields;
use super::send::Start;
use super::settings;
use super::stream::{State, Stream};
use super::window::SendWindow;
use super::{Code, StreamId};

/// Interim responses to a request; more of them are an attack.
const INTERIMS: u8 = 32;

/// The last number that a client's stream may have.
const LAST_STREAM: StreamId = 0x7fff_ffff;

/// The pseudo-header fields of a request (RFC 9113 section 8.3.1).
#[derive(Clone, Copy, Debug)]
pub struct Pseudo<'a> {
    /// `:method`
    pub method: &'a [u8],
    /// `:scheme`
    pub scheme: &'a [u8],
    /// `:authority`
    pub authority: &'a [u8],
    /// `:path`
    pub path: &'a [u8],
}

impl Connection {
    /// Returns a client's connection, whose output has the preface and the settings. The server may
    /// not push.
    pub fn client(limits: Limits, now_ms: u64) -> Connection {
        let mut connection = Connection::blank(limits, now_ms);
        connection.is_client = true;
        connection.phase = Phase::FirstSettings;
        connection.output.extend_from_slice(PREFACE);
        connection.write_settings(&[
            (settings::ENABLE_PUSH, 0),
            (settings::INITIAL_WINDOW_SIZE, limits.window_bytes),
            (settings::MAX_HEADER_LIST_SIZE, fields::list_bytes(&limits.head) as u32),
        ]);
        connection
    }

    /// Whether another request can be sent now.
    pub fn has_place(&self) -> bool {
        let is_open = self.failure.is_none() && !self.peer_left && self.last < LAST_STREAM - 2;
        is_open && self.streams.len() < self.peer.streams as usize
    }

    /// Appends the head of a request, and returns its stream. `ends`: it has no body. `None`
    /// without a place ([`Connection::has_place`]).
    pub fn request<'f>(
        &mut self,
        pseudo: &Pseudo<'_>,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        ends: bool,
    ) -> Option<StreamId> {
        if !self.has_place() {
            return None;
        }
        let id = if self.last == 0 { 1 } else { self.last + 2 };
        (self.last, self.seen) = (id, id);
        let window = SendWindow::new(self.peer.initial_window_bytes);
        let mut stream = Stream::new(id, State::Open, window, self.window_of_new());
        stream.is_head_request = pseudo.method == b"HEAD";
        self.streams.push(stream);
        let start: [(&[u8], &[u8]); 4] = [
            (b":scheme", pseudo.scheme),
            (b":authority", pseudo.authority),
            (b":path", pseudo.path),
            (b":method", pseudo.method),
        ];
        // An empty authority is none.
        let start: Vec<_> = start.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        self.write_fields(id, Start::Pseudo(&start), fields, ends);
        if ends {
            self.end_own(id);
        }
        Some(id)
    }

    /// Takes all complete frames at the beginning of `input`, as [`Connection::receive`] does.
    pub fn receive_responses(&mut self, input: &[u8], now_ms: u64) -> usize {
        self.take_frames(input, None, now_ms)
    }

    /// A block of fields is complete: the head of a response, or the trailer fields behind it.
    pub(super) fn response(&mut self, id: StreamId, ends: bool, block: &[u8]) -> Outcome {
        let mut fields = ResponseFields::new(self.limits.head);
        match self.decoder.decode(block, |name, value| fields.take(name, value)) {
            Ok(()) => {}
            Err(HpackError::Refused) => {
                return Err(Failure(Code::ENHANCE_YOUR_CALM, "too many header fields"));
            }
            Err(_) => return Err(Failure(Code::COMPRESSION_ERROR, "invalid header block")),
        }
        let Some(stream) = self.find(id).filter(|stream| stream.peer_may_send()) else {
            // It is no longer of interest, and the server did not know.
            return self.pay(ledger::Event::Frame);
        };
        let is_trailers = stream.has_head;
        let Some(found) = fields.finish(is_trailers) else {
            return self.stream_error(id, Code::PROTOCOL_ERROR);
        };
        if is_trailers {
            return self.response_trailers(id, ends, found.fields);
        }
        let is_interim = found.status < 200;
        if is_interim {
            stream.interims += 1;
        }
        if is_interim && (ends || found.status == 101 || stream.interims > INTERIMS) {
            return self.stream_error(id, Code::PROTOCOL_ERROR);
        }
        stream.has_head = !is_interim;
        let has_no_body = stream.is_head_request || matches!(found.status, 204 | 304);
        stream.announced = if has_no_body { Some(0) } else { found.announced };
        if ends && stream.announced.is_some_and(|length| length > 0) {
            return self.stream_error(id, Code::PROTOCOL_ERROR);
        }
        if ends {
            stream.end_peer();
            self.ledger.responded();
        }
        let (status, fields) = (found.status, found.fields);
        self.events.push_back(Event::Response { stream: id, status, fields, ends });
        Ok(())
    }

    fn response_trailers(
        &mut self,
        id: StreamId,
        ends: bool,
        fields: crate::table::Table,
    ) -> Outcome {
        let Some(stream) = self.find(id) else { return Ok(()) };
        let is_short = stream.announced.is_some_and(|announced| stream.received != announced);
        if !ends || is_short {
            return self.stream_error(id, Code::PROTOCOL_ERROR);
        }
        stream.end_peer();
        self.ledger.responded();
        self.events.push_back(Event::Trailers { stream: id, fields });
        Ok(())
    }

    /// Appends a PING, to which the peer responds ([`Event::Pong`]).
    pub fn send_ping(&mut self) {
        frame::write(frame::kind::PING, 0, 0, b"tamarack", &mut self.output);
    }
}
