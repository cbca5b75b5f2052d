//! The incremental parser of request heads.

use super::fields::{self, TOO_LARGE, TOO_MANY, refuse};
use super::previous::Previous;
use super::{HeadError, HeadLimits, HeadOptions, LogLevel, Progress, RequestHead, Version};
use super::{fast, line};
use crate::chars::{is_token, trim_blanks_end, trim_blanks_start};
use crate::table::Table;

/// The size from which an unfinished line is refused as too long. Apache reads as much before it
/// checks (`HUGE_STRING_LEN`).
const UNFINISHED_LINE_BYTES: usize = 8192;

/// Blank lines allowed before a request (`DEFAULT_LIMIT_BLANK_LINES`, `MAX_EMPTY_LINES`).
const BLANK_LINES: usize = 10;

/// Parser state across the reads of one head. Call [`HeadParser::reset`] between requests.
///
/// Each byte is examined once: however slowly the bytes arrive, the work is linear.
#[derive(Debug, Default, Clone)]
pub struct HeadParser {
    /// Bytes of complete lines.
    at: usize,
    /// Bytes beyond `at` that are known to contain no line end.
    scanned: usize,
    /// Blank lines seen before the request line.
    blank_lines: usize,
    /// Whether a request precedes this one. A bare LF may be left of it.
    follows: bool,
    in_fields: bool,
    /// Fields added so far.
    fields: usize,
    /// The last field line, held back since the next line may continue it.
    pending: Vec<u8>,
    previous: Previous,
}

/// Why a line is refused.
enum BadLine {
    TooLong,
    /// A bare LF in strict mode, or a NUL.
    Invalid,
}

struct Line<'a> {
    text: &'a [u8],
    next: usize,
}

impl HeadParser {
    /// A parser at the start of a head.
    pub fn new() -> Self {
        HeadParser::default()
    }

    /// Prepares for the first head of a connection and keeps the memory.
    pub fn reset(&mut self) {
        self.clear();
        self.previous.clear();
    }

    /// Prepares for the next head on the same connection. Line ends between requests are skipped,
    /// including a bare LF (`check_pipeline`).
    pub fn reset_for_next(&mut self) {
        self.clear();
        self.follows = true;
    }

    fn clear(&mut self) {
        self.at = 0;
        self.scanned = 0;
        self.blank_lines = 0;
        self.follows = false;
        self.in_fields = false;
        self.fields = 0;
        self.pending.clear();
    }

    /// Returns a parser for the trailer fields of a chunked body.
    pub(crate) fn for_trailers() -> Self {
        HeadParser { in_fields: true, ..HeadParser::default() }
    }

    /// Like [`HeadParser::reset`], for trailer fields.
    pub(crate) fn reset_for_trailers(&mut self) {
        self.reset();
        self.in_fields = true;
    }

    /// Parses trailer fields up to their blank line by the rules of header fields. `buf` begins
    /// with the first field and grows from call to call.
    pub(crate) fn parse_trailers(
        &mut self,
        trailers: &mut Table,
        buf: &[u8],
        limits: &HeadLimits,
        strict: bool,
    ) -> Progress {
        match self.parse_fields(trailers, buf, limits, strict) {
            Ok(Some(consumed)) => match fields::join(trailers, limits) {
                Ok(()) => Progress::Done { consumed },
                Err(error) => Progress::Error(error),
            },
            Ok(None) => Progress::NeedMore,
            Err(error) => Progress::Error(error),
        }
    }

    /// Whether a request has begun: a byte other than leading line ends has arrived.
    pub fn has_begun(&self) -> bool {
        self.in_fields || self.scanned > self.at
    }

    /// Whether the request line is complete (for mod_reqtimeout and logs).
    pub fn has_line(&self) -> bool {
        self.in_fields
    }

    /// Bytes of the head that have been consumed; after an error, up to the end of the offending
    /// line.
    pub fn consumed(&self) -> usize {
        self.at
    }

    /// Parses `buf`, which begins with the head and grows from call to call, into `head`, which
    /// must be clear before the first call.
    pub fn parse(
        &mut self,
        head: &mut RequestHead,
        buf: &[u8],
        limits: &HeadLimits,
        options: &HeadOptions<'_>,
    ) -> Progress {
        let is_untouched = self.scanned == 0 && self.at == 0;
        if is_untouched && buf.first().is_some_and(|byte| is_token(*byte)) {
            if let Some(consumed) = fast::parse(head, &mut self.previous, buf, limits, options) {
                self.at = consumed;
                return match fields::conclude(head) {
                    Ok(()) => Progress::Done { consumed },
                    Err(error) => Progress::Error(error),
                };
            }
            head.clear();
        }
        match self.parse_lines(head, buf, limits, options) {
            Ok(Some(consumed)) => Progress::Done { consumed },
            Ok(None) => Progress::NeedMore,
            Err(error) => Progress::Error(error),
        }
    }

    /// The slow path: parses line by line.
    fn parse_lines(
        &mut self,
        head: &mut RequestHead,
        buf: &[u8],
        limits: &HeadLimits,
        options: &HeadOptions<'_>,
    ) -> Result<Option<usize>, Box<HeadError>> {
        while !self.in_fields {
            let strict = options.strict && !(self.follows && buf.get(self.at) == Some(&b'\n'));
            let found = match self.next_line(buf, limits.line_bytes, strict) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(None),
                Err(bad) => {
                    let line = self.skip_line(buf);
                    return Err(bad_request_line(head, bad, line, limits));
                }
            };
            self.at = found.next;
            self.scanned = found.next;
            if found.text.is_empty() && self.blank_lines < BLANK_LINES {
                self.blank_lines += 1;
                continue;
            }
            line::parse(head, found.text, options)?;
            if head.version == Version::HTTP_09 {
                return Ok(Some(self.at));
            }
            self.in_fields = true;
        }
        match self.parse_fields(&mut head.headers, buf, limits, options.strict)? {
            Some(consumed) => fields::finish(head, limits).map(|()| Some(consumed)),
            None => Ok(None),
        }
    }

    /// Parses field lines up to the blank one.
    fn parse_fields(
        &mut self,
        table: &mut Table,
        buf: &[u8],
        limits: &HeadLimits,
        strict: bool,
    ) -> Result<Option<usize>, Box<HeadError>> {
        loop {
            let found = match self.next_line(buf, limits.field_bytes, strict) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(None),
                Err(bad) => return Err(bad_field_line(self.skip_line(buf), bad)),
            };
            self.at = found.next;
            self.scanned = found.next;
            if self.take_field_line(table, found.text, limits, strict)? {
                return Ok(Some(self.at));
            }
        }
    }

    /// The next complete line without its end, or `None`.
    fn next_line<'a>(
        &mut self,
        buf: &'a [u8],
        limit: usize,
        strict: bool,
    ) -> Result<Option<Line<'a>>, BadLine> {
        let unseen = buf.get(self.scanned..).unwrap_or_default();
        let Some(offset) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.scanned = buf.len();
            let pending = buf.len().saturating_sub(self.at);
            let is_too_long = pending >= UNFINISHED_LINE_BYTES && pending > limit + 1;
            return if is_too_long { Err(BadLine::TooLong) } else { Ok(None) };
        };
        let end = self.scanned + offset;
        let with_cr = buf.get(self.at..end).unwrap_or_default();
        let without_cr = with_cr.strip_suffix(b"\r");
        let text = without_cr.unwrap_or(with_cr);
        if text.len() > limit + 1 {
            return Err(BadLine::TooLong);
        }
        if (strict && without_cr.is_none()) || text.contains(&0) {
            return Err(BadLine::Invalid);
        }
        Ok(Some(Line { text, next: end + 1 }))
    }

    /// Consumes an invalid line: up to its end, or all that has arrived.
    fn skip_line<'a>(&mut self, buf: &'a [u8]) -> &'a [u8] {
        let rest = buf.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Processes one field line; returns true for the blank line at the end.
    fn take_field_line(
        &mut self,
        table: &mut Table,
        text: &[u8],
        limits: &HeadLimits,
        strict: bool,
    ) -> Result<bool, Box<HeadError>> {
        if matches!(text.first(), Some(b' ' | b'\t')) {
            self.fold(text, limits)?;
            return Ok(false);
        }
        if !self.pending.is_empty() {
            self.fields += 1;
            if limits.fields != 0 && self.fields > limits.fields {
                let message = "Number of request headers exceeds LimitRequestFields";
                let error = HeadError::new(400, 563, LogLevel::Info, message);
                return Err(error.with_notes(TOO_MANY));
            }
            fields::add(table, &self.pending, strict)?;
            self.pending.clear();
        }
        self.pending.extend_from_slice(trim_blanks_end(text));
        Ok(text.is_empty())
    }

    /// Joins a continuation line to the field before it with one space (RFC 9112 section 5.2).
    fn fold(&mut self, text: &[u8], limits: &HeadLimits) -> Result<(), Box<HeadError>> {
        if self.pending.is_empty() {
            return Err(refuse(3442, "Line folding encountered before first header line", b""));
        }
        let text = trim_blanks_end(trim_blanks_start(text));
        if text.is_empty() {
            return Err(refuse(3443, "Empty folded line encountered", b""));
        }
        if self.pending.len() + text.len() + 2 >= limits.field_bytes {
            let name = self.pending.split(|byte| *byte == b':').next().unwrap_or_default();
            let before = "Request header exceeds LimitRequestFieldSize after folding: ";
            return Err(refuse(562, before, name).with_notes(TOO_LARGE));
        }
        self.pending.push(b' ');
        self.pending.extend_from_slice(text);
        Ok(())
    }
}

fn bad_request_line(
    head: &mut RequestHead,
    bad: BadLine,
    line: &[u8],
    limits: &HeadLimits,
) -> Box<HeadError> {
    head.version = Version::HTTP_10;
    head.keep_unread(line, limits.line_bytes);
    match bad {
        BadLine::TooLong => {
            let message = format!(
                "request failed: client's request-line exceeds LimitRequestLine (longer than {})",
                limits.line_bytes
            );
            HeadError::new(414, 565, LogLevel::Info, message)
        }
        BadLine::Invalid => {
            HeadError::new(400, 566, LogLevel::Debug, "request failed: malformed request line")
        }
    }
}

fn bad_field_line(line: &[u8], bad: BadLine) -> Box<HeadError> {
    match bad {
        BadLine::TooLong => {
            let end = line.iter().take(80).position(|byte| *byte == b':').unwrap_or(0);
            let (colon, name) = if end > 0 { (": ", &line[..end]) } else { ("", &line[..0]) };
            let before = format!("Request header exceeds LimitRequestFieldSize{colon}");
            refuse(561, &before, name).with_notes(TOO_LARGE)
        }
        BadLine::Invalid => {
            HeadError::new(400, 567, LogLevel::Debug, "request failed: error reading the headers")
        }
    }
}
