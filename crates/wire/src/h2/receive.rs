//! What the peer sends on a connection: its frames, and those of its requests.

use super::connection::{Block, Connection, Event, Failure, Phase};
use super::fields::{self, Fields};
use super::frame::{self, Head, PREFACE, flag, kind};
use super::hpack::HpackError;
use super::ledger;
use super::stream::{State, Stream};
use super::window::SendWindow;
use super::{Code, StreamId};
use crate::request::HeadOptions;

/// CONTINUATION frames of a block beyond those that its length needs.
const SPARE_CONTINUATIONS: usize = 8;

pub(super) type Outcome = Result<(), Failure>;

pub(super) fn protocol(why: &'static str) -> Outcome {
    Err(Failure(Code::PROTOCOL_ERROR, why))
}

pub(super) fn frame_size(why: &'static str) -> Outcome {
    Err(Failure(Code::FRAME_SIZE_ERROR, why))
}

impl Connection {
    /// Takes all complete frames at the beginning of `input`; returns how many bytes they have. The
    /// rest is to be passed again, with more behind it; it is shorter than a frame. After a
    /// [`Connection::failure`] everything is discarded.
    pub fn receive(&mut self, input: &[u8], options: &HeadOptions<'_>, now_ms: u64) -> usize {
        self.take_frames(input, Some(options), now_ms)
    }

    /// The same for both ends; a client has no options.
    pub(super) fn take_frames(
        &mut self,
        input: &[u8],
        options: Option<&HeadOptions<'_>>,
        now_ms: u64,
    ) -> usize {
        self.ledger.tick(now_ms);
        let mut rest = input;
        loop {
            if self.failure.is_some() {
                return input.len();
            }
            let taken = match self.phase {
                Phase::Preface => self.take_preface(rest),
                Phase::FirstSettings | Phase::Frames => self.take_frame(rest, options),
            };
            match taken {
                Ok(0) => return input.len() - rest.len(),
                Ok(taken) => rest = rest.get(taken..).unwrap_or_default(),
                Err(failure) => self.fail(failure),
            }
        }
    }

    fn take_preface(&mut self, input: &[u8]) -> Result<usize, Failure> {
        let count = input.len().min(PREFACE.len());
        if input.get(..count) != PREFACE.get(..count) {
            return Err(Failure(Code::PROTOCOL_ERROR, "invalid preface"));
        }
        if count < PREFACE.len() {
            return Ok(0);
        }
        self.phase = Phase::FirstSettings;
        Ok(count)
    }

    /// Takes one frame; 0 if it is not complete.
    fn take_frame(
        &mut self,
        input: &[u8],
        options: Option<&HeadOptions<'_>>,
    ) -> Result<usize, Failure> {
        let Some(head) = Head::parse(input) else { return Ok(0) };
        if head.length > frame::PAYLOAD_BYTES {
            return Err(Failure(Code::FRAME_SIZE_ERROR, "frame is too long"));
        }
        let total = frame::HEAD_BYTES + head.length;
        let Some(payload) = input.get(frame::HEAD_BYTES..total) else { return Ok(0) };
        if self.phase == Phase::FirstSettings {
            if head.kind != kind::SETTINGS || head.has(flag::ACK) {
                return Err(Failure(Code::PROTOCOL_ERROR, "the first frame is not SETTINGS"));
            }
            self.phase = Phase::Frames;
        }
        if self.block.is_some() && head.kind != kind::CONTINUATION {
            return Err(Failure(Code::PROTOCOL_ERROR, "expected CONTINUATION"));
        }
        match head.kind {
            kind::DATA => self.data(head, payload),
            kind::HEADERS => self.headers(head, payload, options),
            kind::CONTINUATION => self.continuation(head, payload, options),
            kind::PRIORITY => self.priority(head, payload),
            kind::RST_STREAM => self.rst_stream(head, payload),
            kind::SETTINGS => self.settings(head, payload),
            // A client can't push, and to this one it is not allowed.
            kind::PUSH_PROMISE => protocol("unexpected PUSH_PROMISE"),
            kind::PING => self.ping(head, payload),
            kind::GOAWAY => self.goaway(head, payload),
            kind::WINDOW_UPDATE => self.window_update(head, payload),
            kind::PRIORITY_UPDATE if !self.is_client => self.priority_update(head, payload),
            _ => self.pay(ledger::Event::Frame),
        }?;
        Ok(total)
    }

    pub(super) fn pay(&mut self, event: ledger::Event) -> Outcome {
        if self.ledger.pay(event) {
            return Ok(());
        }
        Err(Failure(Code::ENHANCE_YOUR_CALM, "too many frames without progress"))
    }

    /// Whether no frame but HEADERS and PRIORITY may be received on this stream yet.
    pub(super) fn is_unused(&self, id: StreamId) -> bool {
        let last = if id.is_multiple_of(2) { self.last_pushed } else { self.seen };
        id > last
    }

    /// Whether a stream is above the last one that is served: the client did not know.
    fn is_ignored(&self, id: StreamId) -> bool {
        self.goaway.is_some_and(|last| id > last)
    }

    /// Resets a stream for a fault of the peer.
    pub(super) fn stream_error(&mut self, id: StreamId, code: Code) -> Outcome {
        if let Some(stream) = self.find(id).filter(|stream| stream.state != State::Closed) {
            stream.state = State::Closed;
            self.events.push_back(Event::Reset { stream: id, code });
        }
        self.write_reset(id, code);
        self.pay(ledger::Event::Reset)
    }

    fn data(&mut self, head: Head, payload: &[u8]) -> Outcome {
        if head.stream == 0 || self.is_unused(head.stream) {
            return protocol("DATA on a stream that is not open");
        }
        if !self.receive_window.take(head.length) {
            return Err(Failure(Code::FLOW_CONTROL_ERROR, "DATA exceeds the connection's window"));
        }
        let Some(bytes) = frame::without_padding(head, payload) else {
            return protocol("invalid padding");
        };
        let ends = head.has(flag::END_STREAM);
        if bytes.is_empty() && !ends {
            self.pay(ledger::Event::Empty)?;
        }
        let is_client = self.is_client;
        let Some(stream) = self.find(head.stream).filter(|stream| stream.peer_may_send()) else {
            self.return_to_connection(head.length);
            if self.reset.contains(&head.stream) || self.is_ignored(head.stream) {
                return Ok(());
            }
            return self.stream_error(head.stream, Code::STREAM_CLOSED);
        };
        stream.received += bytes.len() as u64;
        let is_too_much = !stream.receive_window.take(head.length);
        let is_early = is_client && !stream.has_head;
        let is_wrong = is_early
            || stream.announced.is_some_and(|announced| {
                stream.received > announced || ends && stream.received != announced
            });
        if is_too_much || is_wrong {
            self.return_to_connection(head.length);
            let codes = [Code::PROTOCOL_ERROR, Code::FLOW_CONTROL_ERROR];
            return self.stream_error(head.stream, codes[usize::from(is_too_much)]);
        }
        stream.untaken += head.length;
        if ends {
            stream.end_peer();
        }
        self.ledger.carried(bytes.len());
        if ends && self.is_client {
            self.ledger.responded();
        }
        // Padding is of no use to the handler.
        self.taken(head.stream, head.length - bytes.len());
        let bytes = bytes.to_vec();
        self.events.push_back(Event::Data { stream: head.stream, bytes, ends });
        Ok(())
    }

    fn headers(
        &mut self,
        head: Head,
        payload: &[u8],
        options: Option<&HeadOptions<'_>>,
    ) -> Outcome {
        if head.stream.is_multiple_of(2) {
            return protocol("HEADERS on a stream of the server");
        }
        self.block_frames_bytes = frame::HEAD_BYTES + head.length;
        let Some(mut block) = frame::without_padding(head, payload) else {
            return protocol("invalid padding");
        };
        if head.has(flag::PRIORITY) {
            let Some((priority, rest)) = block.split_at_checked(5) else {
                return frame_size("HEADERS without their priority");
            };
            if depends_on(priority) == Some(head.stream) {
                return protocol("a stream that depends on itself");
            }
            block = rest;
        }
        if options.is_none() && self.is_unused(head.stream) {
            return protocol("HEADERS on a stream that is not open");
        }
        let is_new = head.stream > self.seen;
        let is_known = self.find(head.stream).is_some()
            || self.reset.contains(&head.stream)
            || self.is_ignored(head.stream);
        if !is_new && !is_known {
            return Err(Failure(Code::STREAM_CLOSED, "HEADERS on a closed stream"));
        }
        let ends = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.complete(head.stream, ends, block, options);
        }
        let bytes = block.to_vec();
        self.block = Some(Block { stream: head.stream, ends, bytes, frames: 0 });
        Ok(())
    }

    fn continuation(
        &mut self,
        head: Head,
        payload: &[u8],
        options: Option<&HeadOptions<'_>>,
    ) -> Outcome {
        let Some(mut block) = self.block.take_if(|block| block.stream == head.stream) else {
            return protocol("unexpected CONTINUATION");
        };
        self.block_frames_bytes += frame::HEAD_BYTES + head.length;
        block.bytes.extend_from_slice(payload);
        block.frames += 1;
        let needed = block.bytes.len() / frame::PAYLOAD_BYTES;
        let limit = fields::list_bytes(&self.limits.head);
        if block.bytes.len() > limit || block.frames > needed + SPARE_CONTINUATIONS {
            return Err(Failure(Code::ENHANCE_YOUR_CALM, "header block is too long"));
        }
        if !head.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(());
        }
        self.complete(block.stream, block.ends, &block.bytes, options)
    }

    /// A block of fields is complete.
    fn complete(
        &mut self,
        id: StreamId,
        ends: bool,
        block: &[u8],
        options: Option<&HeadOptions<'_>>,
    ) -> Outcome {
        let Some(options) = options else { return self.response(id, ends, block) };
        let mut fields = Fields::new(self.limits.head, &mut self.spare);
        fields.is_for_proxy = self.limits.is_forward_proxy;
        let take = |name: &[u8], value: &[u8], note: &mut bool| fields.take(name, value, note);
        let decoded = self.decoder.decode_noted(block, take);
        match decoded {
            Ok(()) => {}
            Err(HpackError::Refused) => {
                return Err(Failure(Code::ENHANCE_YOUR_CALM, "too many header fields"));
            }
            Err(_) => return Err(Failure(Code::COMPRESSION_ERROR, "invalid header block")),
        }
        let is_new = id > self.seen;
        self.seen = self.seen.max(id);
        if self.is_ignored(id) {
            return self.pay(ledger::Event::Frame);
        }
        if !is_new {
            return self.trailers(id, ends, fields);
        }
        self.last = id;
        let held = self.held_bytes();
        let is_full = self.streams.len() - self.pushed >= self.limits.streams as usize;
        let is_too_much = held > 0 && held + fields.bytes() > self.limits.heads_bytes;
        if fields.is_excessive() {
            return self.stream_error(id, Code::ENHANCE_YOUR_CALM);
        }
        if is_full || is_too_much {
            return self.stream_error(id, Code::REFUSED_STREAM);
        }
        self.begun(id, ends, fields, options)
    }

    /// Bytes of the heads of all current requests.
    pub(super) fn held_bytes(&self) -> usize {
        self.streams.iter().map(|stream| stream.head_bytes).sum()
    }

    fn begun(
        &mut self,
        id: StreamId,
        ends: bool,
        fields: Fields,
        options: &HeadOptions<'_>,
    ) -> Outcome {
        let head_bytes = fields.bytes();
        let key = self.limits.has_websockets.then(|| self.next_websocket_key());
        let spare = &mut self.spare;
        let Some(request) = fields.into_request(options, ends, key.as_deref(), spare) else {
            return self.stream_error(id, Code::PROTOCOL_ERROR);
        };
        let state = if ends { State::PeerEnded } else { State::Open };
        let window = SendWindow::new(self.peer.initial_window_bytes);
        let stream = Stream::new(id, state, window, self.window_of_new());
        self.insert(Stream { announced: request.announced, head_bytes, ..stream });
        let fields::Request { head, refusal, .. } = request;
        let early = self.early_priorities.iter().position(|(of, _)| *of == id);
        let early = early.and_then(|at| self.early_priorities.remove(at));
        let bytes = self.block_frames_bytes;
        self.events.push_back(Event::Request { stream: id, head, refusal, ends, bytes });
        if let Some((_, priority)) = early {
            self.events.push_back(Event::Priority { stream: id, priority });
        }
        Ok(())
    }

    fn trailers(&mut self, id: StreamId, ends: bool, fields: Fields) -> Outcome {
        let held = self.held_bytes();
        let most = self.limits.heads_bytes;
        let Some(stream) = self.find(id) else {
            // The stream was reset here, and the client did not know.
            return self.pay(ledger::Event::Frame);
        };
        if !stream.peer_may_send() {
            return self.stream_error(id, Code::STREAM_CLOSED);
        }
        // They are kept as long as the head.
        let bytes = fields.bytes();
        if held > stream.head_bytes && held + bytes > most {
            return self.stream_error(id, Code::ENHANCE_YOUR_CALM);
        }
        let (received, announced) = (stream.received, stream.announced);
        let is_short = announced.is_some_and(|announced| received != announced);
        let fields = fields.into_trailers(received, announced);
        let Some(fields) = fields.filter(|_| ends && !is_short) else {
            return self.stream_error(id, Code::PROTOCOL_ERROR);
        };
        stream.head_bytes += bytes;
        stream.end_peer();
        self.events.push_back(Event::Trailers { stream: id, fields });
        Ok(())
    }
}

/// The stream that a priority names (RFC 7540 section 6.3).
pub(super) fn depends_on(priority: &[u8]) -> Option<StreamId> {
    frame::number(priority).map(|number| number & 0x7fff_ffff)
}
