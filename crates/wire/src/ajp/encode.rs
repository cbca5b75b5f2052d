//! Packets of a request.

use super::codes::{STORED_METHOD, method, request_field};
use super::{BODY_HEADER_BYTES, HEADER_BYTES, PACKET_BYTES_MAX};
use crate::status::Status;

/// The packet that says that the body has ended.
pub const END_OF_BODY: [u8; BODY_HEADER_BYTES] = [0x12, 0x34, 0, 2, 0, 0];

/// The packet that asks whether the container is there. The answer is `AjpEvent::Pong`.
pub const CPING: [u8; 5] = [0x12, 0x34, 0, 1, 10];

const FORWARD_REQUEST: u8 = 2;

/// Attributes of a request.
mod attribute {
    pub const REMOTE_USER: u8 = 0x03;
    pub const AUTH_TYPE: u8 = 0x04;
    pub const QUERY_STRING: u8 = 0x05;
    pub const JVM_ROUTE: u8 = 0x06;
    pub const SSL_CERT: u8 = 0x07;
    pub const SSL_CIPHER: u8 = 0x08;
    pub const SSL_SESSION: u8 = 0x09;
    pub const REQUEST_ATTRIBUTE: u8 = 0x0a;
    pub const SSL_KEY_SIZE: u8 = 0x0b;
    pub const SECRET: u8 = 0x0c;
    pub const STORED_METHOD: u8 = 0x0d;
    pub const ARE_DONE: u8 = 0xff;
}

/// The header of a packet with `len` bytes of the body, at most the size of a packet less
/// [`BODY_HEADER_BYTES`]. The bytes follow it.
pub fn body_header(len: usize) -> [u8; BODY_HEADER_BYTES] {
    debug_assert!(len <= PACKET_BYTES_MAX - BODY_HEADER_BYTES);
    let [packet_high, packet_low] = (len as u16).wrapping_add(2).to_be_bytes();
    let [high, low] = (len as u16).to_be_bytes();
    [0x12, 0x34, packet_high, packet_low, high, low]
}

/// What TLS says of the client. Empty texts are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ssl<'a> {
    /// `SSL_CLIENT_CERT`, PEM.
    pub cert: &'a [u8],
    /// `SSL_CIPHER`
    pub cipher: &'a [u8],
    /// `SSL_SESSION_ID`
    pub session: &'a [u8],
    /// `SSL_CIPHER_USEKEYSIZE`, bits.
    pub key_size: Option<u16>,
    /// `SSL_PROTOCOL`
    pub protocol: &'a [u8],
}

/// A request. Texts are without NUL.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForwardRequest<'a> {
    /// The method's name.
    pub method: &'a [u8],
    /// `HTTP/1.1`
    pub protocol: &'a [u8],
    /// The path at the container.
    pub path: &'a [u8],
    /// The client's address.
    pub remote_addr: &'a [u8],
    /// The client's name, if it was looked up.
    pub remote_host: Option<&'a [u8]>,
    /// `ServerName`, or what `Host` says.
    pub server_name: &'a [u8],
    /// The port that the client connected to.
    pub server_port: u16,
    /// What TLS says, if it is used.
    pub ssl: Option<Ssl<'a>>,
    /// The worker's `secret=`.
    pub secret: Option<&'a [u8]>,
    /// The user, if authenticated.
    pub user: Option<&'a [u8]>,
    /// `Basic` and the like.
    pub auth_type: Option<&'a [u8]>,
    /// The query, without its question mark.
    pub query: Option<&'a [u8]>,
    /// The route of the session.
    pub route: Option<&'a [u8]>,
    /// The client's port (`AJP_REMOTE_PORT`).
    pub remote_port: u16,
    /// The address that the client connected to (`AJP_LOCAL_ADDR`).
    pub local_addr: &'a [u8],
}

/// The request does not fit into a packet: 400 (`AH00988`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request exceeds a packet of {0} bytes")]
pub struct AjpOverflow(pub usize);

impl AjpOverflow {
    /// The status of the response.
    pub const STATUS: Status = 400;

    /// Apache's message number.
    pub const LOG_NUMBER: u32 = 988;
}

impl ForwardRequest<'_> {
    /// Appends the packet, of at most `packet_bytes`. `attributes` are the variables whose names
    /// begin with `AJP_`, without that. Nothing is appended if it fails.
    ///
    /// Source: `ajp_marshal_into_msgb`.
    pub fn write<'p>(
        &self,
        out: &mut Vec<u8>,
        packet_bytes: usize,
        fields: impl Iterator<Item = (&'p [u8], &'p [u8])>,
        attributes: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> Result<(), AjpOverflow> {
        let limit = packet_bytes.min(PACKET_BYTES_MAX);
        let start = out.len();
        let mut packet = Packet { out, start, limit };
        let written = self.write_all(&mut packet, fields, attributes);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_all<'p>(
        &self,
        packet: &mut Packet<'_>,
        fields: impl Iterator<Item = (&'p [u8], &'p [u8])>,
        attributes: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> Result<(), AjpOverflow> {
        let code = method(self.method);
        packet.bytes(&[0x12, 0x34, 0, 0, FORWARD_REQUEST, code])?;
        packet.string(self.protocol)?;
        packet.string(self.path)?;
        packet.string(self.remote_addr)?;
        match self.remote_host {
            Some(host) => packet.string(host)?,
            None => packet.number(0xffff)?,
        }
        packet.string(self.server_name)?;
        packet.number(self.server_port)?;
        packet.bytes(&[u8::from(self.ssl.is_some())])?;
        packet.fields(fields)?;
        self.write_attributes(packet, code)?;
        for (name, value) in attributes {
            packet.request_attribute(name, value)?;
        }
        packet.bytes(&[attribute::ARE_DONE])?;
        packet.end();
        Ok(())
    }

    fn write_attributes(&self, packet: &mut Packet<'_>, code: u8) -> Result<(), AjpOverflow> {
        let ssl = self.ssl.unwrap_or_default();
        let not_empty = |text| Some(text).filter(|text: &&[u8]| !text.is_empty());
        for (code, text) in [
            (attribute::SECRET, self.secret),
            (attribute::REMOTE_USER, self.user),
            (attribute::AUTH_TYPE, self.auth_type),
            (attribute::QUERY_STRING, self.query),
            (attribute::JVM_ROUTE, self.route),
            (attribute::SSL_CERT, not_empty(ssl.cert)),
            (attribute::SSL_CIPHER, not_empty(ssl.cipher)),
            (attribute::SSL_SESSION, not_empty(ssl.session)),
        ] {
            if let Some(text) = text {
                packet.bytes(&[code])?;
                packet.string(text)?;
            }
        }
        if let Some(bits) = ssl.key_size {
            packet.bytes(&[attribute::SSL_KEY_SIZE])?;
            packet.number(bits)?;
        }
        if code == STORED_METHOD {
            packet.bytes(&[attribute::STORED_METHOD])?;
            packet.string(self.method)?;
        }
        packet.request_attribute(b"AJP_REMOTE_PORT", self.remote_port.to_string().as_bytes())?;
        packet.request_attribute(b"AJP_LOCAL_ADDR", self.local_addr)?;
        match not_empty(ssl.protocol) {
            Some(protocol) => packet.request_attribute(b"AJP_SSL_PROTOCOL", protocol),
            None => Ok(()),
        }
    }
}

/// A packet that is being written.
struct Packet<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    limit: usize,
}

impl Packet<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), AjpOverflow> {
        if self.out.len() - self.start + bytes.len() > self.limit {
            return Err(AjpOverflow(self.limit));
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn number(&mut self, number: u16) -> Result<(), AjpOverflow> {
        self.bytes(&number.to_be_bytes())
    }

    fn string(&mut self, text: &[u8]) -> Result<(), AjpOverflow> {
        // 0xFFFF would mean that there is none.
        let len = u16::try_from(text.len()).ok().filter(|len| *len < 0xffff);
        self.number(len.ok_or(AjpOverflow(self.limit))?)?;
        self.bytes(text)?;
        self.bytes(&[0])
    }

    /// The fields behind their number.
    fn fields<'p>(
        &mut self,
        fields: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> Result<(), AjpOverflow> {
        let at = self.out.len();
        self.number(0)?;
        let mut count: u16 = 0;
        for (name, value) in fields {
            match request_field(name) {
                Some(code) => self.number(code)?,
                // Its length would be read as a code.
                None if name.len() >= 0xa000 => return Err(AjpOverflow(self.limit)),
                None => self.string(name)?,
            }
            self.string(value)?;
            count = count.checked_add(1).ok_or(AjpOverflow(self.limit))?;
        }
        self.put(at, count);
        Ok(())
    }

    fn request_attribute(&mut self, name: &[u8], value: &[u8]) -> Result<(), AjpOverflow> {
        self.bytes(&[attribute::REQUEST_ATTRIBUTE])?;
        self.string(name)?;
        self.string(value)
    }

    /// Writes the length of the content into the header.
    fn end(&mut self) {
        let len = self.out.len() - self.start - HEADER_BYTES;
        self.put(self.start + 2, len as u16);
    }

    fn put(&mut self, at: usize, number: u16) {
        if let Some(place) = self.out.get_mut(at..at + 2) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }
}
