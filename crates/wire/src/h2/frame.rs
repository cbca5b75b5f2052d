//! Frames (RFC 9113 section 4): their heads, and those that this end sends.

use super::{Code, StreamId};

/// The bytes that a client sends first.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's head in bytes.
pub const HEAD_BYTES: usize = 9;

/// The largest payload that this end accepts, and sends, in bytes: the protocol's default.
pub const PAYLOAD_BYTES: usize = 16 * 1024;

/// Types of frames.
pub(super) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    /// RFC 9218 section 7.1.
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of frames.
pub(super) mod flag {
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 0x20;
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: StreamId,
}

impl Head {
    /// The head at the beginning of `input`; `None` if it is not complete.
    pub fn parse(input: &[u8]) -> Option<Head> {
        let [a, b, c, kind, flags, stream @ ..] = *input.first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        // The first bit is reserved.
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Some(Head { length, kind, flags, stream })
    }

    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends the head.
    pub fn write(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }
}

/// Appends a frame.
pub(super) fn write(kind: u8, flags: u8, stream: StreamId, payload: &[u8], out: &mut Vec<u8>) {
    Head { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// Appends RST_STREAM.
pub(super) fn write_reset(stream: StreamId, code: Code, out: &mut Vec<u8>) {
    write(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

/// Appends WINDOW_UPDATE.
pub(super) fn write_window(stream: StreamId, bytes: u32, out: &mut Vec<u8>) {
    write(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes(), out);
}

/// Appends GOAWAY; `last` is the last stream that is processed.
pub(super) fn write_goaway(last: StreamId, code: Code, why: &str, out: &mut Vec<u8>) {
    let payload = [&last.to_be_bytes(), &code.0.to_be_bytes(), why.as_bytes()].concat();
    write(kind::GOAWAY, 0, 0, &payload, out);
}

/// The payload without its padding; `None` if the padding is longer than the payload.
pub(super) fn without_padding(head: Head, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(flag::PADDED) {
        return Some(payload);
    }
    let (padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(*padding))?)
}

/// A number of 32 bits at the beginning of `payload`.
pub(super) fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
