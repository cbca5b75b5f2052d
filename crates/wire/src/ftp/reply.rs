//! Replies of a control connection. Source: `ftp_getrc_msg`, `ap_proxy_string_read`.

/// Of a longer line the rest is left out, bytes (`MAX_LINE_LEN`, without the end).
const LINE_BYTES: usize = 79;
/// The most that is kept of a reply's text, bytes (`HUGE_STRING_LEN`, without the end).
const TEXT_BYTES: usize = 8191;
/// The longest reply, bytes. Apache has no such limit.
const REPLY_BYTES: usize = 1 << 20;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Three digits.
    pub code: u16,
    /// What follows the digits in the first line.
    pub text: Vec<u8>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyFault {
    /// A first line that does not begin with three digits and a space or a hyphen.
    Malformed {
        /// Bytes that were used: it and those before.
        consumed: usize,
        /// The line, with its end.
        line: Vec<u8>,
    },
    /// More than a mebibyte.
    TooLong,
}

/// How far a reply has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyProgress {
    /// More bytes are needed.
    NeedMore {
        /// Bytes that were used.
        consumed: usize,
    },
    /// All of it.
    Done {
        /// Bytes that were used.
        consumed: usize,
        /// The reply.
        reply: Reply,
    },
}

/// Reads a reply: one line, or several up to one that begins with the same digits and a space.
#[derive(Debug, Default)]
pub struct ReplyParser {
    /// The digits and the space with which the last line begins, once the first has been read.
    last: Option<[u8; 4]>,
    text: Vec<u8>,
    bytes: usize,
}

impl ReplyParser {
    /// Reads the lines in `input`.
    ///
    /// # Errors
    /// Why it is no reply.
    pub fn parse(&mut self, input: &[u8]) -> Result<ReplyProgress, ReplyFault> {
        let mut consumed = 0;
        loop {
            let rest = input.get(consumed..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                return match self.bytes + rest.len() > REPLY_BYTES {
                    true => Err(ReplyFault::TooLong),
                    false => Ok(ReplyProgress::NeedMore { consumed }),
                };
            };
            let line = rest.get(..=end).unwrap_or_default();
            consumed += line.len();
            self.bytes += line.len();
            if self.bytes > REPLY_BYTES {
                return Err(ReplyFault::TooLong);
            }
            let line = line.get(..LINE_BYTES).unwrap_or(line);
            let malformed = || ReplyFault::Malformed { consumed, line: line.to_vec() };
            if let Some(code) = self.line(line).map_err(|()| malformed())? {
                let text = first_line(std::mem::take(&mut self.text));
                *self = ReplyParser::default();
                return Ok(ReplyProgress::Done { consumed, reply: Reply { code, text } });
            }
        }
    }

    /// Reads a line; returns the code if it is the last one.
    fn line(&mut self, line: &[u8]) -> Result<Option<u16>, ()> {
        let Some(last) = self.last else { return self.first(line) };
        let skipped = if line.first() == Some(&b' ') { 1 } else { 4 };
        self.append(line.get(skipped..).unwrap_or_default());
        Ok(line.starts_with(&last).then(|| code(last)))
    }

    fn first(&mut self, line: &[u8]) -> Result<Option<u16>, ()> {
        let (&[a, b, c, mark], text) = line.split_first_chunk().ok_or(())?;
        if ![a, b, c].iter().all(u8::is_ascii_digit) || !matches!(mark, b' ' | b'-') {
            return Err(());
        }
        let last = [a, b, c, b' '];
        self.append(text);
        self.last = Some(last);
        Ok((mark == b' ').then(|| code(last)))
    }

    fn append(&mut self, text: &[u8]) {
        let room = TEXT_BYTES.saturating_sub(self.text.len());
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        self.text.extend_from_slice(text.get(..end.min(room)).unwrap_or_default());
    }
}

/// The number of three digits.
fn code([a, b, c, _]: [u8; 4]) -> u16 {
    [a, b, c].iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'))
}

/// The text up to its first CR, or without any to its first LF.
fn first_line(mut text: Vec<u8>) -> Vec<u8> {
    let at = |end: u8| text.iter().position(|byte| *byte == end);
    let end = at(b'\r').or_else(|| at(b'\n')).unwrap_or(text.len());
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(input: &[u8]) -> Result<ReplyProgress, ReplyFault> {
        ReplyParser::default().parse(input)
    }

    fn done(input: &[u8]) -> (usize, u16, String) {
        match parse(input) {
            Ok(ReplyProgress::Done { consumed, reply }) => {
                (consumed, reply.code, String::from_utf8(reply.text).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replies_have_a_code_and_a_text() {
        assert_eq!(done(b"220 ready\r\nmore"), (11, 220, "ready".into()));
        assert_eq!(done(b"220-a\r\n b\r\n221 c\r\n220 d\r\n"), (25, 220, "a".into()));
        assert_eq!(done(b"220-a\n220 b\r\n"), (13, 220, "a\nb".into()));
        assert_eq!(done(b"220 a\nx").2, "a");
        let long = [&b"500 "[..], &[b'x'; 200], b"\r\n"].concat();
        assert_eq!(done(&long).2.len(), LINE_BYTES - 4);
    }

    #[test]
    fn others_are_none() {
        for line in ["22\r\n", "220\r\n", "hello there\r\n", "2 20 x\r\n", "\n"] {
            let (consumed, text) = (line.len(), line.into());
            let why = ReplyFault::Malformed { consumed, line: text };
            assert_eq!(parse(line.as_bytes()), Err(why), "{line}");
        }
        assert_eq!(parse(b"220-a\r\n220"), Ok(ReplyProgress::NeedMore { consumed: 7 }));
        let lines = b"220-\n".repeat(REPLY_BYTES / 5 + 1);
        assert_eq!(parse(&lines), Err(ReplyFault::TooLong));
        assert_eq!(parse(&vec![b'2'; REPLY_BYTES + 1]), Err(ReplyFault::TooLong));
    }
}
