//! The incremental parser of response heads.

use super::connection;
use super::fault::{Fault, Lie};
use super::field::{Field, FieldName, without_cr};
use super::head::ResponseHead;
use super::status_line::{short_status_line, status_line};
use super::{
    BadHeader, Dialect, HEAD_BYTES_MAX, INTERIM_RESPONSES, ResponseProgress, ResponseRules,
};
use crate::chars::{is_field_value, is_space, is_token_string};
use crate::request::ends_chunked;
use crate::scan::contains;
use crate::status::is_info;
use bstr::ByteSlice;

/// Bytes of a field that a log line shows.
const SHOWN_BYTES: usize = 80;

/// Parser state of the responses to one request: interim ones, then the final one. Each byte is
/// examined once for line ends, however slowly the bytes arrive.
#[derive(Clone, Debug, Default)]
pub struct ResponseParser {
    /// Bytes of complete lines.
    at: usize,
    /// Bytes known to contain no line end beyond `at`.
    scanned: usize,
    has_status: bool,
    /// Whether the one empty line that may precede the status line was seen.
    has_blank: bool,
    /// The last field line, held back since the next may continue it.
    pending: Option<Pending>,
    interims: u8,
    /// Whether an interim response said that the connection closes.
    closes: bool,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    start: usize,
    /// The end of its text.
    end: usize,
    /// The beginning of the next line.
    next: usize,
    /// Bytes of its lines without their ends.
    len: usize,
    is_folded: bool,
}

struct Line {
    start: usize,
    end: usize,
    next: usize,
}

enum Unread {
    NeedMore,
    /// The line is longer than the limit, ended or not.
    Long,
    /// The head is longer than its limit.
    TooLarge,
    /// It contains NUL.
    Nul,
    Lie,
}

impl ResponseParser {
    /// A parser before the first response to a request.
    pub fn new() -> Self {
        ResponseParser::default()
    }

    /// Prepares for the response to the next request.
    pub fn reset(&mut self) {
        *self = ResponseParser::default();
    }

    /// Prepares for the response that follows an interim one.
    pub fn next(&mut self) {
        *self = ResponseParser { interims: self.interims, closes: self.closes, ..Self::default() };
    }

    /// Whether a byte of a response has arrived. A connection that ends earlier, and had served a
    /// request before, had only become idle for too long.
    pub fn has_begun(&self) -> bool {
        self.interims > 0 || self.has_status || self.scanned > 0
    }

    /// Whether the status line of the current response was read.
    pub fn has_status(&self) -> bool {
        self.has_status
    }

    /// Parses `buf`, which begins with the response and grows from call to call, into `head`, which
    /// must be clear before the first call for each response.
    pub fn parse(
        &mut self,
        head: &mut ResponseHead,
        buf: &[u8],
        rules: &ResponseRules<'_>,
    ) -> ResponseProgress {
        match self.parse_lines(head, buf, rules) {
            Ok(progress) => progress,
            Err(fault) => ResponseProgress::Refused(Box::new(fault)),
        }
    }

    /// The connection has ended in a head.
    pub fn end_of_input(&self, dialect: Dialect) -> Fault {
        match dialect {
            _ if self.has_status => Fault::Unreadable,
            Dialect::Http => Fault::NoStatusLine,
            Dialect::Uwsgi => Fault::NoUwsgiStatusLine,
        }
    }

    fn parse_lines(
        &mut self,
        head: &mut ResponseHead,
        buf: &[u8],
        rules: &ResponseRules<'_>,
    ) -> Result<ResponseProgress, Fault> {
        let limit = rules.head_bytes.min(HEAD_BYTES_MAX);
        loop {
            let line = match self.next_line(buf, limit, rules) {
                Ok(line) => line,
                Err(Unread::NeedMore) => return Ok(ResponseProgress::NeedMore),
                Err(Unread::TooLarge) => return Err(Fault::HeadTooLarge(limit)),
                Err(Unread::Lie) => return Err(Fault::Lie(Lie::BareLineEnd)),
                Err(Unread::Nul) => return Err(self.end_of_input(rules.dialect)),
                Err(Unread::Long) if self.has_status => {
                    return Err(too_long(buf.get(self.at..).unwrap_or_default(), rules));
                }
                Err(Unread::Long) => self.long_first_line(rules),
            };
            (self.at, self.scanned) = (line.next, line.next);
            let done = if self.has_status {
                self.take_field_line(head, buf, &line, rules)?
            } else {
                self.take_first_line(head, buf, &line, rules)?
            };
            if let Some(progress) = done {
                return Ok(progress);
            }
        }
    }

    /// Finds the next line, without its end. Of both limits, the one that is reached first counts,
    /// however the bytes arrive.
    fn next_line(
        &mut self,
        buf: &[u8],
        limit: usize,
        rules: &ResponseRules<'_>,
    ) -> Result<Line, Unread> {
        let unseen = buf.get(self.scanned..).unwrap_or_default();
        let end_of_line = unseen.find_byte(b'\n').map(|offset| self.scanned + offset);
        self.scanned = end_of_line.unwrap_or(buf.len());
        let line_limit = self.at.saturating_add(rules.line_bytes);
        if self.scanned > line_limit && line_limit < limit {
            return Err(Unread::Long);
        }
        let next = end_of_line.map_or(buf.len(), |end| end + 1);
        if next > limit {
            return Err(Unread::TooLarge);
        }
        if end_of_line.is_none() {
            return Err(Unread::NeedMore);
        }
        let raw = buf.get(self.at..next - 1).unwrap_or_default();
        let text = without_cr(raw);
        if text.len() >= rules.line_bytes {
            return Err(Unread::Long);
        }
        if contains(text, |byte| (byte == 0) | (byte == b'\r')) {
            if text.contains(&0) {
                return Err(Unread::Nul);
            }
            if rules.strict {
                return Err(Unread::Lie);
            }
        }
        if rules.strict && text.len() == raw.len() {
            return Err(Unread::Lie);
        }
        Ok(Line { start: self.at, end: self.at + text.len(), next })
    }

    /// The part of a first line that is read at once.
    fn long_first_line(&self, rules: &ResponseRules<'_>) -> Line {
        let end = self.at + rules.line_bytes.saturating_sub(1).max(1);
        Line { start: self.at, end, next: end }
    }

    /// Processes the line that should be the status line, or the empty one before it.
    fn take_first_line(
        &mut self,
        head: &mut ResponseHead,
        buf: &[u8],
        line: &Line,
        rules: &ResponseRules<'_>,
    ) -> Result<Option<ResponseProgress>, Fault> {
        let text = buf.get(line.start..line.end).unwrap_or_default();
        let is_uwsgi = rules.dialect == Dialect::Uwsgi;
        if is_uwsgi && (text.is_empty() || text.len() + 1 >= rules.line_bytes) {
            return Err(Fault::NoUwsgiStatusLine);
        }
        if text.is_empty() {
            if self.has_blank {
                return Err(Fault::NoStatusLine);
            }
            self.has_blank = true;
            return Ok(None);
        }
        let found = status_line(text).or_else(|| short_status_line(text).filter(|_| is_uwsgi));
        let Some((major, minor, status)) = found else {
            if is_uwsgi {
                return Err(Fault::CorruptStatusLine(text.into()));
            }
            if rules.strict {
                return Err(Fault::Lie(Lie::Simple));
            }
            head.is_simple = true;
            head.status = 200;
            head.closes = true;
            head.preread = (line.start as u32, line.end as u32);
            return Ok(Some(ResponseProgress::Done { consumed: line.next }));
        };
        let reason_at = if text.get(6) == Some(&b' ') { 11 } else { 13 };
        if (major != 1 && !is_uwsgi) || text.len() + 1 >= rules.line_bytes {
            return Err(Fault::CorruptStatusLine(text.into()));
        }
        self.has_status = true;
        head.minor = minor;
        head.status = status;
        head.reason = ((line.start + text.len().min(reason_at)) as u32, line.end as u32);
        Ok(None)
    }

    /// Processes a line of the fields.
    fn take_field_line(
        &mut self,
        head: &mut ResponseHead,
        buf: &[u8],
        line: &Line,
        rules: &ResponseRules<'_>,
    ) -> Result<Option<ResponseProgress>, Fault> {
        let text = buf.get(line.start..line.end).unwrap_or_default();
        if let Some(pending) = &mut self.pending {
            if matches!(text.first(), Some(b' ' | b'\t')) {
                if rules.strict {
                    return Err(Fault::Lie(Lie::Folded));
                }
                pending.end = line.end;
                pending.next = line.next;
                pending.len += text.len();
                pending.is_folded = true;
                if pending.len >= rules.line_bytes {
                    let shown = buf.get(pending.start..).unwrap_or_default();
                    return Err(too_long(shown, rules));
                }
                return Ok(None);
            }
            let whole = *pending;
            self.pending = None;
            if !take_field(head, buf, &whole, rules)? {
                // The line itself is lost, as in Apache.
                return self.finish(head, buf, rules, whole.next).map(Some);
            }
        }
        if text.is_empty() {
            return self.finish(head, buf, rules, line.next).map(Some);
        }
        let Line { start, end, next } = *line;
        self.pending = Some(Pending { start, end, next, len: text.len(), is_folded: false });
        Ok(None)
    }

    /// Draws conclusions from the whole head.
    fn finish(
        &mut self,
        head: &mut ResponseHead,
        buf: &[u8],
        rules: &ResponseRules<'_>,
        consumed: usize,
    ) -> Result<ResponseProgress, Fault> {
        if rules.dialect == Dialect::Uwsgi {
            head.closes = true;
            head.is_chunked = Some(false);
            return Ok(ResponseProgress::Done { consumed });
        }
        frame(head, buf, rules.strict)?;
        if head.status == 101 {
            connection::check_upgrade(head, buf, rules.upgrade)?;
            head.closes = true;
        }
        head.closes |= connection::clear(head, buf, rules.is_of_proxy);
        head.closes |= head.minor == 0 || self.closes;
        if !is_info(head.status) || head.status == 101 {
            return Ok(ResponseProgress::Done { consumed });
        }
        self.closes = head.closes;
        self.interims += 1;
        if self.interims >= INTERIM_RESPONSES {
            return Err(Fault::TooManyInterims(INTERIM_RESPONSES));
        }
        Ok(ResponseProgress::Interim { consumed })
    }
}

fn too_long(text: &[u8], rules: &ResponseRules<'_>) -> Fault {
    // No more than has surely arrived, however the bytes are cut.
    let shown = text.get(..SHOWN_BYTES.min(rules.line_bytes)).unwrap_or(text).into();
    Fault::LineTooLong { limit: rules.line_bytes, shown }
}

/// Adds a field. Returns false if the body begins behind it (`ProxyBadHeader StartBody`).
fn take_field(
    head: &mut ResponseHead,
    buf: &[u8],
    pending: &Pending,
    rules: &ResponseRules<'_>,
) -> Result<bool, Fault> {
    let text = buf.get(pending.start..pending.end).unwrap_or_default();
    let Some(colon) = text.find_byte(b':') else {
        // IIS puts a second status line among the fields.
        let is_ignored = rules.bad_header == BadHeader::Ignore || status_line(text).is_some();
        return match rules.bad_header {
            _ if is_ignored => Ok(true),
            BadHeader::StartBody => Ok(false),
            _ => Err(Fault::NotAField { minor: head.minor }),
        };
    };
    if head.fields.len() >= rules.fields {
        return Err(Fault::TooManyFields(rules.fields));
    }
    let (name, rest) = text.split_at(colon);
    let value = rest.get(1..).unwrap_or_default();
    let blanks = value.iter().take_while(|byte| is_space(**byte)).count();
    let value = value.get(blanks..).unwrap_or_default();
    let after = value.iter().rev().take_while(|byte| is_space(**byte)).count();
    let value = value.get(..value.len() - after).unwrap_or_default();
    let value_at = pending.start + colon + 1 + blanks;
    let meaning = FieldName::of(name);
    head.seen |= meaning.bit();
    head.fields.push(Field {
        start: pending.start as u32,
        name_len: name.len() as u32,
        value_at: value_at as u32,
        value_len: value.len() as u32,
        next: pending.next as u32,
        name: meaning,
        is_kept: true,
        is_canonical: !pending.is_folded
            && rest.starts_with(b": ")
            && value_at == pending.start + colon + 2
            && value_at + value.len() == pending.end
            && pending.end + 2 == pending.next,
        is_folded: pending.is_folded,
        has_valid_name: is_token_string(name),
        has_valid_value: is_valid_value(value, pending.is_folded),
    });
    Ok(true)
}

fn is_valid_value(value: &[u8], is_folded: bool) -> bool {
    let is_line = is_field_value;
    if !is_folded {
        return is_line(value);
    }
    let mut lines = value.split(|byte| *byte == b'\n').rev();
    lines.next().is_none_or(is_line) && lines.all(|line| is_line(without_cr(line)))
}

/// Decides between `Transfer-Encoding` and `Content-Length`; of several, the first counts.
fn frame(head: &mut ResponseHead, buf: &[u8], strict: bool) -> Result<(), Fault> {
    let coding = head.first(FieldName::TransferEncoding);
    head.is_chunked = coding.map(|field| ends_chunked(&field.value(buf)));
    if strict && head.is_chunked == Some(false) {
        return Err(Fault::Lie(Lie::Coding));
    }
    let Some(first) = head.first(FieldName::ContentLength).copied() else { return Ok(()) };
    if head.is_chunked.is_some() {
        if strict {
            return Err(Fault::Lie(Lie::CodingAndLength));
        }
        head.closes = true;
    }
    let length = first.value(buf);
    for field in &mut head.fields {
        if field.name != FieldName::ContentLength {
            continue;
        }
        if strict && field.value(buf) != length {
            return Err(Fault::Lie(Lie::Lengths));
        }
        field.is_kept = head.is_chunked.is_none() && field.start == first.start;
    }
    Ok(())
}
