//! The validators that the conditions of a request are evaluated with.

use wire::conditional::Validators;

use super::Request;

/// Validators of a response (RFC 9110 section 8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnValidators {
    /// The entity tag.
    pub etag: Option<Box<[u8]>>,
    /// The time of the last modification, in seconds since the epoch.
    pub modified: Option<i64>,
}

impl OwnValidators {
    /// In the form that `wire` expects, for a request.
    pub fn for_request(&self, request: &Request) -> Validators<'_> {
        request.validators(self.etag.as_deref(), self.modified)
    }
}

impl Request {
    /// Validators of a response to this request, in the form that `wire` expects.
    pub fn validators<'v>(&self, etag: Option<&'v [u8]>, modified: Option<i64>) -> Validators<'v> {
        Validators {
            method: self.head.method,
            etag,
            last_modified: modified,
            now: i64::try_from(self.time_us / 1_000_000).unwrap_or(i64::MAX),
        }
    }

    /// The validators that `If-Range` is evaluated with. If the field is not a date, or is the date
    /// that Apache ignores, the modification time that it was made from counts.
    pub fn sent_validators(&self) -> OwnValidators {
        let sent = self.response.headers_out.get(b"Last-Modified").and_then(wire::date::parse);
        let made_of = || i64::try_from(self.response.mtime_us? / 1_000_000).ok();
        OwnValidators {
            etag: self.response.headers_out.get(b"ETag").map(Into::into),
            modified: sent.filter(|date| *date != 0).or_else(made_of),
        }
    }
}
