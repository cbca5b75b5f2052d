//! What a loop and a Python worker send each other about a request (WSGI).
//!
//! The worker gets a head, [`write_head`], and then the pieces of the body, [`piece_header`]. It
//! answers with frames: a byte for the kind, four for the length, and the content. A worker runs an
//! application, so that its frames are taken as those of a hostile peer: each length, each order
//! and each field is checked.

use bstr::ByteSlice;

/// The bytes before a frame's content.
pub const FRAME_HEADER_BYTES: usize = 5;

/// The longest line of a log.
pub const LOG_BYTES: usize = 64 << 10;

/// The most data in one frame.
pub const DATA_BYTES: usize = 1 << 20;

/// The longest head of a request. A request's fields are limited to less by default.
pub const REQUEST_HEAD_BYTES: usize = 4 << 20;

/// Why a request can't be written, or a worker's frames can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WsgiFault {
    /// The head of the request exceeds [`REQUEST_HEAD_BYTES`].
    #[error("head of the request exceeds {REQUEST_HEAD_BYTES} bytes")]
    RequestTooLarge,
    /// A frame of an unknown kind, or one that can't come now.
    #[error("unexpected frame of kind {0}")]
    Unexpected(u8),
    /// The head of the response exceeds the buffer.
    #[error("response headers are too long")]
    HeadTooLarge,
    /// A frame exceeds its limit.
    #[error("frame of {0} bytes")]
    TooLarge(usize),
    /// The status line is no three digits and a text.
    #[error("invalid status line")]
    Status,
    /// A field is none.
    #[error("malformed header")]
    Field,
    /// The frames end before the end of the response.
    #[error("end before the end of the response")]
    Truncated,
}

/// Appends the head of a request: texts, and names and values, separated by NUL. What follows a NUL
/// in one of them is cut off.
///
/// # Errors
/// [`WsgiFault::RequestTooLarge`]
pub fn write_head<'a>(
    out: &mut Vec<u8>,
    texts: &[&'a [u8]],
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), WsgiFault> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    texts.iter().for_each(|text| put_text(out, text));
    for (name, value) in pairs {
        put_text(out, name);
        put_text(out, value);
    }
    // The last one has none behind it.
    out.pop();
    if out.len() - start > REQUEST_HEAD_BYTES {
        return Err(WsgiFault::RequestTooLarge);
    }
    let length = out.len().saturating_sub(start + 4);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    }
    Ok(())
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let end = text.find_byte(0).unwrap_or(text.len());
    out.extend_from_slice(text.get(..end).unwrap_or_default());
    out.push(0);
}

/// What precedes a piece of the body; a length of zero is its end.
pub fn piece_header(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

/// What a worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The input ends before the next event.
    NeedMore {
        /// Bytes to drop.
        consumed: usize,
    },
    /// The head of the response ends at `consumed` and has `len` bytes.
    Head {
        /// Bytes to drop.
        consumed: usize,
        /// Its length.
        len: usize,
    },
    /// A piece of the response's body.
    Data {
        /// Bytes to drop.
        consumed: usize,
        /// Its length.
        len: usize,
    },
    /// A line for the error log.
    Log {
        /// Bytes to drop.
        consumed: usize,
        /// Its length; the first byte is the level.
        len: usize,
    },
    /// The application reads the body of the request.
    Wanted {
        /// Bytes to drop.
        consumed: usize,
    },
    /// The answer to a question that is not about a response, such as whether a password is right.
    Answer {
        /// Bytes to drop.
        consumed: usize,
        /// Its length.
        len: usize,
    },
    /// The application has failed: the status of the response if there is none yet.
    Failed {
        /// Bytes to drop.
        consumed: usize,
        /// The status.
        status: u16,
    },
    /// The worker is about to end, and has not begun with the request.
    Retry {
        /// Bytes to drop.
        consumed: usize,
    },
    /// The response is complete.
    End {
        /// Bytes to drop.
        consumed: usize,
    },
}

/// Reads a worker's frames.
#[derive(Debug)]
pub struct FrameDecoder {
    head_bytes_max: usize,
    has_head: bool,
    /// Whether anything but log lines has come.
    has_begun: bool,
    is_over: bool,
    /// Whether the body of the request is wanted.
    wants_body: bool,
    /// What is left of a frame of data.
    data_left: usize,
}

impl FrameDecoder {
    /// A decoder that refuses heads of more bytes.
    pub fn new(head_bytes_max: usize) -> FrameDecoder {
        FrameDecoder {
            head_bytes_max,
            has_head: false,
            has_begun: false,
            is_over: false,
            wants_body: false,
            data_left: 0,
        }
    }

    /// Whether the response has begun.
    pub fn has_head(&self) -> bool {
        self.has_head
    }

    /// Decodes the next event.
    ///
    /// # Errors
    /// The worker does not keep to the protocol; nothing more can be decoded.
    pub fn decode(&mut self, input: &[u8]) -> Result<Event, WsgiFault> {
        if self.data_left > 0 {
            return Ok(self.data(0, input.len()));
        }
        let Some((header, rest)) = input.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(Event::NeedMore { consumed: 0 });
        };
        let [kind, length @ ..] = *header;
        let len = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if self.is_over {
            return Err(WsgiFault::Unexpected(kind));
        }
        let limit = match kind {
            b'H' if !self.has_head && len > self.head_bytes_max => {
                return Err(WsgiFault::HeadTooLarge);
            }
            b'H' if !self.has_head => self.head_bytes_max,
            // An empty one would be no event.
            b'D' if self.has_head && len > 0 => DATA_BYTES,
            b'L' => LOG_BYTES,
            b'G' if !self.wants_body => 0,
            b'A' if !self.has_begun => LOG_BYTES,
            b'F' => 2,
            b'R' if !self.has_begun => 0,
            b'E' if self.has_head => 0,
            kind => return Err(WsgiFault::Unexpected(kind)),
        };
        if len > limit {
            return Err(WsgiFault::TooLarge(len));
        }
        if kind == b'D' {
            self.data_left = len;
            return Ok(self.data(FRAME_HEADER_BYTES, rest.len()));
        }
        let Some(content) = rest.get(..len) else { return Ok(Event::NeedMore { consumed: 0 }) };
        self.whole(kind, content)
    }

    fn data(&mut self, before: usize, available: usize) -> Event {
        let len = self.data_left.min(available);
        self.data_left -= len;
        match len {
            0 => Event::NeedMore { consumed: before },
            len => Event::Data { consumed: before + len, len },
        }
    }

    /// A frame whose content is there.
    fn whole(&mut self, kind: u8, content: &[u8]) -> Result<Event, WsgiFault> {
        let len = content.len();
        let consumed = FRAME_HEADER_BYTES + len;
        self.has_begun |= kind != b'L';
        Ok(match kind {
            b'H' => {
                self.has_head = true;
                Event::Head { consumed, len }
            }
            b'L' if len == 0 => return Err(WsgiFault::TooLarge(0)),
            b'L' => Event::Log { consumed, len },
            b'G' => {
                self.wants_body = true;
                Event::Wanted { consumed }
            }
            b'A' => {
                self.is_over = true;
                Event::Answer { consumed, len }
            }
            b'F' => {
                self.is_over = true;
                let status = content.try_into().map(u16::from_le_bytes).unwrap_or(0);
                let status = if (400..600).contains(&status) { status } else { 500 };
                Event::Failed { consumed, status }
            }
            b'R' => {
                self.is_over = true;
                Event::Retry { consumed }
            }
            _ => {
                self.is_over = true;
                Event::End { consumed }
            }
        })
    }
}

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseHead<'h> {
    /// The status.
    pub status: u16,
    /// The status and its reason.
    pub status_line: &'h [u8],
    /// Names and values.
    pub fields: Vec<(&'h [u8], &'h [u8])>,
}

impl<'h> ResponseHead<'h> {
    /// Parses the content of a head: the status line, then names and values, separated by NUL.
    ///
    /// # Errors
    /// What is no status line or no field.
    pub fn parse(content: &'h [u8]) -> Result<ResponseHead<'h>, WsgiFault> {
        let mut parts = content.split(|byte| *byte == 0);
        let status_line = parts.next().unwrap_or_default();
        let (digits, reason) = status_line.split_at_checked(3).ok_or(WsgiFault::Status)?;
        let is_line = digits.iter().all(u8::is_ascii_digit)
            && matches!(reason.first(), None | Some(b' '))
            && reason.iter().all(|byte| !byte.is_ascii_control());
        if !is_line {
            return Err(WsgiFault::Status);
        }
        let status = digits.iter().fold(0, |all: u16, digit| all * 10 + u16::from(digit - b'0'));
        if status < 200 {
            return Err(WsgiFault::Status);
        }
        let mut fields = Vec::new();
        while let Some(name) = parts.next() {
            let value = parts.next().ok_or(WsgiFault::Field)?;
            // The server itself refuses and logs other names that are not tokens.
            let is_part = |byte: &u8| !matches!(byte, b'\r' | b'\n' | b':' | b' ' | b'\t');
            let is_field = !name.is_empty()
                && name.iter().all(is_part)
                && !value.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
            if !is_field {
                return Err(WsgiFault::Field);
            }
            fields.push((name, value));
        }
        Ok(ResponseHead { status, status_line, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&[kind], &length[..], content].concat()
    }

    /// The kinds of events and their contents, read in pieces of `step` bytes.
    fn read(bytes: &[u8], step: usize) -> (Vec<u8>, Result<(), WsgiFault>) {
        let mut decoder = FrameDecoder::new(100);
        let (mut at, mut end, mut seen) = (0, 0, Vec::new());
        loop {
            let event = match decoder.decode(&bytes[at..end]) {
                Ok(event) => event,
                Err(fault) => return (seen, Err(fault)),
            };
            let (kind, consumed, len): (&[u8], usize, usize) = match event {
                Event::NeedMore { .. } if end == bytes.len() => return (seen, Ok(())),
                Event::NeedMore { consumed } => {
                    at += consumed;
                    end = bytes.len().min(end.saturating_add(step));
                    continue;
                }
                Event::Head { consumed, len } => (b"H", consumed, len),
                Event::Data { consumed, len } => (b"", consumed, len),
                Event::Log { consumed, len } => (b"L", consumed, len),
                Event::Wanted { consumed } => (b"G", consumed, 0),
                Event::Answer { consumed, len } => (b"A", consumed, len),
                Event::Failed { consumed, .. } => (b"F", consumed, 0),
                Event::Retry { consumed } => (b"R", consumed, 0),
                Event::End { consumed } => (b"E", consumed, 0),
            };
            at += consumed;
            seen.extend_from_slice(kind);
            seen.extend_from_slice(&bytes[at - len..at]);
        }
    }

    #[test]
    fn a_response_is_read_in_any_pieces() {
        let frames = [
            frame(b'L', b"3line"),
            frame(b'G', b""),
            frame(b'H', b"200 OK\0A\0b"),
            frame(b'D', b"one"),
            frame(b'D', b"two"),
            frame(b'E', b""),
        ]
        .concat();
        let expected = b"L3lineGH200 OK\0A\0bonetwoE".to_vec();
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(read(&frames, step), (expected.clone(), Ok(())), "{step}");
        }
    }

    #[test]
    fn frames_out_of_order_and_too_long_ones_are_refused() {
        let head = frame(b'H', b"200 OK");
        for (frames, fault) in [
            (frame(b'D', b"x"), WsgiFault::Unexpected(b'D')),
            (frame(b'E', b""), WsgiFault::Unexpected(b'E')),
            (frame(b'?', b""), WsgiFault::Unexpected(b'?')),
            ([head.clone(), head.clone()].concat(), WsgiFault::Unexpected(b'H')),
            ([head.clone(), frame(b'D', b"")].concat(), WsgiFault::Unexpected(b'D')),
            ([head.clone(), frame(b'R', b"")].concat(), WsgiFault::Unexpected(b'R')),
            (frame(b'H', &[b'x'; 101]), WsgiFault::HeadTooLarge),
            (frame(b'F', b"123"), WsgiFault::TooLarge(3)),
            ([frame(b'R', b""), frame(b'L', b"3")].concat(), WsgiFault::Unexpected(b'L')),
            ([&head[..], b"D\xff\xff\xff\xff"].concat(), WsgiFault::TooLarge(0xffff_ffff)),
        ] {
            assert_eq!(read(&frames, 1000).1, Err(fault));
        }
    }

    #[test]
    fn heads_are_checked() {
        let head = ResponseHead::parse(b"404 Not Found\0A\0b\0C\0").unwrap();
        assert_eq!((head.status, head.fields.len()), (404, 2));
        assert_eq!(ResponseHead::parse(b"200").unwrap().status, 200);
        for bad in ["", "20", "abc", "2000", "100 Continue", "200\rX", "200 a\x07"] {
            assert_eq!(ResponseHead::parse(bad.as_bytes()), Err(WsgiFault::Status), "{bad:?}");
        }
        for bad in ["200 OK\0A", "200 OK\0\0b", "200 OK\0a b\0c", "200 OK\0A\0b\r\nC: d"] {
            assert_eq!(ResponseHead::parse(bad.as_bytes()), Err(WsgiFault::Field), "{bad:?}");
        }
    }

    #[test]
    fn a_head_has_its_length_first_and_no_nul_inside() {
        let mut out = Vec::new();
        write_head(&mut out, &[b"a", b"b\0c"], std::iter::empty()).unwrap();
        assert_eq!(out.split_off(4), b"a\0b");
        out.clear();
        let pairs = [(&b"b\0c"[..], &b""[..])];
        write_head(&mut out, &[b"a"], pairs.into_iter()).unwrap();
        assert_eq!(out, b"\x04\0\0\0a\0b\0");
        let long = vec![b'x'; REQUEST_HEAD_BYTES];
        let fault = write_head(&mut Vec::new(), &[&long], std::iter::empty());
        assert_eq!(fault, Err(WsgiFault::RequestTooLarge));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(bytes: Vec<u8>, step in 1usize..9) {
            prop_assert_eq!(read(&bytes, step), read(&bytes, usize::MAX));
            let _ = ResponseHead::parse(&bytes);
        }
    }
}
