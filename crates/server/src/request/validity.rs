//! What the conditions of a request are judged by.

use wire::conditional::Validators;

use super::Request;

/// What conditions are judged by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// The entity tag.
    pub etag: Option<Box<[u8]>>,
    /// The time of the last modification, in seconds since the epoch.
    pub modified: Option<i64>,
}

impl Validity {
    /// As `wire` wants it, for a request.
    pub fn validators(&self, request: &Request) -> Validators<'_> {
        Validators {
            method: request.head.method,
            etag: self.etag.as_deref(),
            last_modified: self.modified,
            now: i64::try_from(request.time_us / 1_000_000).unwrap_or(i64::MAX),
        }
    }

    /// The bytes that it takes beside itself.
    pub fn bytes(&self) -> usize {
        self.etag.as_ref().map_or(0, |etag| etag.len())
    }
}

impl Request {
    /// What `If-Range` is judged by. A field that is no date, or the date that Apache takes for
    /// none, gives way to what it was made of.
    pub fn sent_validity(&self) -> Validity {
        let sent = self.response.headers_out.get(b"Last-Modified").and_then(wire::date::parse);
        let made_of = || i64::try_from(self.response.mtime_us? / 1_000_000).ok();
        Validity {
            etag: self.response.headers_out.get(b"ETag").map(Into::into),
            modified: sent.filter(|date| *date != 0).or_else(made_of),
        }
    }
}
