//! Heads of protocols that have no request line: HTTP/2.

use super::{HeadError, HeadLimits, HeadOptions, RequestHead, fields, line};
use crate::table::Table;

impl RequestHead {
    /// Sets what a request line and fields of HTTP/1 would have set: logs and programs see
    /// `METHOD target HTTP/2.0`. `fields` are valid, and have one `Host` at most.
    ///
    /// Errors: those of a request line or of fields that are refused by a response.
    pub(crate) fn set_streamed(
        &mut self,
        method: &[u8],
        target: &[u8],
        fields: Table,
        limits: &HeadLimits,
        options: &HeadOptions<'_>,
    ) -> Result<(), Box<HeadError>> {
        self.clear();
        let parsed = line::parse(self, &[method, b" ", target, b" HTTP/2.0"].concat(), options);
        self.headers = fields;
        parsed.and(fields::finish(self, limits))
    }
}
