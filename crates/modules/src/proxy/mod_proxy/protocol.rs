//! The state of a protocol that outlives a request on its connection, as that of HTTP/2 does.

use rt::Stream;
use wire::h2::Connection;

use super::backend::Backend;
use super::pool::Slot;

impl Backend {
    /// The state of the connection's protocol, if it has served a request.
    pub fn take_protocol(&mut self) -> Option<Box<Connection>> {
        self.slot.protocol.take()
    }

    /// Keeps the state of the connection's protocol for another request.
    pub fn put_protocol(&mut self, protocol: Box<Connection>) {
        self.slot.protocol = Some(protocol);
    }
}

impl Slot {
    /// Whether the idle connection in this place may carry another request. A server of HTTP/2 may
    /// send while no request is served: what it has sent is read with the next response.
    pub(super) fn is_usable(&self, stream: &mut Stream) -> bool {
        self.protocol.is_some() || stream.is_reusable()
    }
}
