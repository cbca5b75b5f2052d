//! The fields of a request or a response (RFC 9113 section 8): a block that was decoded becomes a
//! head, as one of HTTP/1 would be.

use super::hpack::ENTRY_OVERHEAD_BYTES;
use crate::chars::{decimal, is_field_content, is_token_string, is_visible, trim_blanks};
use crate::request::{HeadError, HeadLimits, HeadOptions, LogLevel, RequestHead};
use crate::table::Table;

/// Fields that belong to a connection of HTTP/1 (RFC 9113 section 8.2.2).
const OF_CONNECTION: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// The least limit of a head, bytes.
const LIST_BYTES_LEAST: usize = 64 * 1024;

/// The most that `LimitRequestFields` results in, bytes.
const LIST_BYTES_MOST: usize = 256 * 1024;

/// Fields that are allowed without `LimitRequestFields`.
const UNLIMITED_FIELDS: usize = 2000;

/// Fields beyond `LimitRequestFields` that still get a response.
const REFUSED_FIELDS: usize = 100;

/// How many times the limit of a head a block may have until decoding ends: up to there the client
/// gets a response.
const REFUSED_TIMES: usize = 4;

const TOO_LARGE: &str = "Size of a request header field exceeds server limit.";
const TOO_MANY: &str = "The number of request header fields exceeds this server's limit.";

/// The limit of a head: names, values and [`ENTRY_OVERHEAD_BYTES`] for each field. It is what the
/// configured limits amount to, within bounds.
pub(super) fn list_bytes(limits: &HeadLimits) -> usize {
    let fields = if limits.fields == 0 { UNLIMITED_FIELDS } else { limits.fields };
    let all = fields.saturating_mul(limits.field_bytes.saturating_add(ENTRY_OVERHEAD_BYTES));
    let most = limits.field_bytes.max(limits.line_bytes).saturating_mul(4).max(LIST_BYTES_MOST);
    all.clamp(LIST_BYTES_LEAST, most)
}

/// The fields of a block while it is decoded.
pub(super) struct Fields {
    limits: HeadLimits,
    table: Table,
    method: Option<Vec<u8>>,
    scheme: Option<Vec<u8>>,
    authority: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    /// What the stream is to carry after CONNECT (RFC 8441).
    protocol: Option<Vec<u8>>,
    /// The parts of `Cookie`, joined (RFC 9113 section 8.2.3).
    cookies: Vec<u8>,
    count: usize,
    bytes: usize,
    has_regular: bool,
    is_malformed: bool,
    refusal: Option<Box<HeadError>>,
}

/// A request whose fields are valid.
pub(super) struct Request {
    pub head: Box<RequestHead>,
    pub refusal: Option<Box<HeadError>>,
    /// The length that it announces, bytes.
    pub announced: Option<u64>,
}

impl Fields {
    pub fn new(limits: HeadLimits) -> Fields {
        Fields {
            limits,
            table: Table::new(),
            method: None,
            scheme: None,
            authority: None,
            path: None,
            protocol: None,
            cookies: Vec::new(),
            count: 0,
            bytes: 0,
            has_regular: false,
            is_malformed: false,
            refusal: None,
        }
    }

    /// Whether there are so many fields that there is no response either.
    pub fn is_excessive(&self) -> bool {
        let limit = self.limits.fields;
        limit != 0 && self.count > limit.saturating_add(REFUSED_FIELDS)
    }

    /// Bytes of the fields, as far as they are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a field; false if it is time to give up. Beyond a limit nothing is kept.
    pub fn take(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        let limit = list_bytes(&self.limits);
        if self.bytes > limit {
            // A refusal needs none of them.
            (self.table, self.cookies) = (Table::new(), Vec::new());
            self.refuse(HeadError::new(431, 563, LogLevel::Info, "Request header is too large"));
            return self.bytes <= limit * REFUSED_TIMES;
        }
        match name.strip_prefix(b":") {
            Some(pseudo) => self.take_pseudo(pseudo, value),
            None => self.take_regular(name, trim_blanks(value)),
        }
        true
    }

    fn refuse(&mut self, error: Box<HeadError>) {
        self.refusal.get_or_insert(error);
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) {
        let to = match name {
            b"method" => &mut self.method,
            b"scheme" => &mut self.scheme,
            b"authority" => &mut self.authority,
            b"path" => &mut self.path,
            b"protocol" => &mut self.protocol,
            _ => {
                self.is_malformed = true;
                return;
            }
        };
        // Each one comes once, and before all other fields.
        self.is_malformed |= to.is_some() || self.has_regular;
        let is_long = value.len() > self.limits.line_bytes;
        *to = Some(value.get(..self.limits.line_bytes).unwrap_or(value).to_vec());
        if is_long {
            let message = format!(
                "request failed: client's request-line exceeds LimitRequestLine (longer than {})",
                self.limits.line_bytes
            );
            self.refuse(HeadError::new(414, 565, LogLevel::Info, message));
        }
    }

    fn take_regular(&mut self, name: &[u8], value: &[u8]) {
        self.has_regular = true;
        self.count += 1;
        let is_valid_name = is_token_string(name) && !name.iter().any(u8::is_ascii_uppercase);
        let is_valid_value = value.iter().all(|byte| is_field_content(*byte));
        let is_allowed = !OF_CONNECTION.contains(&name)
            && (name != b"te" || value.eq_ignore_ascii_case(b"trailers"));
        if !is_valid_name || !is_valid_value || !is_allowed {
            self.is_malformed = true;
            return;
        }
        if self.limits.fields != 0 && self.count > self.limits.fields {
            let message = "Number of request headers exceeds LimitRequestFields";
            let error = HeadError::new(431, 563, LogLevel::Info, message);
            return self.refuse(error.with_notes(TOO_MANY));
        }
        if name.len() + value.len() > self.limits.field_bytes {
            let shown = name.get(..name.len().min(80)).unwrap_or_default();
            let message = [b"Request header exceeds LimitRequestFieldSize: ", shown].concat();
            let error = HeadError::new(431, 561, LogLevel::Info, message);
            return self.refuse(error.with_notes(TOO_LARGE));
        }
        if name == b"cookie" {
            if !self.cookies.is_empty() {
                self.cookies.extend_from_slice(b"; ");
            }
            self.cookies.extend_from_slice(value);
            return;
        }
        self.table.add(&camel_case(name), value);
    }

    /// The request; `None` if it is malformed (RFC 9113 section 8.1.1). `ends`: it has no body.
    /// `websocket_key` is that of a request for a WebSocket, if these are allowed.
    pub fn into_request(
        mut self,
        options: &HeadOptions<'_>,
        ends: bool,
        websocket_key: Option<&str>,
    ) -> Option<Request> {
        let mut method = self.method.take().filter(|_| !self.is_malformed)?;
        let target = self.target(&method)?;
        let announced = match self.table.get(b"Content-Length") {
            Some(length) => Some(decimal(length)?),
            None => None,
        };
        let is_extended = self.protocol.is_some();
        if is_extended {
            method = self.make_upgrade(websocket_key);
        }
        if method != b"CONNECT" && self.authority.is_none() && !self.table.contains(b"Host") {
            return None;
        }
        let has_two = self.table.get_all(b"Content-Length").nth(1).is_some();
        if has_two || ends && announced.is_some_and(|length| length > 0) {
            return None;
        }
        if let Some(authority) = &self.authority {
            self.table.set(b"Host", authority);
        }
        if !self.cookies.is_empty() {
            self.table.add(b"Cookie", &self.cookies);
        }
        match (ends, announced) {
            // What follows is no body.
            _ if is_extended || method == b"CONNECT" => {}
            // Handlers learn by the fields whether there is a body.
            (false, None) => self.table.add(b"Transfer-Encoding", b"chunked"),
            (true, None) if self.table.contains(b"Content-Type") => {
                self.table.add(b"Content-Length", b"0");
            }
            _ => {}
        }
        let mut head = Box::new(RequestHead::new());
        let made = head.set_streamed(&method, &target, self.table, &self.limits, options);
        let is_http = |scheme: &Vec<u8>| {
            scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
        };
        let has_scheme = self.scheme.is_none_or(|scheme| is_http(&scheme));
        let mut refusal = self.refusal.or(made.err());
        if !has_scheme && refusal.is_none() {
            let message = "the scheme of the request is neither http nor https";
            refusal = Some(HeadError::new(400, 10379, LogLevel::Debug, message));
        }
        Some(Request { head, refusal, announced })
    }

    /// Makes a request for a WebSocket one of HTTP/1.1 (RFC 8441 section 5); returns its method.
    fn make_upgrade(&mut self, websocket_key: Option<&str>) -> Vec<u8> {
        match (self.protocol.as_deref(), websocket_key) {
            (Some(b"websocket"), Some(key)) => {
                self.table.set(b"Upgrade", b"websocket");
                self.table.set(b"Connection", b"Upgrade");
                self.table.set(b"Sec-WebSocket-Key", key.as_bytes());
            }
            _ => {
                let message = "the protocol of a CONNECT is not served";
                self.refuse(HeadError::new(501, 10460, LogLevel::Debug, message));
            }
        }
        b"GET".to_vec()
    }

    /// What stands between method and version in a request line.
    fn target(&mut self, method: &[u8]) -> Option<Vec<u8>> {
        let has_valid_host = |host: &Vec<u8>| host.iter().all(|byte| is_of_authority(*byte));
        if !is_token_string(method) || !self.authority.as_ref().is_none_or(has_valid_host) {
            return None;
        }
        if self.protocol.is_some() && method != b"CONNECT" {
            return None;
        }
        if method == b"CONNECT" && self.protocol.is_none() {
            let is_plain = self.scheme.is_none() && self.path.is_none();
            return self.authority.take().filter(|_| is_plain);
        }
        self.scheme.as_ref()?;
        let path = self.path.take()?;
        let is_valid = path.starts_with(b"/") || path == b"*" && method == b"OPTIONS";
        (is_valid && path.iter().all(|byte| is_visible(*byte))).then_some(path)
    }

    /// The fields behind a body; `None` if they are malformed.
    pub fn into_trailers(self) -> Option<Table> {
        let has_pseudo = [&self.method, &self.scheme, &self.authority, &self.path, &self.protocol]
            .into_iter()
            .any(Option::is_some);
        let is_valid = !self.is_malformed && !has_pseudo && self.refusal.is_none();
        is_valid.then_some(self.table)
    }
}

/// The fields of a response, or those behind its body, while they are decoded.
pub(super) struct ResponseFields {
    limits: HeadLimits,
    table: Table,
    status: Option<u16>,
    bytes: usize,
    count: usize,
    has_regular: bool,
    is_malformed: bool,
}

/// A response whose fields are valid.
pub(super) struct Found {
    /// 0 of trailer fields.
    pub status: u16,
    pub fields: Table,
    /// The length that it announces, bytes.
    pub announced: Option<u64>,
}

impl ResponseFields {
    pub fn new(limits: HeadLimits) -> ResponseFields {
        ResponseFields {
            limits,
            table: Table::new(),
            status: None,
            bytes: 0,
            count: 0,
            has_regular: false,
            is_malformed: false,
        }
    }

    /// Takes a field; false if it is time to give up. Beyond a limit nothing is kept.
    pub fn take(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        self.count += 1;
        let limit = list_bytes(&self.limits);
        let is_too_many = self.limits.fields != 0 && self.count > self.limits.fields;
        if self.bytes > limit || is_too_many {
            (self.table, self.is_malformed) = (Table::new(), true);
            return self.bytes <= limit * REFUSED_TIMES;
        }
        if name.starts_with(b":") {
            let status = decimal(value).and_then(|status| u16::try_from(status).ok());
            let status = status.filter(|status| (100..=999).contains(status) && value.len() == 3);
            let is_status = name == b":status" && status.is_some() && self.status.is_none();
            self.is_malformed |= !is_status || self.has_regular;
            self.status = status;
            return true;
        }
        self.has_regular = true;
        let value = trim_blanks(value);
        let is_valid_name = is_token_string(name) && !name.iter().any(u8::is_ascii_uppercase);
        let is_valid_value = value.iter().all(|byte| is_field_content(*byte));
        if !is_valid_name || !is_valid_value || OF_CONNECTION.contains(&name) {
            self.is_malformed = true;
            return true;
        }
        self.table.add(&camel_case(name), value);
        true
    }

    /// The response, or trailer fields; `None` if it is malformed (RFC 9113 section 8.1.1).
    pub fn finish(self, is_trailers: bool) -> Option<Found> {
        if self.is_malformed || self.status.is_some() == is_trailers {
            return None;
        }
        let mut lengths = self.table.get_all(b"Content-Length");
        let announced = match (lengths.next(), lengths.next()) {
            (None, _) => None,
            (Some(length), None) => Some(decimal(length)?),
            (Some(_), Some(_)) => return None,
        };
        drop(lengths);
        Some(Found { status: self.status.unwrap_or(0), fields: self.table, announced })
    }
}

/// Whether an authority may have this byte (RFC 3986 section 3.2).
fn is_of_authority(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%[]".contains(&byte)
}

/// The usual way to write a name in HTTP/1: programs and logs expect it.
fn camel_case(name: &[u8]) -> Vec<u8> {
    let mut before = b'-';
    name.iter()
        .map(|byte| {
            let byte = if before == b'-' { byte.to_ascii_uppercase() } else { *byte };
            before = byte;
            byte
        })
        .collect()
}
