//! Chunked transfer coding (RFC 9112 section 7.1), by the rules of `ap_http_filter`.

use crate::chars::hex_value;
use crate::request::{HeadError, HeadLimits, HeadParser, Progress};
use crate::table::Table;

/// Blanks allowed between a chunk's size and the end of its line.
const BLANKS: u8 = 10;

/// The last chunk, which ends a body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// An error in a chunked body. The connection can't be used after it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// Not valid chunk syntax: 400 (`AH01590`).
    #[error("Error reading/parsing chunk")]
    Malformed,
    /// The size exceeds 63 bits, or the size line exceeds `LimitRequestFieldSize`: 413 (`AH01590`).
    #[error("Error reading/parsing chunk (overflow)")]
    TooLarge,
    /// A trailer field is invalid: 400 (`AH02656`).
    #[error("Error while reading HTTP trailer: 400{}{}", separator(.0), .0.notes)]
    Trailer(Box<HeadError>),
}

fn separator(error: &HeadError) -> &'static str {
    if error.notes.is_empty() { "" } else { ": " }
}

impl ChunkError {
    /// The status of the response.
    pub const fn status(&self) -> u16 {
        match self {
            ChunkError::TooLarge => 413,
            ChunkError::Malformed | ChunkError::Trailer(_) => 400,
        }
    }

    /// Apache's message number. The level is `info`, and the text is the error's `Display`.
    pub const fn log_number(&self) -> u32 {
        match self {
            ChunkError::Trailer(_) => 2656,
            ChunkError::Malformed | ChunkError::TooLarge => 1590,
        }
    }
}

/// The result of one decoding step, which consumes `consumed` bytes of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More input is needed: pass the bytes that were not consumed again, with more behind them.
    NeedMore {
        /// Bytes consumed.
        consumed: usize,
    },
    /// Body bytes: the last `len` of the `consumed` ones.
    Data {
        /// Bytes consumed, including the body bytes.
        consumed: usize,
        /// Number of body bytes.
        len: usize,
    },
    /// The body and its trailers have ended.
    Done {
        /// Bytes consumed.
        consumed: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    Start,
    /// Within the digits of a size.
    Size,
    /// After a blank behind the size.
    Blank,
    Extension,
    /// After the CR of a size line.
    SizeLf,
    Data,
    /// At the line end behind the data.
    DataEnd,
    DataEndLf,
    Trailers,
    Done,
}

/// Decodes one body. [`Decoder::reset`] prepares it for the next.
#[derive(Debug, Clone)]
pub struct Decoder {
    state: State,
    remaining: u64,
    blanks: u8,
    line_bytes: usize,
    strict: bool,
    limits: HeadLimits,
    fields: HeadParser,
    trailers: Table,
}

impl Decoder {
    /// Returns a decoder at the start of a body. Strict mode requires CR before every LF; the
    /// limits of header fields apply to size lines and trailers.
    pub fn new(limits: HeadLimits, strict: bool) -> Self {
        Decoder {
            state: State::Start,
            remaining: 0,
            blanks: 0,
            line_bytes: 0,
            strict,
            limits,
            fields: HeadParser::for_trailers(),
            trailers: Table::new(),
        }
    }

    /// Prepares for the next body and keeps the memory.
    pub fn reset(&mut self) {
        self.state = State::Start;
        self.remaining = 0;
        self.fields.reset_for_trailers();
        self.trailers.clear();
    }

    /// Whether the end of the body was reached. A connection that ends earlier is a 400.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The trailer fields, complete when the body is done. `MergeTrailers On` merges them into the
    /// header fields.
    pub fn trailers(&self) -> &Table {
        &self.trailers
    }

    /// Performs the next step.
    pub fn decode(&mut self, buf: &[u8]) -> Result<Step, ChunkError> {
        let mut at = 0;
        loop {
            match self.state {
                State::Done => return Ok(Step::Done { consumed: at }),
                State::Trailers => return self.decode_trailers(buf, at),
                State::Data => {
                    let here = buf.len().saturating_sub(at);
                    let len = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(here);
                    if len == 0 {
                        return Ok(Step::NeedMore { consumed: at });
                    }
                    self.remaining -= len as u64;
                    if self.remaining == 0 {
                        self.state = State::DataEnd;
                    }
                    return Ok(Step::Data { consumed: at + len, len });
                }
                _ => {}
            }
            let Some(byte) = buf.get(at) else { return Ok(Step::NeedMore { consumed: at }) };
            self.take(*byte)?;
            at += 1;
        }
    }

    fn decode_trailers(&mut self, buf: &[u8], at: usize) -> Result<Step, ChunkError> {
        let rest = buf.get(at..).unwrap_or_default();
        match self.fields.parse_trailers(&mut self.trailers, rest, &self.limits, self.strict) {
            Progress::NeedMore => Ok(Step::NeedMore { consumed: at }),
            Progress::Done { consumed } => {
                self.state = State::Done;
                Ok(Step::Done { consumed: at + consumed })
            }
            Progress::Error(error) => Err(ChunkError::Trailer(error)),
        }
    }

    /// Consumes one byte of framing.
    fn take(&mut self, byte: u8) -> Result<(), ChunkError> {
        match (self.state, byte) {
            (State::DataEnd, b'\r') => self.state = State::DataEndLf,
            (State::DataEnd, b'\n') if !self.strict => self.state = State::Start,
            (State::DataEndLf, b'\n') => self.state = State::Start,
            (State::DataEnd | State::DataEndLf, _) => return Err(ChunkError::Malformed),
            (State::Start, _) => {
                if hex_value(byte).is_none() {
                    return Err(ChunkError::Malformed);
                }
                self.remaining = 0;
                self.blanks = 0;
                self.line_bytes = 0;
                self.state = State::Size;
                self.take_of_line(byte)?;
            }
            _ => self.take_of_line(byte)?,
        }
        Ok(())
    }

    /// Consumes one byte of a size line.
    fn take_of_line(&mut self, byte: u8) -> Result<(), ChunkError> {
        self.line_bytes += 1;
        if self.line_bytes > self.limits.field_bytes {
            return Err(ChunkError::TooLarge);
        }
        match (self.state, byte) {
            (state, b'\n') if state == State::SizeLf || !self.strict => {
                self.state = if self.remaining > 0 { State::Data } else { State::Trailers };
            }
            (_, b'\n') | (State::SizeLf, _) => return Err(ChunkError::Malformed),
            (_, b'\r') => self.state = State::SizeLf,
            (_, b';') => self.state = State::Extension,
            (State::Extension, _) => {
                if byte.is_ascii_control() && byte != b'\t' {
                    return Err(ChunkError::Malformed);
                }
            }
            (_, b' ' | b'\t') => {
                self.state = State::Blank;
                self.blanks += 1;
                if self.blanks > BLANKS {
                    return Err(ChunkError::Malformed);
                }
            }
            (State::Size, _) => {
                let digit = hex_value(byte).ok_or(ChunkError::Malformed)?;
                if self.remaining >> 59 != 0 {
                    return Err(ChunkError::TooLarge);
                }
                self.remaining = self.remaining << 4 | u64::from(digit);
            }
            _ => return Err(ChunkError::Malformed),
        }
        Ok(())
    }
}

/// A chunk's size line, on the stack.
#[derive(Clone, Copy, Debug)]
pub struct SizeLine {
    bytes: [u8; 18],
    start: u8,
}

impl SizeLine {
    /// Formats the size line of a chunk of `len` bytes. `len` must not be 0, which would end the
    /// body. CR LF must follow the chunk.
    pub fn new(len: usize) -> Self {
        debug_assert!(len > 0);
        let mut bytes = [b'\n'; 18];
        let mut at = bytes.len() - 2;
        bytes[at] = b'\r';
        let mut rest = len;
        loop {
            at -= 1;
            bytes[at] = b"0123456789abcdef"[rest & 15];
            rest >>= 4;
            if rest == 0 {
                break;
            }
        }
        SizeLine { bytes, start: at as u8 }
    }

    /// The line, including its CR LF.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(usize::from(self.start)..).unwrap_or_default()
    }
}

/// Appends a whole chunk, or nothing if `data` is empty.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    out.extend_from_slice(SizeLine::new(data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
