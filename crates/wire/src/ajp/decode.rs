//! Packets of a response.

use super::codes::{is_code, response_field};
use super::fault::{AjpFault, Cut, NoText};
use super::{HEADER_BYTES, PACKET_BYTES_MAX};

const SEND_BODY_CHUNK: u8 = 3;
const SEND_HEADERS: u8 = 4;
const END_RESPONSE: u8 = 5;
const GET_BODY_CHUNK: u8 = 6;
const CPONG: u8 = 9;

/// The result of one decoding step, which consumes the `consumed` first bytes of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AjpEvent<'b> {
    /// The packet is incomplete: read more, and call again with the longer buffer.
    NeedMore,
    /// The head of the response.
    Headers {
        /// Bytes consumed.
        consumed: usize,
        /// Status and fields.
        headers: SendHeaders<'b>,
    },
    /// A part of the body. Without bytes it asks to flush what was sent before.
    Body {
        /// Bytes consumed.
        consumed: usize,
        /// The bytes.
        bytes: &'b [u8],
    },
    /// The container asks for the next packet of the request's body.
    GetBody {
        /// Bytes consumed.
        consumed: usize,
        /// Most bytes that it wants; Apache sends as many as fit into a packet.
        most: Option<u16>,
    },
    /// The response is complete. Without a head before, Apache answers 200 and no body.
    End {
        /// Bytes consumed. Bytes after them make the connection useless.
        consumed: usize,
        /// Whether the connection can be used again.
        reuse: bool,
    },
    /// The answer to `CPING`.
    Pong {
        /// Bytes consumed.
        consumed: usize,
    },
}

/// Which packet may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `CPING` was sent.
    Ping,
    /// A request was sent.
    Head,
    /// The head was seen.
    Body,
    Done,
}

/// Decodes the packets of one response after the other. A packet is decoded once it is complete;
/// the buffer has to hold it, and contents are not copied.
#[derive(Clone, Debug)]
pub struct PacketDecoder {
    state: State,
    packet_bytes: usize,
}

impl PacketDecoder {
    /// A decoder of packets of at most `packet_bytes`, with their header.
    pub fn new(packet_bytes: usize) -> Self {
        let packet_bytes = packet_bytes.clamp(HEADER_BYTES + 1, PACKET_BYTES_MAX);
        PacketDecoder { state: State::Head, packet_bytes }
    }

    /// `CPING` was sent: nothing but its answer is expected.
    pub fn expect_pong(&mut self) {
        self.state = State::Ping;
    }

    /// A request was sent: its response is expected.
    pub fn expect_response(&mut self) {
        self.state = State::Head;
    }

    /// Decodes the packet at the beginning of `buf`. Past the end of a response it decodes nothing.
    pub fn decode<'b>(&mut self, buf: &'b [u8]) -> Result<AjpEvent<'b>, AjpFault> {
        let Some((header, rest)) = buf.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(AjpEvent::NeedMore);
        };
        let [first, second, high, low] = *header;
        if !matches!((first, second), (b'A', b'B') | (0x12, 0x34)) {
            return Err(AjpFault::Signature(first, second));
        }
        let (len, most) =
            (usize::from(u16::from_be_bytes([high, low])), self.packet_bytes - HEADER_BYTES);
        if len > most {
            return Err(AjpFault::TooBig { len, most });
        }
        let Some(content) = rest.get(..len) else { return Ok(AjpEvent::NeedMore) };
        let (kind, content) = content.split_first().ok_or(AjpFault::Empty)?;
        self.take(*kind, content, HEADER_BYTES + len)
    }

    /// The connection has ended; `left` are the bytes that were not consumed.
    pub fn end_of_input(&self, left: &[u8]) -> AjpFault {
        match left.get(..HEADER_BYTES) {
            Some(_) => AjpFault::Incomplete,
            None => AjpFault::NoHeader,
        }
    }

    fn take<'b>(
        &mut self,
        kind: u8,
        content: &'b [u8],
        consumed: usize,
    ) -> Result<AjpEvent<'b>, AjpFault> {
        match (self.state, kind) {
            (State::Ping, CPONG) => Ok(AjpEvent::Pong { consumed }),
            (State::Head, SEND_HEADERS) => {
                self.state = State::Body;
                Ok(AjpEvent::Headers { consumed, headers: SendHeaders::parse(content)? })
            }
            (State::Body, SEND_BODY_CHUNK) => {
                Ok(AjpEvent::Body { consumed, bytes: body(content)? })
            }
            // Of one with a body before the head, Apache sends bytes of another packet.
            (State::Head, SEND_BODY_CHUNK) if body(content).is_ok_and(<[u8]>::is_empty) => {
                Ok(AjpEvent::Body { consumed, bytes: &[] })
            }
            (State::Head | State::Body, GET_BODY_CHUNK) => {
                let most = content.first_chunk().map(|number| u16::from_be_bytes(*number));
                Ok(AjpEvent::GetBody { consumed, most })
            }
            (State::Head | State::Body, END_RESPONSE) => {
                self.state = State::Done;
                let reuse = content.first().is_some_and(|flag| *flag != 0);
                Ok(AjpEvent::End { consumed, reuse })
            }
            _ => Err(AjpFault::Unexpected(kind)),
        }
    }
}

/// The bytes of a part of the body: a length, the bytes, and one more.
fn body(content: &[u8]) -> Result<&[u8], AjpFault> {
    let mut reader = Reader { rest: content };
    let len = reader.number().map_err(|left| AjpFault::NoLength(cut(content, left)))?;
    let room = reader.rest.len().checked_sub(1).ok_or(AjpFault::TooSmall)?;
    if usize::from(len) != room {
        return Err(AjpFault::ChunkLength { len, room });
    }
    Ok(reader.rest.get(..room).unwrap_or_default())
}

/// Where a packet with this content behind its kind is cut, if so many bytes of it are left.
fn cut(content: &[u8], left: usize) -> Cut {
    let len = HEADER_BYTES + 1 + content.len();
    Cut { at: len - left, len }
}

/// The head of a response, checked to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendHeaders<'b> {
    /// The status as sent; it may be no status at all.
    pub status: u16,
    /// The reason; `None` for the usual one.
    pub message: Option<&'b [u8]>,
    count: u16,
    fields: &'b [u8],
}

impl<'b> SendHeaders<'b> {
    /// Source: `ajp_unmarshal_response`.
    fn parse(content: &'b [u8]) -> Result<Self, AjpFault> {
        let mut reader = Reader { rest: content };
        let status = reader.number().map_err(|left| AjpFault::NoStatus(cut(content, left)))?;
        // If it is not one, its length alone is skipped.
        let message = reader.string().ok();
        let count = reader.number().map_err(|left| AjpFault::NoCount(cut(content, left)))?;
        let fields = reader.rest;
        for _ in 0..count {
            reader.field().map_err(|why| why.of(content))?;
        }
        Ok(SendHeaders { status, message, count, fields })
    }

    /// The fields: names and values, not checked for their bytes.
    pub fn fields(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        let mut reader = Reader { rest: self.fields };
        (0..self.count).map_while(move |_| reader.field().ok())
    }
}

/// A part of a head that is missing.
enum Missing {
    Code(u16),
    Name(Text),
    Value(Text),
}

impl Missing {
    /// The fault of a packet with this content behind its kind.
    fn of(self, content: &[u8]) -> AjpFault {
        let no_text =
            |text: Text| NoText { cut: cut(content, text.left), has_length: text.has_length };
        match self {
            Missing::Code(code) => AjpFault::Code(code),
            Missing::Name(text) => AjpFault::Name(no_text(text)),
            Missing::Value(text) => AjpFault::Value(no_text(text)),
        }
    }
}

/// A text that is missing: how many bytes are left there, and whether its length was before them.
struct Text {
    left: usize,
    has_length: bool,
}

/// What is left of a packet.
struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// The next number; the error is how many bytes are left instead.
    fn number(&mut self) -> Result<u16, usize> {
        let (number, after) = self.rest.split_first_chunk().ok_or(self.rest.len())?;
        self.rest = after;
        Ok(u16::from_be_bytes(*number))
    }

    /// A string up to its first NUL, which is at its end at the latest. If there is none, its
    /// length alone is skipped.
    fn string(&mut self) -> Result<&'b [u8], Text> {
        let len = self.number().map_err(|left| Text { left, has_length: false })?;
        let (len, rest) = (usize::from(len), self.rest);
        let missing = Text { left: rest.len(), has_length: true };
        if len == 0xffff || rest.get(len) != Some(&0) {
            return Err(missing);
        }
        let Some((text, after)) = rest.split_at_checked(len) else { return Err(missing) };
        self.rest = after.get(1..).unwrap_or_default();
        Ok(text.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    fn field(&mut self) -> Result<(&'b [u8], &'b [u8]), Missing> {
        let first = self.rest.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
        let name = match first {
            Some(code) if is_code(code) => {
                self.rest = self.rest.get(2..).unwrap_or_default();
                response_field(code).ok_or(Missing::Code(code))?.as_bytes()
            }
            _ => self.string().map_err(Missing::Name)?,
        };
        Ok((name, self.string().map_err(Missing::Value)?))
    }
}
