//! A body that a handler writes in pieces.
//!
//! Source: `ap_rwrite`, `ap_old_write_filter` (server/protocol.c).

use super::Request;
use crate::request::body::Body;

/// Bytes of such a body that Apache buffers before it sends any (`APR_BUCKET_BUFF_SIZE`).
const GATHERED_BYTES: u64 = 8000;

impl Request {
    /// Responds with a body that Apache's handler writes in pieces. Beyond a certain size the head
    /// is sent before the end is known: it has no `Content-Length`, and ranges do not apply.
    pub fn print(&mut self, body: Body) {
        self.response.chunked |= body.length().is_none_or(|length| length > GATHERED_BYTES);
        self.response.body = body;
    }
}
