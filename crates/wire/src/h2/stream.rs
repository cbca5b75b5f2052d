//! Streams (RFC 9113 section 5.1).

use super::StreamId;
use super::window::{ReceiveWindow, SendWindow};

/// What either end may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Both ends.
    Open,
    /// The client has sent its whole request (half-closed, remote).
    RequestEnded,
    /// The response was sent, and the request goes on (half-closed, local).
    ResponseEnded,
    /// Neither; the stream is here until its handler has ended.
    Closed,
}

/// A stream between its request and the end of its handler.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: StreamId,
    pub state: State,
    pub send_window: SendWindow,
    pub receive_window: ReceiveWindow,
    /// The length that the request has announced, bytes.
    pub announced: Option<u64>,
    /// Bytes of its body so far.
    pub received: u64,
    /// Bytes of its body that the handler has not taken yet.
    pub untaken: usize,
    /// Bytes of its head.
    pub head_bytes: usize,
}

impl Stream {
    /// Whether the client may still send.
    pub fn takes_request(&self) -> bool {
        matches!(self.state, State::Open | State::ResponseEnded)
    }

    /// Whether something may still be sent to the client.
    pub fn takes_response(&self) -> bool {
        matches!(self.state, State::Open | State::RequestEnded)
    }

    pub fn end_request(&mut self) {
        self.state = match self.state {
            State::Open => State::RequestEnded,
            _ => State::Closed,
        };
    }

    pub fn end_response(&mut self) {
        self.state = match self.state {
            State::Open => State::ResponseEnded,
            _ => State::Closed,
        };
    }
}
