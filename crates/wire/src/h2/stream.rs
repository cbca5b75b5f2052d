//! Streams (RFC 9113 section 5.1).

use super::StreamId;
use super::window::{ReceiveWindow, SendWindow};

/// What either end may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Both ends.
    Open,
    /// The peer has sent all: the client its request, or the server its response (half-closed,
    /// remote).
    PeerEnded,
    /// This end has sent all, and the peer goes on (half-closed, local).
    OwnEnded,
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
    /// The length of the body that the peer has announced, bytes.
    pub announced: Option<u64>,
    /// Bytes of that body so far.
    pub received: u64,
    /// Bytes of it that have not been taken yet.
    pub untaken: usize,
    /// Bytes of its head.
    pub head_bytes: usize,
    /// Of a client: whether the head of the response has arrived.
    pub has_head: bool,
    /// Of a client: the response has no body, whatever length it announces (HEAD).
    pub is_head_request: bool,
    /// Of a client: interim responses so far.
    pub interims: u8,
}

impl Stream {
    /// A stream that has just begun.
    pub fn new(
        id: StreamId,
        state: State,
        send_window: SendWindow,
        receive_window: ReceiveWindow,
    ) -> Stream {
        Stream {
            id,
            state,
            send_window,
            receive_window,
            announced: None,
            received: 0,
            untaken: 0,
            head_bytes: 0,
            has_head: false,
            is_head_request: false,
            interims: 0,
        }
    }

    /// Whether the peer may still send.
    pub fn peer_may_send(&self) -> bool {
        matches!(self.state, State::Open | State::OwnEnded)
    }

    /// Whether something may still be sent to the peer.
    pub fn may_send(&self) -> bool {
        matches!(self.state, State::Open | State::PeerEnded)
    }

    pub fn end_peer(&mut self) {
        self.state = match self.state {
            State::Open => State::PeerEnded,
            _ => State::Closed,
        };
    }

    pub fn end_own(&mut self) {
        self.state = match self.state {
            State::Open => State::OwnEnded,
            _ => State::Closed,
        };
    }
}
