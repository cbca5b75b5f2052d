//! Packets of a response.

use super::codes::{is_code, response_field};
use super::{HEADER_BYTES, PACKET_BYTES_MAX};
use crate::status::Status;

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

/// Why a response can't be read. The connection can't be used after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AjpFault {
    /// The connection ended before a packet, or within its header.
    #[error("ajp_ilink_receive() can't receive header")]
    NoHeader,
    /// The connection ended within a packet.
    #[error("ajp_ilink_receive() error while receiving")]
    Incomplete,
    /// Neither `AB` nor 0x1234.
    #[error("ajp_msg_check_header() got bad signature {0:02x}{1:02x}")]
    Signature(u8, u8),
    /// The packet is longer than it may be.
    #[error("ajp_msg_check_header() incoming message is too big {len}, max is {most}")]
    TooBig {
        /// Its length.
        len: usize,
        /// Most bytes of content.
        most: usize,
    },
    /// A packet without content.
    #[error("ajp_read_header: ajp_msg_peek_uint8 failed")]
    Empty,
    /// A head without a status.
    #[error("ajp_unmarshal_response: Null status")]
    NoStatus,
    /// A head without the number of its fields.
    #[error("ajp_unmarshal_response: Bad number of headers")]
    NoCount,
    /// The code of a field is unknown.
    #[error("ajp_unmarshal_response: No such sc ({0:08x})")]
    Code(u16),
    /// The name of a field is missing, or longer than the packet.
    #[error("ajp_unmarshal_response: Null header name")]
    Name,
    /// The value of a field is missing, or longer than the packet.
    #[error("ajp_unmarshal_response: Null header value")]
    Value,
    /// A part of the body has another length than its packet.
    #[error(
        "ajp_parse_data: Wrong chunk length. Length of chunk is {len}, expected length is {room}."
    )]
    ChunkLength {
        /// The length it gives.
        len: u16,
        /// The length that fits.
        room: usize,
    },
    /// A kind of packet that is unknown, or not allowed there.
    #[error("dialog failed: unexpected packet {0}")]
    Unexpected(u8),
}

impl AjpFault {
    /// The status of the response to the client, if nothing of it was sent.
    pub const fn status(self) -> Status {
        500
    }

    /// Apache's message number.
    pub const fn log_number(self) -> u32 {
        match self {
            AjpFault::NoHeader => 1030,
            AjpFault::Incomplete => 1032,
            AjpFault::Signature(..) => 1080,
            AjpFault::TooBig { .. } => 1081,
            AjpFault::Empty => 993,
            AjpFault::NoStatus => 983,
            AjpFault::NoCount => 10405,
            AjpFault::Code(_) => 984,
            AjpFault::Name => 985,
            AjpFault::Value => 986,
            AjpFault::ChunkLength { .. } => 998,
            AjpFault::Unexpected(_) => 893,
        }
    }
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
    pub const fn end_of_input(&self, left: &[u8]) -> AjpFault {
        if left.len() < HEADER_BYTES { AjpFault::NoHeader } else { AjpFault::Incomplete }
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
            // Before the head, Apache takes it for one, and sends bytes of another packet.
            (State::Body, SEND_BODY_CHUNK) => {
                Ok(AjpEvent::Body { consumed, bytes: body(content)? })
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
    let (len, rest) =
        content.split_first_chunk().ok_or(AjpFault::ChunkLength { len: 0, room: 0 })?;
    let len = u16::from_be_bytes(*len);
    let room = rest.len().saturating_sub(1);
    if usize::from(len) != room || rest.is_empty() {
        return Err(AjpFault::ChunkLength { len, room });
    }
    Ok(rest.get(..room).unwrap_or_default())
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
        let mut rest = content;
        let status = number(&mut rest).ok_or(AjpFault::NoStatus)?;
        // If it is not one, its length alone is skipped.
        let message = string(&mut rest);
        let count = number(&mut rest).ok_or(AjpFault::NoCount)?;
        let fields = rest;
        for _ in 0..count {
            field(&mut rest)?;
        }
        Ok(SendHeaders { status, message, count, fields })
    }

    /// The fields: names and values, not checked for their bytes.
    pub fn fields(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        let mut rest = self.fields;
        (0..self.count).map_while(move |_| field(&mut rest).ok())
    }
}

fn field<'b>(rest: &mut &'b [u8]) -> Result<(&'b [u8], &'b [u8]), AjpFault> {
    let mut after = *rest;
    let code = number(&mut after).ok_or(AjpFault::Name)?;
    let name = if is_code(code) {
        *rest = after;
        response_field(code).ok_or(AjpFault::Code(code))?.as_bytes()
    } else {
        string(rest).ok_or(AjpFault::Name)?
    };
    Ok((name, string(rest).ok_or(AjpFault::Value)?))
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u16::from_be_bytes(*number))
}

/// A string up to its first NUL, which is at its end at the latest. If there is none, its length
/// alone is skipped.
fn string<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = usize::from(number(rest)?);
    if len == 0xffff || rest.get(len) != Some(&0) {
        return None;
    }
    let (text, after) = rest.split_at_checked(len)?;
    *rest = after.get(1..).unwrap_or_default();
    text.split(|byte| *byte == 0).next()
}
