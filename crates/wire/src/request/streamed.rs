//! Heads of protocols that have no request line: HTTP/2.

use super::{HeadError, HeadLimits, HeadOptions, RequestHead, fields, line};
use crate::table::Table;

/// Fields that belong to a connection of HTTP/1 (`IgnoredRequestHeaders`).
const OF_CONNECTION: [&[u8]; 6] = [
    b"Upgrade",
    b"Connection",
    b"HTTP2-Settings",
    b"Keep-Alive",
    b"Proxy-Connection",
    b"Transfer-Encoding",
];

impl RequestHead {
    /// Sets what a request line (`METHOD target HTTP/2.0`) and fields of HTTP/1 would have set:
    /// logs and programs see them. `method` is a token, `target` has visible bytes alone, and
    /// `fields` are valid, with one `Host` at most.
    ///
    /// Errors: those of a request line or of fields that are refused by a response.
    pub(crate) fn set_streamed(
        &mut self,
        [method, target]: [&[u8]; 2],
        fields: Table,
        limits: &HeadLimits,
        options: &HeadOptions<'_>,
    ) -> Result<(), Box<HeadError>> {
        self.clear();
        let composed = line::compose(self, method, target, options);
        self.headers = fields;
        composed.and(fields::finish(self, limits))
    }

    /// The head with which a request of HTTP/1.1 goes on as the first of HTTP/2; `fields` are those
    /// that it has by now.
    ///
    /// Errors: those of a request line or of fields that are refused by a response.
    pub fn upgraded(
        &self,
        mut fields: Table,
        limits: &HeadLimits,
        options: &HeadOptions<'_>,
    ) -> Result<RequestHead, Box<HeadError>> {
        for name in OF_CONNECTION {
            fields.unset(name);
        }
        let mut line = [self.method_name(), b" ", self.path()].concat();
        if let Some(query) = self.query() {
            line.push(b'?');
            line.extend_from_slice(query);
        }
        line.extend_from_slice(b" HTTP/2.0");
        let mut head = RequestHead::new();
        let parsed = line::parse(&mut head, &line, options);
        head.headers = fields;
        parsed.and(fields::finish(&mut head, limits))?;
        Ok(head)
    }
}
