//! A body that a handler writes piece by piece.
//!
//! Source: `ap_rwrite`, `ap_old_write_filter` (server/protocol.c).

use super::Request;
use crate::request::body::Body;

/// How much of such a body Apache gathers before the first of it leaves, bytes
/// (`APR_BUCKET_BUFF_SIZE`).
const GATHERED_BYTES: u64 = 8000;

impl Request {
    /// Answers with a body that Apache's handler writes piece by piece. Past a certain size its
    /// head leaves before its end is known: it gets no `Content-Length`, and ranges don't count.
    pub fn print(&mut self, body: Body) {
        self.chunked |= body.length().is_none_or(|length| length > GATHERED_BYTES);
        self.body = body;
    }
}
