//! The fields of a request (RFC 9113 section 8): a block that was decoded becomes a head, as one of
//! HTTP/1 would be.

use std::borrow::Cow;

use super::hpack::ENTRY_OVERHEAD_BYTES;
use super::pseudo::{Pseudo, Values, is_authority, is_http, is_scheme};
use super::spare::Spare;
use crate::chars::{decimal, is_field_value, is_token_string, is_visible, trim_blanks};
use crate::request::{HeadError, HeadLimits, HeadOptions, LogLevel, RequestHead};
use crate::scan;
use crate::table::Table;

/// Fields that belong to a connection of HTTP/1 (RFC 9113 section 8.2.2).
pub(super) const OF_CONNECTION: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// Fields of trailers that are of no effect behind a body (`IgnoredRequestTrailers`).
const NOT_BEHIND_BODIES: [&[u8]; 11] = [
    b"Te",
    b"Host",
    b"Range",
    b"Cookie",
    b"Expect",
    b"Pragma",
    b"Max-Forwards",
    b"Cache-Control",
    b"Authorization",
    b"Content-Length",
    b"Proxy-Authorization",
];

/// Fields that are malformed if they have blanks around their values.
const UNTRIMMED: [&[u8]; 3] = [b"te", b"host", b"content-length"];

/// Bytes between a name and its value in HTTP/1, which `LimitRequestFieldSize` counts.
const SEPARATOR_BYTES: usize = 2;

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
pub(super) const REFUSED_TIMES: usize = 4;

/// The message of a field that is too large once its values are joined.
const JOINED_TOO_LARGE: u32 = 560;

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
    /// The limit of all fields together, bytes.
    most_bytes: usize,
    head: Box<RequestHead>,
    table: Table,
    pseudo: Values,
    /// The parts of `Cookie`, joined (RFC 9113 section 8.2.3).
    cookies: Vec<u8>,
    has_cookies: bool,
    count: usize,
    bytes: usize,
    has_regular: bool,
    is_malformed: bool,
    refusal: Option<Box<HeadError>>,
    /// Whether it may be for a forward proxy, so that its target names the host.
    pub is_for_proxy: bool,
}

/// A request whose fields are valid.
pub(super) struct Request {
    pub head: Box<RequestHead>,
    pub refusal: Option<Box<HeadError>>,
    /// The length that it announces, bytes.
    pub announced: Option<u64>,
}

impl Fields {
    pub fn new(limits: HeadLimits, spare: &mut Spare) -> Fields {
        let mut head = spare.take_head();
        Fields {
            limits,
            most_bytes: list_bytes(&limits),
            table: std::mem::take(&mut head.headers),
            head,
            pseudo: Values::in_memory(spare.pseudo.take()),
            cookies: spare.cookies.take(),
            has_cookies: false,
            count: 0,
            bytes: 0,
            has_regular: false,
            is_malformed: false,
            refusal: None,
            is_for_proxy: false,
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

    /// Takes a field; false if it is time to give up. Beyond a limit nothing is kept. `is_plain`
    /// tells, and comes to tell, whether it is a valid field that has no part in the protocol.
    pub fn take(&mut self, name: &[u8], value: &[u8], is_plain: &mut bool) -> bool {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        if self.bytes > self.most_bytes {
            // A refusal needs none of them.
            (self.table, self.has_cookies) = (Table::new(), false);
            self.refuse(HeadError::new(431, 563, LogLevel::Info, "Request header is too large"));
            return self.bytes <= self.most_bytes * REFUSED_TIMES;
        }
        if *is_plain {
            self.begin_regular();
            if self.is_within_limits(name, value) {
                self.table.add_lower(name, value);
            }
        } else if let Some(pseudo) = name.strip_prefix(b":") {
            self.take_pseudo(pseudo, value);
        } else {
            let trimmed = if UNTRIMMED.contains(&name) { value } else { trim_blanks(value) };
            *is_plain = self.take_regular(name, trimmed) && trimmed.len() == value.len();
        }
        true
    }

    fn refuse(&mut self, error: Box<HeadError>) {
        self.refusal.get_or_insert(error);
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) {
        let Some(pseudo) = Pseudo::of_name(name) else {
            self.is_malformed = true;
            return;
        };
        // Each one comes once, and before all other fields.
        self.is_malformed |= self.pseudo.has(pseudo) || self.has_regular;
        let is_long = value.len() > self.limits.line_bytes;
        self.pseudo.set(pseudo, value.get(..self.limits.line_bytes).unwrap_or(value));
        if is_long {
            let message = format!(
                "request failed: client's request-line exceeds LimitRequestLine (longer than {})",
                self.limits.line_bytes
            );
            self.refuse(HeadError::new(414, 565, LogLevel::Info, message));
        }
    }

    fn begin_regular(&mut self) {
        self.has_regular = true;
        self.count += 1;
    }

    /// Takes a field that is no pseudo-header field; returns whether it is plain.
    fn take_regular(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.begin_regular();
        let is_valid_name = is_lower_token(name);
        let is_valid_value = is_field_value(value);
        let is_allowed = !OF_CONNECTION.contains(&name)
            && (name != b"te" || value.eq_ignore_ascii_case(b"trailers"));
        if !is_valid_name || !is_valid_value || !is_allowed {
            self.is_malformed = true;
            return false;
        }
        if name == b"host" {
            self.is_malformed |= self.table.contains(b"Host") || !is_authority(value);
        }
        if name == b"http2-settings" {
            // It is of an upgrade from HTTP/1.1.
            return false;
        }
        if !self.is_within_limits(name, value) {
            return false;
        }
        if name == b"cookie" {
            if self.has_cookies && value.is_empty() {
                return false;
            }
            if self.has_cookies {
                self.cookies.extend_from_slice(b"; ");
            } else {
                // The place of the first is that of all.
                self.table.add(b"Cookie", b"");
                self.has_cookies = true;
            }
            self.cookies.extend_from_slice(value);
            return false;
        }
        self.table.add_lower(name, value);
        name != b"host"
    }

    /// Whether a field is within the limits of a head; else it is refused.
    fn is_within_limits(&mut self, name: &[u8], value: &[u8]) -> bool {
        if self.limits.fields != 0 && self.count > self.limits.fields {
            let message = "Number of request headers exceeds LimitRequestFields";
            let error = HeadError::new(431, 563, LogLevel::Info, message);
            self.refuse(error.with_notes(TOO_MANY));
            return false;
        }
        if name.len() + SEPARATOR_BYTES + value.len() > self.limits.field_bytes {
            let shown = name.get(..name.len().min(80)).unwrap_or_default();
            let message = [b"Request header exceeds LimitRequestFieldSize: ", shown].concat();
            let error = HeadError::new(431, 561, LogLevel::Info, message);
            self.refuse(error.with_notes(TOO_LARGE));
            return false;
        }
        true
    }

    /// The request; `None` if it is malformed (RFC 9113 section 8.1.1). `ends`: it has no body.
    /// `websocket_key` is that of a request for a WebSocket; without it they were not offered.
    pub fn into_request(
        mut self,
        options: &HeadOptions<'_>,
        ends: bool,
        websocket_key: Option<&str>,
        spare: &mut Spare,
    ) -> Option<Request> {
        let pseudo = std::mem::take(&mut self.pseudo);
        let mut method = pseudo.get(Pseudo::Method).filter(|_| !self.is_malformed)?;
        let target = self.target(&pseudo, method)?;
        let announced = match self.table.get(b"Content-Length") {
            Some(length) => Some(decimal(length)?),
            None => None,
        };
        let protocol = pseudo.get(Pseudo::Protocol);
        if let Some(protocol) = protocol {
            self.make_upgrade(protocol, websocket_key?);
            method = b"GET";
        }
        if protocol.is_some() && announced.is_some() {
            // What follows would be no body, and no part of the WebSocket either.
            let message = "a CONNECT that announces a body";
            self.refuse(HeadError::new(400, 10460, LogLevel::Debug, message));
        }
        // That of a plain CONNECT is its target.
        let authority = pseudo.get(Pseudo::Authority).filter(|_| method != b"CONNECT");
        if method != b"CONNECT" && authority.is_none() && !self.table.contains(b"Host") {
            return None;
        }
        let has_two = self.table.get_all(b"Content-Length").nth(1).is_some();
        if has_two || ends && announced.is_some_and(|length| length > 0) {
            return None;
        }
        if let Some(authority) = authority {
            self.table.set(b"Host", authority);
        }
        if self.has_cookies {
            self.table.set(b"Cookie", &self.cookies);
        }
        match (ends, announced) {
            // What follows is no body.
            _ if protocol.is_some() || method == b"CONNECT" => {}
            // Handlers learn by the fields whether there is a body.
            (false, None) => self.table.add(b"Transfer-Encoding", b"chunked"),
            (true, None) if self.table.contains(b"Content-Type") => {
                self.table.add(b"Content-Length", b"0");
            }
            _ => {}
        }
        let mut head = self.head;
        let made = head.set_streamed([method, &target], self.table, &self.limits, options);
        let has_scheme = pseudo.get(Pseudo::Scheme).is_none_or(is_http);
        let mut refusal = self.refusal.or(made.err());
        if let Some(error) = refusal.as_mut().filter(|error| error.log_number == JOINED_TOO_LARGE) {
            // In HTTP/1 it is a 400.
            error.status = 431;
        }
        if !has_scheme && refusal.is_none() {
            let message = "the scheme of the request is neither http nor https";
            refusal = Some(HeadError::new(400, 10379, LogLevel::Debug, message));
        }
        drop(target);
        spare.pseudo.give(pseudo.into_memory());
        spare.cookies.give(self.cookies);
        Some(Request { head, refusal, announced })
    }

    /// Makes a request for a WebSocket one of HTTP/1.1 (RFC 8441 section 5), whose method is GET.
    fn make_upgrade(&mut self, protocol: &[u8], websocket_key: &str) {
        if protocol != b"websocket" {
            let message = "the protocol of a CONNECT is not served";
            self.refuse(HeadError::new(501, 10460, LogLevel::Debug, message));
            return;
        }
        self.table.set(b"Upgrade", b"websocket");
        self.table.set(b"Connection", b"Upgrade");
        self.table.set(b"Sec-WebSocket-Key", websocket_key.as_bytes());
    }

    /// What stands between method and version in a request line.
    fn target<'p>(&self, pseudo: &'p Values, method: &[u8]) -> Option<Cow<'p, [u8]>> {
        let authority = pseudo.get(Pseudo::Authority);
        let has_valid_host = authority.is_none_or(is_authority);
        if !is_token_string(method) || !has_valid_host {
            return None;
        }
        let (is_connect, is_extended) = (method == b"CONNECT", pseudo.has(Pseudo::Protocol));
        if is_extended && !is_connect {
            return None;
        }
        if is_connect && !is_extended {
            let is_plain = !pseudo.has(Pseudo::Scheme) && !pseudo.has(Pseudo::Path);
            return authority.filter(|_| is_plain).map(Cow::Borrowed);
        }
        let scheme = pseudo.get(Pseudo::Scheme).filter(|scheme| is_scheme(scheme))?;
        let path = pseudo.get(Pseudo::Path)?;
        let is_of_server = path == b"*" && method == b"OPTIONS";
        let is_valid = path.starts_with(b"/") || is_of_server;
        if !is_valid || scan::contains(path, |byte| !is_visible(byte)) {
            return None;
        }
        if is_of_server || !self.is_for_proxy && is_http(scheme) {
            return Some(Cow::Borrowed(path));
        }
        // A forward proxy recognises its requests by an absolute target.
        let authority = authority.or_else(|| self.table.get(b"Host"))?;
        Some(Cow::Owned([scheme, b"://", authority, path].concat()))
    }

    /// The fields behind a body of so many bytes, whose length the head may have announced; `None`
    /// if they are malformed.
    pub fn into_trailers(mut self, received: u64, announced: Option<u64>) -> Option<Table> {
        let has_length = |length| announced.is_none() && decimal(length) == Some(received);
        if !self.table.get_all(b"Content-Length").all(has_length) {
            return None;
        }
        let is_kept = |name: &[u8]| !NOT_BEHIND_BODIES.contains(&name);
        self.table.retain(|name, _| is_kept(name));
        let is_valid = !self.is_malformed && self.pseudo.is_empty() && self.refusal.is_none();
        is_valid.then_some(self.table)
    }
}

/// Whether a text may be the name of a field, which is in lower case.
pub(super) fn is_lower_token(name: &[u8]) -> bool {
    is_token_string(name) && !scan::contains(name, |byte| byte.is_ascii_uppercase())
}
