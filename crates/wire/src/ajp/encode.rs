//! Packets of a request.

use super::codes::{STORED_METHOD, method, request_field};
use super::overflow::{AjpOverflow, Full, Part};
use super::{BODY_HEADER_BYTES, HEADER_BYTES, PACKET_BYTES_MAX};

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
        self.write_beginning(packet, code).map_err(|full| full.at(Part::BEGINNING))?;
        packet.fields(fields)?;
        self.write_attributes(packet, code)?;
        for (name, value) in attributes {
            packet
                .named(name, value)
                .map_err(|full| full.at(Part::attribute(981, &[b"AJP_", name].concat(), value)))?;
        }
        packet.byte(attribute::ARE_DONE).map_err(|full| full.at(Part::END))?;
        packet.end();
        Ok(())
    }

    fn write_beginning(&self, packet: &mut Packet<'_>, code: u8) -> Result<(), Full> {
        packet.out.extend_from_slice(&[0x12, 0x34, 0, 0]);
        packet.byte(FORWARD_REQUEST)?;
        packet.byte(code)?;
        packet.string(self.protocol)?;
        packet.string(self.path)?;
        packet.string(self.remote_addr)?;
        match self.remote_host {
            Some(host) => packet.string(host)?,
            None => packet.number(0xffff)?,
        }
        packet.string(self.server_name)?;
        packet.number(self.server_port)?;
        packet.byte(u8::from(self.ssl.is_some()))?;
        // The number of fields.
        packet.number(0)
    }

    fn write_attributes(&self, packet: &mut Packet<'_>, code: u8) -> Result<(), AjpOverflow> {
        let ssl = self.ssl.unwrap_or_default();
        let not_empty = |text| Some(text).filter(|text: &&[u8]| !text.is_empty());
        for (code, text, part) in [
            (attribute::SECRET, self.secret, Part::SECRET),
            (attribute::REMOTE_USER, self.user, Part::USER),
            (attribute::AUTH_TYPE, self.auth_type, Part::AUTH_TYPE),
            (attribute::QUERY_STRING, self.query, Part::QUERY),
            (attribute::JVM_ROUTE, self.route, Part::ROUTE),
            (attribute::SSL_CERT, not_empty(ssl.cert), Part::CERTIFICATE),
            (attribute::SSL_CIPHER, not_empty(ssl.cipher), Part::CIPHER),
            (attribute::SSL_SESSION, not_empty(ssl.session), Part::SESSION),
        ] {
            if let Some(text) = text {
                packet.attribute(code, text).map_err(|full| full.at(part))?;
            }
        }
        if let Some(bits) = ssl.key_size {
            let written = packet.byte(attribute::SSL_KEY_SIZE).and_then(|()| packet.number(bits));
            written.map_err(|full| full.at(Part::KEY_SIZE))?;
        }
        if code == STORED_METHOD {
            let written = packet.attribute(attribute::STORED_METHOD, self.method);
            written.map_err(|full| full.at(Part::method(self.method)))?;
        }
        if let Some(protocol) = not_empty(ssl.protocol) {
            packet.request_attribute(2830, b"AJP_SSL_PROTOCOL", protocol)?;
        }
        let port = self.remote_port.to_string();
        packet.request_attribute(980, b"AJP_REMOTE_PORT", port.as_bytes())?;
        packet.request_attribute(2646, b"AJP_LOCAL_ADDR", self.local_addr)
    }
}

/// A packet that is being written.
struct Packet<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    limit: usize,
}

impl Packet<'_> {
    /// Checks that there is room for `count` bytes, which a function of Apache writes.
    fn check(&self, count: usize, function: &'static str) -> Result<(), Full> {
        let len = self.out.len() - self.start;
        if len + count > self.limit {
            return Err(Full { function, len });
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8) -> Result<(), Full> {
        self.check(1, "ajp_msg_append_uint8")?;
        self.out.push(byte);
        Ok(())
    }

    fn number(&mut self, number: u16) -> Result<(), Full> {
        self.check(2, "ajp_msg_append_uint16")?;
        self.out.extend_from_slice(&number.to_be_bytes());
        Ok(())
    }

    /// A string between its length and a NUL. What fits is shorter than 0xFFFF, which would mean
    /// that there is none.
    fn string(&mut self, text: &[u8]) -> Result<(), Full> {
        self.check(text.len() + 3, "ajp_msg_append_cvt_string")?;
        self.out.extend_from_slice(&(text.len() as u16).to_be_bytes());
        self.out.extend_from_slice(text);
        self.out.push(0);
        Ok(())
    }

    /// The fields; their number is in front of them.
    fn fields<'p>(
        &mut self,
        fields: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> Result<(), AjpOverflow> {
        let at = self.out.len() - 2;
        let mut count: u16 = 0;
        for (name, value) in fields {
            match request_field(name) {
                Some(code) => self.number(code).map_err(|full| full.at(Part::FIELD_CODE))?,
                None => self.field_name(name).map_err(|full| full.at(Part::FIELD_NAME))?,
            }
            self.string(value).map_err(|full| full.at(Part::FIELD_VALUE))?;
            // A packet has no room for as many.
            count = count.saturating_add(1);
        }
        self.put(at, count);
        Ok(())
    }

    fn field_name(&mut self, name: &[u8]) -> Result<(), Full> {
        // A longer name's length would be read as a code.
        let len = if name.len() < 0xa000 { name.len() } else { self.limit };
        self.check(len + 3, "ajp_msg_append_cvt_string")?;
        self.string(name)
    }

    fn attribute(&mut self, code: u8, text: &[u8]) -> Result<(), Full> {
        self.byte(code)?;
        self.string(text)
    }

    /// An attribute with a name; `number` is that of Apache's message if there is no room.
    fn request_attribute(
        &mut self,
        number: u32,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), AjpOverflow> {
        let written = self.named(name, value);
        written.map_err(|full| full.at(Part::attribute(number, name, value)))
    }

    fn named(&mut self, name: &[u8], value: &[u8]) -> Result<(), Full> {
        self.attribute(attribute::REQUEST_ATTRIBUTE, name)?;
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
