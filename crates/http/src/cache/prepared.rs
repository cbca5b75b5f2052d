//! The heads of cached responses as HTTP/2 sends them.

use std::cell::OnceCell;

use server::request::Request;
use wire::h2::Prepared;

use super::response::CachedResponse;
use super::texts::Text;
use crate::head_text;

/// A head without `Date`, which precedes it.
pub struct PreparedHead {
    /// The status.
    pub status: u16,
    /// The fields.
    pub fields: Prepared,
    /// Whether they suggest further requests.
    pub has_links: bool,
}

/// The place of the head of a response. It is prepared when a client of HTTP/2 first gets it.
pub(super) struct Place {
    head: OnceCell<Box<PreparedHead>>,
    /// Whether the host has HTTP/2.
    pub is_needed: bool,
}

impl Place {
    /// The place for a response to this request.
    pub fn of(request: &Request) -> Place {
        Place { head: OnceCell::new(), is_needed: request.host.http2.is_some() }
    }
}

impl CachedResponse {
    /// The head, unless a field depends on the time of the request.
    pub fn prepared(&self) -> Option<&PreparedHead> {
        if self.timed.is_some() || !self.prepared.is_needed {
            return None;
        }
        Some(self.prepared.head.get_or_init(|| Box::new(self.prepare())))
    }

    fn prepare(&self) -> PreparedHead {
        // The first line end is that of `Date`.
        let before = self.texts.get(Text::Before);
        let before = before.strip_prefix(b"\r\n").unwrap_or(before);
        let fields = head_text::fields(before).chain(head_text::fields(self.after()));
        let has_links = head_text::has_links(fields.clone());
        PreparedHead { status: self.status, fields: Prepared::new(fields), has_links }
    }

    /// Bytes that the prepared head takes at most.
    pub(super) fn prepared_bytes(&self) -> usize {
        let text = self.texts.get(Text::Before).len() + self.after().len();
        if self.prepared.is_needed { size_of::<PreparedHead>() + 2 * text } else { 0 }
    }
}
