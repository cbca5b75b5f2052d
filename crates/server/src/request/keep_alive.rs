//! What a request and its host say about keeping the connection.

use wire::HeadFlags;

use super::Request;

impl Request {
    /// A module has changed the request's `Connection`: the connection stays open as that says now
    /// (`ap_set_keepalive`). No other request may get the response from a cache.
    #[cold]
    pub fn change_connection(&mut self) {
        let value = self.head.headers_in.get(b"Connection").unwrap_or_default();
        let says = HeadFlags::of_connection(value);
        self.head.flags.unset(HeadFlags::CLOSE.with(HeadFlags::KEEP_ALIVE));
        self.head.flags.set(says);
        self.depends.pure = false;
    }

    /// Whether the client's version and `Connection` field ask for persistence.
    pub fn is_persistent(&self) -> bool {
        if self.head.flags.has(HeadFlags::CLOSE) {
            return false;
        }
        let is_denied = !self.env.is_empty()
            && self.env.contains(b"nokeepalive")
            && !self.head.headers_in.contains(b"Via");
        !is_denied && (self.head.protocol >= 1001 || self.head.flags.has(HeadFlags::KEEP_ALIVE))
    }

    /// Appends the value of `Keep-Alive` after `answered` responses.
    pub fn keep_alive_terms(&self, answered: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(b"timeout=");
        let mut digits = itoa::Buffer::new();
        let timeout = self.host.core.keep_alive_timeout().as_secs();
        out.extend_from_slice(digits.format(timeout).as_bytes());
        if let Some(limit) = self.keep_alive_limit() {
            out.extend_from_slice(b", max=");
            out.extend_from_slice(digits.format(limit.saturating_sub(answered)).as_bytes());
        }
    }

    /// The most responses per connection in the host's configuration.
    pub fn keep_alive_limit(&self) -> Option<u32> {
        let limit = self.host.core.max_keep_alive_requests.or(100);
        (limit > 0).then_some(limit)
    }
}
