//! A connection's state.

use std::collections::VecDeque;

use super::hpack::{Decoder, Encoder};
use super::ledger::Ledger;
use super::settings::{self, Settings};
use super::spare::Spare;
use super::stream::Stream;
use super::window::{INITIAL_BYTES, ReceiveWindow, SendWindow};
use super::{Code, StreamId, frame};
use crate::priority::Priority;
use crate::request::{HeadError, HeadLimits, RequestHead};
use crate::table::Table;

/// Streams that this end has reset most recently, on which frames may still be on their way.
pub(super) const RESETS_REMEMBERED: usize = 64;

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most requests at a time (`H2MaxSessionStreams`).
    pub streams: u32,
    /// Bytes of a body that may wait to be taken (`H2WindowSize`).
    pub window_bytes: u32,
    /// The same for all requests together.
    pub connection_window_bytes: u32,
    /// Bytes of payload in a DATA frame (`H2MaxDataFrameLen`).
    pub data_bytes: usize,
    /// Padding of frames: up to so many bits' number of bytes, 8 at most (`H2Padding`).
    pub padding_bits: u8,
    /// Whether WebSockets may use a stream (RFC 8441).
    pub has_websockets: bool,
    /// Whether requests may be for a forward proxy (`H2ProxyRequests`).
    pub is_forward_proxy: bool,
    /// Limits of a request's head.
    pub head: HeadLimits,
    /// Bytes of all heads of a connection's current requests; further ones are refused.
    pub heads_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            streams: 100,
            window_bytes: INITIAL_BYTES,
            connection_window_bytes: 1024 * 1024,
            data_bytes: frame::PAYLOAD_BYTES,
            padding_bits: 0,
            has_websockets: false,
            is_forward_proxy: false,
            head: HeadLimits::default(),
            heads_bytes: 1024 * 1024,
        }
    }
}

/// What the peer has sent.
#[derive(Debug)]
pub enum Event {
    /// A request.
    Request {
        /// Its stream.
        stream: StreamId,
        /// Its head.
        head: Box<RequestHead>,
        /// Why it is to be refused, by a response.
        refusal: Option<Box<HeadError>>,
        /// Whether it has no body.
        ends: bool,
        /// Bytes of the frames that its head came in.
        bytes: usize,
    },
    /// A piece of a request's body. Tell [`Connection::taken`] once it is no longer needed.
    Data {
        /// The request's stream.
        stream: StreamId,
        /// The piece; it may be empty at the end.
        bytes: Vec<u8>,
        /// Whether the body ends with it.
        ends: bool,
    },
    /// The trailer fields, which end a request's body.
    Trailers {
        /// The request's stream.
        stream: StreamId,
        /// The fields.
        fields: Table,
    },
    /// The head of a response; for a client.
    Response {
        /// The request's stream.
        stream: StreamId,
        /// Its status; one below 200 is that of an interim response.
        status: u16,
        /// Its fields.
        fields: Table,
        /// Whether it has no body.
        ends: bool,
    },
    /// The stream is closed: by the peer, or here because what the peer has sent was invalid.
    Reset {
        /// The request's stream.
        stream: StreamId,
        /// The reason.
        code: Code,
    },
    /// More may be sent: on a stream, or on the connection (0).
    Window {
        /// The stream, or 0.
        stream: StreamId,
    },
    /// A request's priority changes.
    Priority {
        /// The request's stream.
        stream: StreamId,
        /// The new priority.
        priority: Priority,
    },
    /// The peer takes, or sends, no more requests.
    Leaves {
        /// The last stream of this end that the peer may have acted upon.
        last: StreamId,
    },
    /// The peer has responded to a PING.
    Pong,
}

/// Why the connection ends: the code for the client, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure(pub Code, pub &'static str);

/// What is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Preface,
    FirstSettings,
    Frames,
}

/// A block of fields of which more is to come.
#[derive(Debug)]
pub(super) struct Block {
    pub stream: StreamId,
    pub ends: bool,
    pub bytes: Vec<u8>,
    /// CONTINUATION frames so far.
    pub frames: usize,
}

/// One connection, as one of its ends sees it.
#[derive(Debug)]
pub struct Connection {
    pub(super) limits: Limits,
    /// Whether this end is the client.
    pub(super) is_client: bool,
    /// Whether the peer has sent GOAWAY.
    pub(super) peer_left: bool,
    pub(super) phase: Phase,
    /// By number, the smallest first.
    pub(super) streams: Vec<Stream>,
    /// The last stream that the client has begun.
    pub(super) last: StreamId,
    /// The same, with those that are not served any more.
    pub(super) seen: StreamId,
    /// The streams that were reset here.
    pub(super) reset: VecDeque<StreamId>,
    pub(super) block: Option<Block>,
    /// Bytes of the frames of the last block.
    pub(super) block_frames_bytes: usize,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    /// The name of the field that is encoded, in lower case.
    pub(super) lower: Vec<u8>,
    /// The peer's settings.
    pub(super) peer: Settings,
    /// Whether the peer has confirmed those of this end, which bind it from then on.
    pub(super) is_confirmed: bool,
    pub(super) receive_window: ReceiveWindow,
    pub(super) send_window: SendWindow,
    pub(super) ledger: Ledger,
    /// The last stream that a server has begun, and how many of these are here.
    pub(super) last_pushed: StreamId,
    pub(super) pushed: usize,
    /// Priorities of requests that are yet to come.
    pub(super) early_priorities: VecDeque<(StreamId, Priority)>,
    pub(super) events: VecDeque<Event>,
    /// The last stream that is served, once the client was asked to leave.
    pub(super) goaway: Option<StreamId>,
    pub(super) failure: Option<Failure>,
    /// The state of the generator of such numbers, which need not be unpredictable.
    pub(super) padding: u32,
    /// What is to be sent, in order. The caller removes what it has sent.
    pub output: Vec<u8>,
    /// Memory for the next request.
    pub spare: Spare,
}

impl Connection {
    /// Returns a connection, whose output has the server's settings. `now_ms` is the time on any
    /// clock, which [`Connection::receive`] continues.
    pub fn new(limits: Limits, now_ms: u64) -> Connection {
        let mut connection = Connection::blank(limits, now_ms);
        connection.begin();
        connection
    }

    /// A connection on which nothing is sent.
    pub(super) fn blank(limits: Limits, now_ms: u64) -> Connection {
        Connection {
            is_client: false,
            peer_left: false,
            phase: Phase::Preface,
            streams: Vec::new(),
            last: 0,
            seen: 0,
            reset: VecDeque::new(),
            block: None,
            block_frames_bytes: 0,
            decoder: Decoder::new(),
            encoder: Encoder::new(),
            lower: Vec::new(),
            peer: Settings::default(),
            is_confirmed: false,
            receive_window: ReceiveWindow::new(limits.connection_window_bytes.max(INITIAL_BYTES)),
            send_window: SendWindow::new(INITIAL_BYTES),
            ledger: Ledger::new(now_ms),
            last_pushed: 0,
            pushed: 0,
            early_priorities: VecDeque::new(),
            events: VecDeque::new(),
            goaway: None,
            failure: None,
            padding: now_ms as u32 | 1,
            output: Vec::new(),
            spare: Spare::default(),
            limits,
        }
    }

    fn begin(&mut self) {
        let mut settings = vec![
            (settings::MAX_CONCURRENT_STREAMS, self.limits.streams),
            (settings::INITIAL_WINDOW_SIZE, self.limits.window_bytes),
            (settings::NO_RFC7540_PRIORITIES, 1),
        ];
        if self.limits.has_websockets {
            settings.push((settings::ENABLE_CONNECT_PROTOCOL, 1));
        }
        self.write_settings(&settings);
    }

    /// By how much the first window of a stream exceeds the setting until the peer knows it (RFC
    /// 9113 section 6.9.2).
    fn unconfirmed_bytes(&self) -> i64 {
        i64::from(INITIAL_BYTES.saturating_sub(self.limits.window_bytes))
    }

    /// What the peer may send on a new stream.
    pub(super) fn window_of_new(&self) -> ReceiveWindow {
        let mut window = ReceiveWindow::new(self.limits.window_bytes);
        if !self.is_confirmed {
            window.change(self.unconfirmed_bytes());
        }
        window
    }

    /// The peer has confirmed the settings.
    pub(super) fn confirmed(&mut self) {
        if std::mem::replace(&mut self.is_confirmed, true) {
            return;
        }
        let bytes = self.unconfirmed_bytes();
        for stream in &mut self.streams {
            stream.receive_window.change(-bytes);
        }
    }

    /// Appends the settings of this end, and opens the connection's window.
    pub(super) fn write_settings(&mut self, settings: &[(u16, u32)]) {
        let mut payload = Vec::new();
        for (identifier, value) in settings {
            payload.extend_from_slice(&identifier.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        frame::write(frame::kind::SETTINGS, 0, 0, &payload, &mut self.output);
        let more = self.limits.connection_window_bytes.saturating_sub(INITIAL_BYTES);
        if more > 0 {
            frame::write_window(0, more, &mut self.output);
        }
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Why the connection ends, once it does. The rest of the output is to be sent, and nothing is
    /// to be received any more.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The last stream that the client has begun.
    pub fn last_stream(&self) -> StreamId {
        self.last
    }

    /// Whether the peer has begun to speak HTTP/2.
    pub fn has_begun(&self) -> bool {
        self.phase == Phase::Frames
    }

    /// Whether a block of fields has begun and is not complete.
    pub fn is_in_head(&self) -> bool {
        self.block.is_some()
    }

    pub(super) fn find(&mut self, id: StreamId) -> Option<&mut Stream> {
        let at = self.streams.binary_search_by_key(&id, |stream| stream.id).ok()?;
        self.streams.get_mut(at)
    }

    /// Adds a stream.
    pub(super) fn insert(&mut self, stream: Stream) {
        let at = self.streams.partition_point(|other| other.id < stream.id);
        self.streams.insert(at, stream);
    }

    /// Ends the connection.
    pub fn fail(&mut self, Failure(code, why): Failure) {
        if self.failure.is_none() {
            // A client accepts no streams of the server.
            let last = if self.is_client { 0 } else { self.last };
            frame::write_goaway(last, code, why, &mut self.output);
            self.failure = Some(Failure(code, why));
        }
    }

    /// Resets a stream and remembers that.
    pub(super) fn write_reset(&mut self, id: StreamId, code: Code) {
        frame::write_reset(id, code, &mut self.output);
        if self.reset.len() == RESETS_REMEMBERED {
            self.reset.pop_front();
        }
        self.reset.push_back(id);
    }

    /// The next of numbers that look random.
    fn next_number(&mut self) -> u32 {
        // Xorshift (Marsaglia).
        self.padding ^= self.padding << 13;
        self.padding ^= self.padding >> 17;
        self.padding ^= self.padding << 5;
        self.padding
    }

    /// The length of a frame's padding in bytes; `None` if frames have none.
    pub(super) fn next_padding(&mut self) -> Option<u8> {
        let bits = self.limits.padding_bits.min(8);
        (bits > 0).then(|| (self.next_number() & ((1 << bits) - 1)) as u8)
    }

    /// A value of `Sec-WebSocket-Key`, for a server of HTTP/1.1: 16 bytes in base64. The client has
    /// none, and the key protects against nothing here.
    pub(super) fn next_websocket_key(&mut self) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut key = String::new();
        for _ in 0..21 {
            let digit = (self.next_number() >> 8) % 64;
            key.push(DIGITS.get(digit as usize).map_or('A', |digit| char::from(*digit)));
        }
        // The last digit has two bits.
        key.push_str("A==");
        key
    }

    /// Whether the peer may send bytes of bodies, and how often that has begun.
    pub fn has_room_for_bodies(&self) -> Option<u32> {
        self.receive_window.is_open().then_some(self.receive_window.openings())
    }

    /// Returns what was received and is not needed to the connection's window.
    pub(super) fn return_to_connection(&mut self, bytes: usize) {
        if let Some(grant) = self.receive_window.give_back(bytes) {
            frame::write_window(0, grant, &mut self.output);
        }
    }
}
