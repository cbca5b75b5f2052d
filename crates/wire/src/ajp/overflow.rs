//! What of a request does not fit into its packet, in Apache's words.

use std::borrow::Cow;

/// A part of a packet, as the log names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Apache's message number.
    number: u32,
    name: Cow<'static, str>,
}

impl Part {
    pub const BEGINNING: Part = Part::of(968, "the message beginning");
    pub const FIELD_CODE: Part = Part::of(969, "the header name");
    pub const FIELD_NAME: Part = Part::of(970, "the header name");
    pub const FIELD_VALUE: Part = Part::of(971, "the header value");
    pub const SECRET: Part = Part::of(3228, "secret");
    pub const USER: Part = Part::of(972, "the remote user");
    pub const AUTH_TYPE: Part = Part::of(973, "the auth type");
    pub const QUERY: Part = Part::of(974, "the query string");
    pub const ROUTE: Part = Part::of(975, "the jvm route");
    pub const CERTIFICATE: Part = Part::of(976, "the SSL certificates");
    pub const CIPHER: Part = Part::of(977, "the SSL ciphers");
    pub const SESSION: Part = Part::of(978, "the SSL session");
    pub const KEY_SIZE: Part = Part::of(979, "the SSL key size");
    pub const END: Part = Part::of(982, "the message end");

    const fn of(number: u32, name: &'static str) -> Part {
        Part { number, name: Cow::Borrowed(name) }
    }

    /// A method without a code.
    pub fn method(name: &[u8]) -> Part {
        let name = format!("the method '{}' as request attribute", String::from_utf8_lossy(name));
        Part { number: 2438, name: name.into() }
    }

    /// A named attribute.
    pub fn attribute(number: u32, name: &[u8], value: &[u8]) -> Part {
        let [name, value] = [name, value].map(String::from_utf8_lossy);
        Part { number, name: format!("attribute {name}={value}").into() }
    }
}

/// There is no room for the next bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// The function of Apache that writes such bytes.
    pub function: &'static str,
    /// Bytes before them.
    pub len: usize,
}

impl Full {
    /// The bytes belong to this part.
    pub fn at(self, part: Part) -> AjpOverflow {
        AjpOverflow { part, full: self }
    }
}

/// The request does not fit into a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ajp_marshal_into_msgb: Error appending {}", part.name)]
pub struct AjpOverflow {
    part: Part,
    full: Full,
}

impl AjpOverflow {
    /// Apache's number of the message.
    pub fn log_number(&self) -> u32 {
        self.part.number
    }

    /// Apache's first message (`AH03229`): which of its functions found no room.
    pub fn room(&self) -> String {
        let Full { function, len } = self.full;
        format!("{function}(): BufferOverflowException {} {len}", super::HEADER_BYTES)
    }

    /// Whether Apache takes it for a fault of the client: a few parts are none.
    pub fn is_of_client(&self) -> bool {
        [Part::BEGINNING, Part::SECRET, Part::KEY_SIZE].iter().all(|part| *part != self.part)
    }
}
