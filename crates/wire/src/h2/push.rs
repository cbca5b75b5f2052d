//! Responses to requests that the client has not sent (RFC 9113 section 8.4).

use super::StreamId;
use super::connection::Connection;
use super::fields::Fields;
use super::frame;
use super::send::Start;
use super::stream::{State, Stream};
use super::window::SendWindow;
use crate::request::{HeadError, HeadOptions, RequestHead};

/// The last number that a stream of the server may have.
const LAST_STREAM: StreamId = 0x7fff_fffe;

/// A request that was promised to the client, and is to be served.
#[derive(Debug)]
pub struct Promise {
    /// Its stream.
    pub stream: StreamId,
    /// Its head.
    pub head: Box<RequestHead>,
    /// Why it is to be refused, by a response.
    pub refusal: Option<Box<HeadError>>,
}

impl Connection {
    /// Whether the client accepts responses that it has not asked for, and may still get some.
    pub fn accepts_pushes(&self) -> bool {
        let is_open = self.failure.is_none() && !self.peer_left && self.goaway.is_none();
        is_open && !self.is_client && self.peer.enable_push && self.last_pushed < LAST_STREAM
    }

    /// Whether another response may be pushed now: the client's limit counts, and that of its own
    /// requests.
    pub(super) fn has_push_place(&self) -> bool {
        let limit = self.limits.streams.min(self.peer.streams);
        self.accepts_pushes() && self.pushed < limit as usize
    }

    /// Promises the client the response to a request, whose pseudo-header fields come first. The
    /// promise belongs to the response on `parent`, and is to precede what leads the client to the
    /// same request.
    ///
    /// `None` without a place (`has_push_place`), or if a client could not send this
    /// request.
    pub fn promise(
        &mut self,
        parent: StreamId,
        pseudo: &[(&[u8], &[u8])],
        others: &[(&[u8], &[u8])],
        options: &HeadOptions<'_>,
    ) -> Option<Promise> {
        let is_open = self.find(parent).is_some_and(|stream| stream.may_send());
        if !is_open || parent.is_multiple_of(2) || !self.has_push_place() {
            return None;
        }
        let mut fields = Fields::new(self.limits.head, &mut self.spare);
        let mut all = pseudo.iter().chain(others);
        if !all.all(|(name, value)| fields.take(&name.to_ascii_lowercase(), value, &mut false)) {
            return None;
        }
        let head_bytes = fields.bytes();
        if self.held_bytes() + head_bytes > self.limits.heads_bytes
            || head_bytes > frame::PAYLOAD_BYTES / 2
        {
            return None;
        }
        let request = fields.into_request(options, true, None, &mut self.spare)?;
        let id = self.last_pushed + 2;
        self.last_pushed = id;
        self.pushed += 1;
        let window = SendWindow::new(self.peer.initial_window_bytes);
        let stream = Stream::new(id, State::PeerEnded, window, self.window_of_new());
        self.insert(Stream { head_bytes, ..stream });
        let others = others.iter().copied();
        self.write_fields(parent, Start::Promise(id, pseudo), others, false);
        Some(Promise { stream: id, head: request.head, refusal: request.refusal })
    }
}
