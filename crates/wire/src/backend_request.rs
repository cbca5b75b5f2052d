//! The head of a request to an HTTP/1.1 backend, and its body's framing. Fields that end at this
//! hop are left out, fields of the proxy are added or joined to those of the client.
//!
//! What is written is one request for a strict parser, whatever the fields are: bytes that could
//! end a line or the head are refused.
//!
//! Source: `ap_proxy_create_hdrbrgd` (proxy_util.c) and `ap_proxy_http_prefetch`
//! (mod_proxy_http.c). Chunks of the body are written by [`crate::chunked`].

use crate::chars::{is_field_value, is_token_string, is_visible};
use crate::request::Version;
use crate::response::connection_tokens;
use crate::table::Table;
use crate::words;

/// Most bytes of a head. Apache has no such limit.
pub const HEAD_BYTES: usize = 1 << 20;

/// How the backend finds the end of the request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFraming {
    /// There is no body, and the client announced none.
    None,
    /// `Content-Length`, bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`; not with HTTP/1.0.
    Chunked,
}

/// The `Connection` field; none with HTTP/1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestConnection<'a> {
    /// `Connection: Keep-Alive`
    KeepAlive,
    /// `Connection: close`
    Close,
    /// `Connection: Upgrade`, to this protocol.
    Upgrade(&'a [u8]),
}

/// What a reverse proxy tells of its client (`ProxyAddHeaders`).
#[derive(Clone, Copy, Debug)]
pub struct Forwarded<'a> {
    /// `X-Forwarded-For`: the client's address.
    pub client: &'a [u8],
    /// `X-Forwarded-Host`: the client's `Host`.
    pub host: Option<&'a [u8]>,
    /// `X-Forwarded-Server`: `ServerName`.
    pub server: &'a [u8],
}

/// A request to a backend.
#[derive(Clone, Copy, Debug)]
pub struct BackendRequest<'a> {
    /// The method's name.
    pub method: &'a [u8],
    /// The target: the path with the query, or the whole URL for another proxy.
    pub target: &'a [u8],
    /// HTTP/1.0 instead of 1.1 (`force-proxy-request-1.0`).
    pub is_http10: bool,
    /// `Host`: the backend's, or the client's with `ProxyPreserveHost`.
    pub host: &'a [u8],
    /// The proxy's part of `Via` (`ProxyVia`): see [`write_via`].
    pub via: Option<&'a [u8]>,
    /// The fields about the client.
    pub forwarded: Option<Forwarded<'a>>,
    /// How the body ends.
    pub framing: RequestFraming,
    /// The `Connection` field.
    pub connection: RequestConnection<'a>,
    /// `Expect: 100-Continue`. The client's stands for it; without this, the client's ends here.
    pub expects_continue: bool,
    /// What is added to `Proxy-Authorization`, for a remote proxy.
    pub credentials: Option<&'a [u8]>,
    /// Leave out the client's `Proxy-Authorization`: the user has authenticated here (not
    /// `Proxy-Chain-Auth`).
    pub drops_authorization: bool,
    /// Leave out `If-…`: a subrequest.
    pub drops_conditions: bool,
}

/// Why a request can't be written. Nothing of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The method is not a token, or the target has blanks, control characters or a fragment.
    #[error("request line to the backend is invalid")]
    Line,
    /// The name of a field is not a token, or its value has control characters.
    #[error("header field to the backend is invalid")]
    Field,
    /// Chunks with HTTP/1.0.
    #[error("chunked request body needs HTTP/1.1")]
    Chunked,
    /// The head exceeds [`HEAD_BYTES`].
    #[error("request head to the backend exceeds {HEAD_BYTES} bytes")]
    TooLarge,
}

/// Appends what a proxy adds to `Via`: `1.1 name:port`, and the software in parentheses with
/// `ProxyVia Full`. The port is left out if it is the scheme's.
pub fn write_via(
    out: &mut Vec<u8>,
    received: Version,
    server: &[u8],
    port: Option<u16>,
    software: Option<&[u8]>,
) {
    let (major, minor) = (received.0 / 1000, received.0 % 1000);
    out.extend_from_slice(format!("{major}.{minor} ").as_bytes());
    out.extend_from_slice(server);
    if let Some(port) = port {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    if let Some(software) = software {
        out.extend_from_slice(&[b" (", software, b")"].concat());
    }
}

impl BackendRequest<'_> {
    /// Appends the head, with `fields` of the client in their order. Fields of the same name should
    /// have been joined, as those of [`crate::RequestHead`] are.
    pub fn write(&self, out: &mut Vec<u8>, fields: &Table) -> Result<(), RequestFault> {
        let start = out.len();
        let mut head = Head { out, start };
        let written = self.write_all(&mut head, fields);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_all(&self, head: &mut Head<'_>, fields: &Table) -> Result<(), RequestFault> {
        // A fragment is not sent, and Apache refuses requests with one (RFC 9112 section 3.2).
        let is_sent = |byte: u8| is_visible(byte) & (byte != b'#');
        let is_target = self.target.iter().fold(true, |all, byte| all & is_sent(*byte));
        let is_target = is_target && !self.target.is_empty();
        if !is_token_string(self.method) || !is_target {
            return Err(RequestFault::Line);
        }
        if self.is_http10 && self.framing == RequestFraming::Chunked {
            return Err(RequestFault::Chunked);
        }
        head.push(&[self.method, b" ", self.target])?;
        head.push(&[if self.is_http10 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" }])?;
        head.own(b"Host", self.host)?;
        let mut added = self.added();
        let names_fields = fields.get_all(b"Connection").any(names_a_field);
        for (index, (name, value)) in fields.iter().enumerate() {
            if self.drops(name) || (names_fields && is_named_by_connection(fields, name)) {
                continue;
            }
            let own = match is_added(name) {
                true => added.iter_mut().find(|(added, _)| is_named(name, added)),
                false => None,
            };
            match own.and_then(|(_, addition)| addition.take()) {
                // The client's stands for both.
                Some(_) if name.eq_ignore_ascii_case(b"Expect") => head.field(name, &[value])?,
                Some(addition) => head.field(name, &[value, b", ", addition])?,
                None => head.received(fields, index, name, value)?,
            }
        }
        for (name, addition) in added {
            if let Some(addition) = addition {
                head.own(name, addition)?;
            }
        }
        self.write_framing(head)?;
        head.push(&[b"\r\n"])
    }

    /// The fields that are joined to the client's.
    fn added(&self) -> [(&'static [u8], Option<&[u8]>); 6] {
        let forwarded = self.forwarded.as_ref();
        [
            (b"Via", self.via),
            (b"Expect", self.expects_continue.then_some(b"100-Continue")),
            (b"X-Forwarded-For", forwarded.map(|forwarded| forwarded.client)),
            (b"X-Forwarded-Host", forwarded.and_then(|forwarded| forwarded.host)),
            (b"X-Forwarded-Server", forwarded.map(|forwarded| forwarded.server)),
            (b"Proxy-Authorization", self.credentials),
        ]
    }

    /// Whether a field of the client ends here.
    fn drops(&self, name: &[u8]) -> bool {
        const CONDITIONS: [&[u8]; 5] = [
            b"If-Match",
            b"If-Modified-Since",
            b"If-None-Match",
            b"If-Range",
            b"If-Unmodified-Since",
        ];
        let is = |known: &[u8]| is_named(name, known);
        // Most fields are of another length than those of a hop.
        let is_of_hop = match name.len() {
            2 => is(b"TE"),
            4 => is(b"Host"),
            6 => !self.expects_continue && is(b"Expect"),
            7 => is(b"Trailer") || is(b"Upgrade"),
            10 => is(b"Connection") || is(b"Keep-Alive"),
            14 => is(b"Content-Length"),
            16 => is(b"Proxy-Connection"),
            17 => is(b"Transfer-Encoding"),
            _ => false,
        };
        is_of_hop
            || (self.drops_authorization && is(b"Proxy-Authorization"))
            || (self.drops_conditions && CONDITIONS.iter().any(|known| is(known)))
    }

    fn write_framing(&self, head: &mut Head<'_>) -> Result<(), RequestFault> {
        match self.framing {
            RequestFraming::None => {}
            RequestFraming::Length(length) => {
                head.own(b"Content-Length", length.to_string().as_bytes())?;
            }
            RequestFraming::Chunked => head.push(&[b"Transfer-Encoding: chunked\r\n"])?,
        }
        match self.connection {
            _ if self.is_http10 => Ok(()),
            RequestConnection::KeepAlive => head.push(&[b"Connection: Keep-Alive\r\n"]),
            RequestConnection::Close => head.push(&[b"Connection: close\r\n"]),
            RequestConnection::Upgrade(protocol) => {
                head.push(&[b"Connection: Upgrade\r\n"])?;
                head.own(b"Upgrade", protocol)
            }
        }
    }
}

/// Whether a name has the length of one of [`BackendRequest::added`].
const fn is_added(name: &[u8]) -> bool {
    matches!(name.len(), 3 | 6 | 15 | 16 | 18 | 19)
}

/// Whether two names are the same, ignoring case. Few begin with the same letter.
fn is_named(name: &[u8], known: &[u8]) -> bool {
    let first = |name: &[u8]| name.first().map(|byte| byte | 0x20);
    first(name) == first(known) && words::same(name, known)
}

/// Whether a `Connection` may name a field that does not end here anyway.
fn names_a_field(value: &[u8]) -> bool {
    !words::same(value, b"keep-alive")
}

/// Whether the client's `Connection` names the field.
fn is_named_by_connection(fields: &Table, name: &[u8]) -> bool {
    fields
        .get_all(b"Connection")
        .any(|value| connection_tokens(value).any(|token| token.eq_ignore_ascii_case(name)))
}

/// A head that is being written.
struct Head<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
}

impl Head<'_> {
    fn push(&mut self, parts: &[&[u8]]) -> Result<(), RequestFault> {
        self.make_room(parts.iter().map(|part| part.len()).sum())?;
        for part in parts {
            self.out.extend_from_slice(part);
        }
        Ok(())
    }

    fn make_room(&mut self, more: usize) -> Result<(), RequestFault> {
        if self.out.len() - self.start + more > HEAD_BYTES {
            return Err(RequestFault::TooLarge);
        }
        self.out.reserve(more);
        Ok(())
    }

    /// A field of the client, the one at `index` of its table, unchanged.
    #[inline]
    fn received(
        &mut self,
        fields: &Table,
        index: usize,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), RequestFault> {
        let Some(line) = fields.written(index) else { return self.field(name, &[value]) };
        if !is_token_string(name) || !is_field_value(value) {
            return Err(RequestFault::Field);
        }
        self.make_room(line.len())?;
        self.out.extend_from_slice(line);
        Ok(())
    }

    /// A field of the proxy.
    fn own(&mut self, name: &'static [u8], value: &[u8]) -> Result<(), RequestFault> {
        if !is_field_value(value) {
            return Err(RequestFault::Field);
        }
        self.push(&[name, b": ", value, b"\r\n"])
    }

    fn field(&mut self, name: &[u8], value: &[&[u8]]) -> Result<(), RequestFault> {
        if !is_token_string(name) || !value.iter().all(|part| is_field_value(part)) {
            return Err(RequestFault::Field);
        }
        let length: usize = value.iter().map(|part| part.len()).sum();
        self.make_room(name.len() + length + b": \r\n".len())?;
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b": ");
        for part in value {
            self.out.extend_from_slice(part);
        }
        self.out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
