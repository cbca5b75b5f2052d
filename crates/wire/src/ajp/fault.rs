//! Why a response can't be read, in Apache's words.

use super::HEADER_BYTES;
use crate::status::Status;

/// Where a packet ends too early: the position in it that is read from, and its length, both with
/// the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position.
    pub at: usize,
    /// The length.
    pub len: usize,
}

/// Why a response can't be read. The connection can't be used after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AjpFault {
    /// The connection ended before a packet, or within its header.
    NoHeader,
    /// The connection ended within a packet.
    Incomplete,
    /// Neither `AB` nor 0x1234.
    Signature(u8, u8),
    /// The packet is longer than it may be.
    TooBig {
        /// Its length.
        len: usize,
        /// Most bytes of content.
        most: usize,
    },
    /// A packet without content.
    Empty,
    /// A head without a status.
    NoStatus(Cut),
    /// A head without the number of its fields.
    NoCount(Cut),
    /// The code of a field is unknown.
    Code(u16),
    /// The name of a field is missing, or longer than the packet.
    Name(NoText),
    /// The value of a field is missing, or longer than the packet.
    Value(NoText),
    /// A part of the body without its length.
    NoLength(Cut),
    /// A part of the body without the byte behind it.
    TooSmall,
    /// A part of the body has another length than its packet.
    ChunkLength {
        /// The length it gives.
        len: u16,
        /// The length that fits.
        room: usize,
    },
    /// A kind of packet that is unknown, or not allowed there.
    Unexpected(u8),
}

/// Why there is no text in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoText {
    /// Where it would begin.
    pub cut: Cut,
    /// Whether its length is there.
    pub has_length: bool,
}

/// A line of the error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Apache's message number.
    pub number: u32,
    /// Whether it names the client. The other lines are the server's.
    pub is_of_request: bool,
    /// The message.
    pub text: String,
}

fn of_server(number: u32, text: impl Into<String>) -> LogLine {
    LogLine { number, is_of_request: false, text: text.into() }
}

fn of_request(number: u32, text: impl Into<String>) -> LogLine {
    LogLine { number, is_of_request: true, text: text.into() }
}

fn overflow(function: &str, Cut { at, len }: Cut) -> LogLine {
    of_server(3229, format!("{function}(): BufferOverflowException {at} {len}"))
}

impl AjpFault {
    /// The status of the response to the client, if nothing of it was sent.
    pub const fn status(self) -> Status {
        500
    }

    /// Whether there was no packet with a kind.
    pub const fn is_before_kind(self) -> bool {
        matches!(
            self,
            AjpFault::NoHeader
                | AjpFault::Incomplete
                | AjpFault::Signature(..)
                | AjpFault::TooBig { .. }
                | AjpFault::Empty
        )
    }

    /// What Apache logs when it receives the packet, before what it makes of that.
    pub fn received_lines(self) -> Vec<LogLine> {
        const BAD_HEADER: &str = "ajp_ilink_receive() received bad header";
        match self {
            AjpFault::NoHeader => {
                vec![of_server(1030, "ajp_ilink_receive() can't receive header")]
            }
            AjpFault::Incomplete => {
                // Apache shows the length of the header.
                let what = "ajp_ilink_receive() error while receiving message body of length";
                vec![of_server(1032, format!("{what} {HEADER_BYTES}"))]
            }
            AjpFault::Signature(first, second) => {
                let what = "ajp_msg_check_header() got bad signature";
                let signature = of_server(1080, format!("{what} {first:02x}{second:02x}"));
                vec![signature, of_server(1031, BAD_HEADER)]
            }
            AjpFault::TooBig { len, most } => {
                let what = "ajp_msg_check_header() incoming message is too big";
                let size = of_server(1081, format!("{what} {len}, max is {most}"));
                vec![size, of_server(1031, BAD_HEADER)]
            }
            _ => Vec::new(),
        }
    }

    /// What Apache logs of a packet that it has received, or could not.
    pub fn lines(self) -> Vec<LogLine> {
        let number = |cut| overflow("ajp_msg_get_uint16", cut);
        match self {
            AjpFault::NoHeader
            | AjpFault::Incomplete
            | AjpFault::Signature(..)
            | AjpFault::TooBig { .. } => {
                let mut lines = self.received_lines();
                lines.push(of_request(992, "ajp_read_header: ajp_ilink_receive failed"));
                lines
            }
            AjpFault::Empty => {
                let cut = Cut { at: HEADER_BYTES, len: HEADER_BYTES };
                let text = "ajp_read_header: ajp_msg_peek_uint8 failed";
                vec![overflow("ajp_msg_peek_uint8", cut), of_request(993, text)]
            }
            AjpFault::NoStatus(cut) => {
                vec![number(cut), of_request(983, "ajp_unmarshal_response: Null status")]
            }
            AjpFault::NoCount(cut) => {
                let text = "ajp_unmarshal_response: Bad number of headers";
                vec![number(cut), of_request(10405, text)]
            }
            AjpFault::Code(code) => {
                vec![of_request(984, format!("ajp_unmarshal_response: No such sc ({code:08x})"))]
            }
            // It may be a code.
            AjpFault::Name(NoText { cut, has_length: false }) => {
                vec![overflow("ajp_msg_peek_uint16", cut)]
            }
            AjpFault::Name(no) => no.lines(985, "ajp_unmarshal_response: Null header name"),
            AjpFault::Value(no) => no.lines(986, "ajp_unmarshal_response: Null header value"),
            AjpFault::NoLength(cut) => vec![number(cut)],
            AjpFault::TooSmall => vec![of_request(10546, "ajp_parse_data: Message too small")],
            AjpFault::ChunkLength { len, room } => {
                let what = "ajp_parse_data: Wrong chunk length.";
                let lengths = format!("Length of chunk is {len}, expected length is {room}.");
                vec![of_request(998, format!("{what} {lengths}"))]
            }
            AjpFault::Unexpected(_) => Vec::new(),
        }
    }
}

impl NoText {
    fn lines(self, number: u32, text: &str) -> Vec<LogLine> {
        let mut lines = Vec::new();
        if !self.has_length {
            lines.push(overflow("ajp_msg_get_uint16", self.cut));
        }
        lines.push(overflow("ajp_msg_get_string", self.cut));
        lines.push(of_request(number, text));
        lines
    }
}
