//! HTTP/1 responses as the client of a backend reads them (RFC 9112 sections 4 to 9), by the rules
//! of mod_proxy_http: the head as spans of the caller's buffer, then the body.
//!
//! The shapes: an optional empty line, a status line `HTTP/1.n sss reason`, fields, an empty line.
//! Up to nine interim responses (1xx) precede the final one. A first line of any other shape is the
//! beginning of a body without a head (HTTP/0.9), as in Apache.
//!
//! [`ResponseParser::parse`] copies nothing: a [`ResponseHead`] holds places in the buffer, in
//! which fields that end at this hop are marked, and [`ResponseHead::pieces`] yields the rest in
//! runs that can be sent as they are. [`ResponseHead::framing`] says where the body ends, and
//! [`ResponseBody`] reads it.
//!
//! Source: `ap_proxy_http_process_response`, `ap_proxy_read_headers`, `ap_http_filter`,
//! `ap_proxy_clear_connection_fn` and `check_headers`. `recorded.txt` has Apache's answers.

mod body;
mod connection;
mod fault;
mod field;
mod head;
mod parser;
mod status_line;
#[cfg(test)]
mod tests;

pub use body::{Framing, ResponseBody};
pub use connection::connection_tokens;
pub use fault::{Fault, Lie};
pub use field::{Field, FieldName};
pub use head::{Piece, ResponseHead};
pub use parser::ResponseParser;

/// Most bytes of a line, which is what `responsefieldsize=` is if it is not set
/// (`HUGE_STRING_LEN`).
pub const LINE_BYTES: usize = 8192;

/// Most bytes of a head, unless it is configured otherwise. Apache has no such limit.
pub const HEAD_BYTES: usize = 1 << 20;

/// Most fields of a head, unless it is configured otherwise. Apache has no such limit.
pub const FIELDS: usize = 4096;

/// The interim response with which Apache gives up (`AP_MAX_INTERIM_RESPONSES`).
pub const INTERIM_RESPONSES: u8 = 10;

/// The largest head that spans can describe, bytes.
const HEAD_BYTES_MAX: usize = 1 << 30;

/// What to do with a line among the fields that has no colon (`ProxyBadHeader`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BadHeader {
    /// `IsError`: the response is a 502.
    #[default]
    IsError,
    /// `Ignore`: the line is left out.
    Ignore,
    /// `StartBody`: the body begins behind it.
    StartBody,
}

/// Who is answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dialect {
    /// An HTTP server.
    #[default]
    Http,
    /// A uwsgi server, which closes after each response. Apache takes any major version and
    /// `HTTP/n sss` as well, no empty line before, and 1xx for final; it frames by the end of the
    /// connection alone, and drops no field (`uwsgi_response`).
    Uwsgi,
}

/// How a response is to be read.
#[derive(Clone, Copy, Debug)]
pub struct ResponseRules<'a> {
    /// The worker's `responsefieldsize`, bytes: a status line, or a field with the lines that
    /// continue it, is at most two bytes, or one byte, shorter.
    pub line_bytes: usize,
    /// Who is answering.
    pub dialect: Dialect,
    /// Limit of the whole head, bytes; at most 1 GiB.
    pub head_bytes: usize,
    /// Limit of the number of fields.
    pub fields: usize,
    /// `ProxyBadHeader`.
    pub bad_header: BadHeader,
    /// Refuse what Apache takes although it is ambiguous: see [`Lie`].
    pub strict: bool,
    /// The protocol that the request asked to switch to, for 101.
    pub upgrade: Option<&'a [u8]>,
    /// The response is one of a proxy, which may ask the client for credentials by a 407.
    pub is_of_proxy: bool,
}

impl Default for ResponseRules<'_> {
    fn default() -> Self {
        ResponseRules {
            line_bytes: LINE_BYTES,
            dialect: Dialect::Http,
            head_bytes: HEAD_BYTES,
            fields: FIELDS,
            bad_header: BadHeader::IsError,
            strict: false,
            upgrade: None,
            is_of_proxy: false,
        }
    }
}

/// The result of [`ResponseParser::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseProgress {
    /// The head is incomplete: read more, and call again with the longer buffer.
    NeedMore,
    /// The head of an interim response is complete. Call [`ResponseParser::next`], and parse what
    /// follows it.
    Interim {
        /// Its length in bytes.
        consumed: usize,
    },
    /// The head of the final response is complete, or that of a 101 that was asked for.
    Done {
        /// Its length in bytes. [`ResponseHead::preread`] belongs to the body and precedes what
        /// follows.
        consumed: usize,
    },
    /// The response can't be used, and neither can the connection.
    Refused(Box<Fault>),
}
