//! The error fields that a request shares with those it is redirected to, as its log shows them.
//!
//! In Apache, `err_headers_out` of all these requests is one table, with which the page of an error
//! is sent: what is set while that page is sent is seen in the first request, too.

use wire::Table;

use super::Request;
use crate::phases::errors::OwnFields;

/// Marks a redirected request whose fields are those that it shares, because it is the page of an
/// error.
struct SentAsPage;

/// The shared fields as they were when those of the page joined them, in a table of their own.
struct LeftBehind(Table);

/// The fields that are made when the head is written.
const MADE_WITH_HEAD: [&[u8]; 5] =
    [b"Connection", b"Keep-Alive", b"Transfer-Encoding", b"Content-Encoding", b"Content-Language"];

impl Request {
    /// Notes that the error fields are now those of the response, for the log.
    pub(crate) fn sends_shared_fields(&mut self) {
        if self.prev.is_some() {
            self.keep(SentAsPage);
        }
    }

    /// Joins the two tables of the response's fields (`ap_http_header_filter`).
    pub fn join_error_fields(&mut self) {
        if self.response.err_headers_out.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.response.err_headers_out);
        all.extend(&self.response.headers_out);
        let before = std::mem::replace(&mut self.response.headers_out, all);
        if self.prev.is_some() && self.kept::<SentAsPage>().is_some() {
            self.keep(LeftBehind(before));
        }
    }

    /// The request as received, before internal redirects, with what the log shows of its fields.
    pub fn original_for_log(&mut self) -> &mut Request {
        if self.prev.is_some()
            && let Some(shared) = self.shared_fields()
            && let Some(first) = self.redirected_at(0)
        {
            first.response.err_headers_out = shared;
        }
        self.first()
    }

    fn first(&mut self) -> &mut Request {
        if self.prev.is_none() {
            return self;
        }
        match &mut self.prev {
            Some(prev) => prev.first(),
            None => unreachable!("it has one"),
        }
    }

    /// What the first request has of the page of an error.
    fn shared_fields(&self) -> Option<Table> {
        self.kept::<SentAsPage>()?;
        let mut chain = std::iter::successors(Some(self), |request| request.prev.as_deref());
        if chain.any(|request| request.kept::<OwnFields>().is_some()) {
            return None;
        }
        let sent = &self.response.headers_out;
        if let Some(LeftBehind(fields)) = self.kept() {
            let mut fields = fields.clone();
            if let Some(length) = sent.get(b"Content-Length") {
                fields.set(b"Content-Length", length);
            }
            return Some(fields);
        }
        let mut fields = sent.clone();
        if let Some(media_type) = self.media_type() {
            fields.set(b"Content-Type", &media_type);
        }
        for name in MADE_WITH_HEAD {
            if let Some(value) = self.field_sent(name) {
                fields.set(name, &value);
            }
        }
        Some(fields)
    }
}
