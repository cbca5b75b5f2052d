//! The head of a request, its request line and header fields, parsed as bytes arrive.
//!
//! A complete, well-formed head takes the fast path. All others are parsed line by line
//! with the full rules of `ap_read_request`, and get Apache's response.

mod fast;
mod fields;
mod flags;
mod line;
mod parser;
mod previous;
mod streamed;
#[cfg(test)]
mod tests;

pub use fields::ends_chunked;
pub use flags::HeadFlags;
pub use parser::HeadParser;

use crate::method::{Method, MethodRegistry};
use crate::status::Status;
use crate::table::Table;
use crate::uri::{Target, TargetError};

/// A protocol version in Apache's encoding: 1000 × major + minor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version(pub u32);

impl Version {
    /// HTTP/0.9: a request line without a version.
    pub const HTTP_09: Version = Version(9);
    /// HTTP/1.0.
    pub const HTTP_10: Version = Version(1000);
    /// HTTP/1.1.
    pub const HTTP_11: Version = Version(1001);
    /// HTTP/2.
    pub const HTTP_20: Version = Version(2000);
}

/// Limits of a request head. They come from the address's first virtual host, since the request's
/// own is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// `LimitRequestLine`, bytes. Default 8190.
    pub line_bytes: usize,
    /// `LimitRequestFieldSize`, bytes of one field including its continuation lines. Default 8190.
    pub field_bytes: usize,
    /// `LimitRequestFields`, 0 is unlimited. Default 100.
    pub fields: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits { line_bytes: 8190, field_bytes: 8190, fields: 100 }
    }
}

/// `HttpProtocolOptions` and the registered methods.
#[derive(Clone, Copy, Debug)]
pub struct HeadOptions<'a> {
    /// `Strict` (default) against `Unsafe`.
    pub strict: bool,
    /// `RegisteredMethods` against `LenientMethods` (default).
    pub registered_methods: bool,
    /// `Allow0.9` (default) against `Require1.0`.
    pub allow_http09: bool,
    /// Apache's methods and those that `RegisterHttpMethod` adds.
    pub methods: &'a MethodRegistry,
}

/// The result of [`HeadParser::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The head is incomplete: read more, and call again with the longer buffer.
    NeedMore,
    /// The head is complete; the body begins `consumed` bytes into the buffer.
    Done {
        /// Length of the head in bytes.
        consumed: usize,
    },
    /// The request is refused. The head holds the part that was parsed, for logs and the error
    /// response. The connection closes after that response.
    Error(Box<HeadError>),
}

/// The refusal of a request that has no configuration yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadError {
    /// Status of the response.
    pub status: Status,
    /// Apache's message number, for the error log.
    pub log_number: u32,
    /// Level of the log line.
    pub level: LogLevel,
    /// Text of the log line, after the number. It contains client bytes: escape them.
    pub message: Vec<u8>,
    /// HTML for the error page (Apache's note `error-notes`), or empty.
    pub notes: &'static str,
}

impl HeadError {
    pub(crate) fn new(
        status: Status,
        log_number: u32,
        level: LogLevel,
        message: impl Into<Vec<u8>>,
    ) -> Box<HeadError> {
        Box::new(HeadError { status, log_number, level, message: message.into(), notes: "" })
    }

    pub(crate) fn with_notes(mut self: Box<Self>, notes: &'static str) -> Box<Self> {
        self.notes = notes;
        self
    }
}

/// The level this crate proposes for a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// `error`
    Error,
    /// `info`
    Info,
    /// `debug`
    Debug,
}

/// How the length of the request body is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body {
    /// Neither `Content-Length` nor `Transfer-Encoding`: there is no body.
    #[default]
    None,
    /// `Content-Length`, bytes.
    Length(u64),
    /// `Transfer-Encoding` whose last coding is `chunked`. Other codings are left in the body.
    Chunked,
}

/// A request's head. [`RequestHead::clear`] keeps the memory for reuse.
#[derive(Debug, Clone)]
pub struct RequestHead {
    line: Vec<u8>,
    method_len: usize,
    target: (usize, usize),
    protocol: (usize, usize),
    path: (usize, usize),
    query: Option<(usize, usize)>,
    /// The method's number; `HEAD` has that of `GET`.
    pub method: Method,
    /// Whether the method is `HEAD`.
    pub header_only: bool,
    /// The protocol version.
    pub version: Version,
    /// Header fields; values of the same name are joined with `", "`.
    pub headers: Table,
    /// Facts about the fields, without looking them up.
    pub flags: HeadFlags,
    /// The framing of the body.
    pub body: Body,
}

impl Default for RequestHead {
    fn default() -> Self {
        RequestHead {
            line: Vec::new(),
            method_len: 0,
            target: (0, 0),
            protocol: (0, 0),
            path: (0, 0),
            query: None,
            method: Method::INVALID,
            header_only: false,
            version: Version::HTTP_10,
            headers: Table::new(),
            flags: HeadFlags::NONE,
            body: Body::None,
        }
    }
}

impl RequestHead {
    /// An empty head.
    pub fn new() -> Self {
        RequestHead::default()
    }

    /// Clears the head and keeps the memory.
    pub fn clear(&mut self) {
        self.line.clear();
        self.method_len = 0;
        self.target = (0, 0);
        self.protocol = (0, 0);
        self.path = (0, 0);
        self.query = None;
        self.method = Method::INVALID;
        self.header_only = false;
        self.version = Version::HTTP_10;
        self.headers.clear();
        self.flags = HeadFlags::NONE;
        self.body = Body::None;
    }

    /// Keeps the part of an unreadable line that is logged: Apache's buffer of one byte more than
    /// the limit, as a C string.
    fn keep_unread(&mut self, line: &[u8], limit_bytes: usize) {
        let line = line.strip_suffix(b"\r\n").unwrap_or(line);
        let line = line.get(..limit_bytes.saturating_add(1)).unwrap_or(line);
        self.line.clear();
        self.line.extend(line.iter().take_while(|byte| **byte != 0));
        self.flags.set(HeadFlags::UNREAD);
    }

    /// The request line as received, without its line end (`%r`).
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The method's name as received.
    pub fn method_name(&self) -> &[u8] {
        self.line.get(..self.method_len).unwrap_or_default()
    }

    /// The request target as received (`r->unparsed_uri`).
    pub fn target(&self) -> &[u8] {
        self.line.get(self.target.0..self.target.1).unwrap_or_default()
    }

    /// The path as received, still escaped (`r->uri` before it is unescaped): `/` if an absolute
    /// target has none, `*` for `OPTIONS *` and for `OPTIONS` of a target without a path, and empty
    /// if the line was unreadable.
    pub fn path(&self) -> &[u8] {
        match self.line.get(self.path.0..self.path.1) {
            Some(path) if !path.is_empty() => path,
            _ if self.flags.has(HeadFlags::UNREAD) => b"",
            _ if self.method == Method::OPTIONS => b"*",
            _ => b"/",
        }
    }

    /// The target after its first `?` (`r->args`).
    pub fn query(&self) -> Option<&[u8]> {
        self.query.and_then(|(start, end)| self.line.get(start..end))
    }

    /// Splits the target again, for the host, port and user of an absolute target or of `CONNECT`.
    pub fn split_target(&self) -> Result<Target<'_>, TargetError> {
        Target::of_request(self.target(), self.method == Method::CONNECT)
    }

    /// Whether an absolute target's scheme is `http` or `https`. Any other is a 400, after the
    /// checks of host and `Expect`, unless a proxy handles the request.
    pub fn has_known_scheme(&self) -> bool {
        match self.target().first() {
            Some(b'/' | b'*' | b'?') => true,
            _ => self.split_target().is_ok_and(|target| match target.scheme {
                Some(scheme) => {
                    scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
                }
                None => true,
            }),
        }
    }

    /// Fails with 417 if the client sent an `Expect`ation other than `100-continue`
    /// (`ap_check_request_header`). Apache closes the connection after it.
    pub fn check_expect(&self) -> Result<(), Box<HeadError>> {
        if !self.flags.has(HeadFlags::EXPECT) || self.flags.has(HeadFlags::EXPECT_CONTINUE) {
            return Ok(());
        }
        let expect = self.headers.get(b"Expect").unwrap_or_default();
        if expect.is_empty() {
            return Ok(());
        }
        let mut message = b"client sent an unrecognized expectation value of Expect: ".to_vec();
        message.extend_from_slice(expect);
        Err(HeadError::new(417, 570, LogLevel::Info, message))
    }

    /// The protocol as received; `HTTP/0.9` for a simple request (`%H`).
    pub fn protocol(&self) -> &[u8] {
        match self.line.get(self.protocol.0..self.protocol.1) {
            Some(sent) if !sent.is_empty() => sent,
            _ if self.is_simple() => b"HTTP/0.9",
            _ => b"HTTP/1.0",
        }
    }

    /// Whether this is a simple request (HTTP/0.9), which neither has nor gets header fields
    /// (`assbackwards`).
    pub fn is_simple(&self) -> bool {
        self.version == Version::HTTP_09
    }

    /// The first value of a header field.
    pub fn header(&self, name: &[u8]) -> Option<&[u8]> {
        self.headers.get(name)
    }
}
