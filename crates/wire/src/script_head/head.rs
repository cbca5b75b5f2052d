//! The fields of a program's head.

use super::{FIELDS, HEAD_BYTES, LINE_BYTES};
use crate::chars::is_space;
use crate::date;
use crate::field_lines::{is_status_line, media_type};
use crate::status::{Status, is_response, is_valid, known_line};
use crate::table::Table;
use bstr::{BString, ByteSlice};

/// Bytes of a bad line that a log line shows (`%.30s`).
const SHOWN_BYTES: usize = 30;

/// Fields about the response itself: of several, the last counts. All others are sent with errors
/// as well.
const OWN: [&[u8]; 5] =
    [b"Location", b"Content-Length", b"Content-Range", b"Transfer-Encoding", b"ETag"];

/// The head of a program's output. [`ScriptHead::clear`] keeps the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptHead {
    /// `Status`; a number that is no response's ([`is_response`]) is kept, and 0 if there is none.
    /// The client gets a 500 for it, unless [`ScriptHead::status_line`] has it.
    pub status: Option<Status>,
    /// The beginning of the last invalid `Status`, for the log.
    pub invalid_status: Option<BString>,
    /// `Status` as received, if it can be sent: three digits, a blank, and maybe a reason.
    pub status_line: Vec<u8>,
    /// `Content-Type` with small letters up to its parameters.
    pub content_type: Option<Vec<u8>>,
    /// `Last-Modified`, seconds since 1970. Apache turns a time in the future into now.
    pub last_modified: Option<i64>,
    /// The last `Last-Modified` that is no date, for the log.
    pub invalid_date: Option<BString>,
    /// `Location`, `Content-Length`, `Content-Range`, `Transfer-Encoding`, `ETag`. Apache drops the
    /// length unless `ap_trust_cgilike_cl` is set.
    pub own: Table,
    /// All other fields, to be joined by name.
    pub fields: Table,
    /// `Set-Cookie`, not to be joined.
    pub cookies: Table,
}

/// The result of [`ScriptHeadParser::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptProgress {
    /// The head is incomplete: read more, and call again with the longer buffer.
    NeedMore,
    /// The head is complete; the body begins `consumed` bytes into the buffer.
    Done {
        /// Length of the head in bytes.
        consumed: usize,
    },
    /// The output can't be used.
    Refused(ScriptFault),
}

/// What is wrong with a head: 500. The program's name belongs behind the text. None has a number in
/// Apache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptFault {
    /// No line ended, or the first was too long.
    #[error("End of script output before headers")]
    Empty,
    /// The output ended before an empty line, or a line was too long.
    #[error("Premature end of script headers")]
    Premature,
    /// A line has no colon. It is shown from its beginning; Apache shows a later one.
    #[error("malformed header from script: Bad header: {0}")]
    Malformed(BString),
    /// The head exceeds [`HEAD_BYTES`] or [`FIELDS`]. Not in Apache.
    #[error("headers of script are too long")]
    TooLarge,
}

impl ScriptFault {
    /// The status of the response.
    pub const fn status(&self) -> Status {
        500
    }
}

/// Parser state of one head. Each byte is examined once for line ends.
#[derive(Clone, Debug, Default)]
pub struct ScriptHeadParser {
    /// Bytes of complete lines.
    at: usize,
    /// Bytes known to contain no line end beyond `at`.
    scanned: usize,
    /// CRs among them.
    returns: usize,
    lines: usize,
}

impl ScriptHead {
    /// An empty head.
    pub fn new() -> Self {
        ScriptHead::default()
    }

    /// Clears the head and keeps the memory.
    pub fn clear(&mut self) {
        self.status = None;
        self.invalid_status = None;
        self.status_line.clear();
        self.content_type = None;
        self.last_modified = None;
        self.invalid_date = None;
        self.own.clear();
        self.fields.clear();
        self.cookies.clear();
    }

    /// Adds a field.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"Content-Type") {
            self.content_type = Some(media_type(value));
        } else if is(b"Status") {
            self.set_status(value);
        } else if is(b"Last-Modified") {
            // Apache's parser has the first second of 1970 for what it can't parse.
            let date = date::parse(value).filter(|date| *date != 0);
            match date {
                Some(date) => self.last_modified = Some(date),
                None => self.invalid_date = Some(value.into()),
            }
        } else if is(b"Set-Cookie") {
            self.cookies.add(name, value);
        } else if OWN.into_iter().any(is) {
            self.own.set(name, value);
        } else {
            self.fields.add(name, value);
        }
    }

    fn set_status(&mut self, line: &[u8]) {
        let status = number(line);
        self.status = Some(status);
        if !is_response(status) {
            self.invalid_status = Some(shown(line));
        }
        self.status_line.clear();
        if is_status_line(line, status) {
            self.status_line.extend_from_slice(line);
        } else if is_valid(status) && line == status.to_string().as_bytes() {
            // Only a known code has a reason of the server's.
            if known_line(status).is_none() {
                self.status_line.extend_from_slice(line);
                self.status_line.push(b' ');
            }
        }
    }
}

/// The number at the beginning of a text (`atoi`); 0 if it is negative or there is none.
fn number(text: &[u8]) -> Status {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0, |number: u16, digit| {
        number.saturating_mul(10).saturating_add(u16::from(digit - b'0'))
    })
}

fn shown(line: &[u8]) -> BString {
    line.get(..SHOWN_BYTES).unwrap_or(line).into()
}

impl ScriptHeadParser {
    /// A parser at the start of a head.
    pub fn new() -> Self {
        ScriptHeadParser::default()
    }

    /// Parses `buf`, which begins with the head and grows from call to call, into `head`, which
    /// must be clear before the first call.
    pub fn parse(&mut self, head: &mut ScriptHead, buf: &[u8]) -> ScriptProgress {
        loop {
            let unseen = buf.get(self.scanned..).unwrap_or_default();
            let end = unseen.find_byte(b'\n').map(|offset| self.scanned + offset);
            let new = unseen.get(..end.map_or(unseen.len(), |end| end - self.scanned));
            self.returns += new.unwrap_or_default().iter().filter(|byte| **byte == b'\r').count();
            self.scanned = end.unwrap_or(buf.len());
            // Without the head's own limit, CRs could go on forever.
            if self.scanned >= HEAD_BYTES {
                return ScriptProgress::Refused(ScriptFault::TooLarge);
            }
            if self.scanned - self.at - self.returns > LINE_BYTES {
                return ScriptProgress::Refused(self.end_of_input());
            }
            let Some(end) = end else { return ScriptProgress::NeedMore };
            let line = buf.get(self.at..end).unwrap_or_default();
            let is_end = if self.returns == 0 {
                take_line(head, line)
            } else if self.returns == 1 && line.ends_with(b"\r") {
                take_line(head, line.get(..line.len() - 1).unwrap_or_default())
            } else {
                let kept: Vec<u8> = line.iter().copied().filter(|byte| *byte != b'\r').collect();
                take_line(head, &kept)
            };
            (self.at, self.scanned, self.returns) = (end + 1, end + 1, 0);
            self.lines += 1;
            match is_end {
                Ok(true) => return ScriptProgress::Done { consumed: self.at },
                Ok(false) if self.lines > FIELDS => {
                    return ScriptProgress::Refused(ScriptFault::TooLarge);
                }
                Ok(false) => {}
                Err(fault) => return ScriptProgress::Refused(fault),
            }
        }
    }

    /// Bytes of the lines that were taken, a bad one included.
    pub const fn taken(&self) -> usize {
        self.at
    }

    /// The output has ended in the head.
    pub const fn end_of_input(&self) -> ScriptFault {
        if self.lines == 0 { ScriptFault::Empty } else { ScriptFault::Premature }
    }
}

/// Takes a line without CRs and LF; returns true for the one that ends the head.
fn take_line(head: &mut ScriptHead, line: &[u8]) -> Result<bool, ScriptFault> {
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    if line.is_empty() {
        return Ok(true);
    }
    let Some((name, value)) = line.split_once_str(b":") else {
        return Err(ScriptFault::Malformed(shown(line)));
    };
    let blanks = value.iter().take_while(|byte| is_space(**byte)).count();
    head.add(name, value.get(blanks..).unwrap_or_default());
    Ok(false)
}
