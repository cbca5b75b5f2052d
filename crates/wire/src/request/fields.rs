//! Header fields: parses one, and checks all of them at the end (`ap_get_mime_headers_core` and the
//! end of `ap_read_request`).

use super::{Body, HeadError, HeadFlags, HeadLimits, LogLevel, RequestHead};
use crate::chars::{
    decimal, is_field_content, is_token_string, trim_blanks_end, trim_blanks_start,
};
use crate::table::{Overlap, Table};

pub(super) const TOO_LARGE: &str = "Size of a request header field exceeds server limit.";
pub(super) const TOO_MANY: &str =
    "The number of request header fields exceeds this server's limit.";

/// Splits a whole field, with continuation lines joined, and adds it to the table.
pub(super) fn add(table: &mut Table, field: &[u8], strict: bool) -> Result<(), Box<HeadError>> {
    let colon = field.iter().position(|byte| *byte == b':');
    let (name, value) =
        if strict { split_strict(field, colon)? } else { split_unsafe(field, colon)? };
    table.add(name, value);
    Ok(())
}

fn split_strict(field: &[u8], colon: Option<usize>) -> Result<(&[u8], &[u8]), Box<HeadError>> {
    let name = field.get(..colon.unwrap_or(field.len())).unwrap_or_default();
    let (Some(colon), true) = (colon, is_token_string(name)) else {
        return Err(refuse(2426, "Request header field name is malformed: ", field));
    };
    let value = trim_blanks_start(field.get(colon + 1..).unwrap_or_default());
    if !value.iter().all(|byte| is_field_content(*byte)) {
        return Err(refuse(2427, "Request header value is malformed: ", value));
    }
    Ok((name, value))
}

fn split_unsafe(field: &[u8], colon: Option<usize>) -> Result<(&[u8], &[u8]), Box<HeadError>> {
    let Some(colon) = colon else {
        return Err(refuse(564, "Request header field is missing ':' separator: ", field));
    };
    if colon == 0 {
        return Err(refuse(3453, "Request header field name was empty", b""));
    }
    let (name, rest) = field.split_at(colon);
    if name.iter().any(|byte| matches!(byte, b' ' | b'\t'..=b'\r')) {
        return Err(refuse(3452, "Request header field name presented invalid whitespace", b""));
    }
    let value = trim_blanks_start(rest.get(1..).unwrap_or_default());
    if value.iter().any(|byte| matches!(byte, b'\n'..=b'\r')) {
        return Err(refuse(3451, "Request header field value presented bad whitespace", b""));
    }
    Ok((name, value))
}

/// Joins fields of the same name and checks the result.
pub(super) fn finish(head: &mut RequestHead, limits: &HeadLimits) -> Result<(), Box<HeadError>> {
    join(&mut head.headers, limits)?;
    for (name, mark) in head.headers.marked() {
        head.flags.set(HeadFlags::of_field(name, mark));
    }
    conclude(head)
}

/// Concludes from fields that are joined, and whose flags are set, what becomes of the connection
/// and where the body ends.
pub(super) fn conclude(head: &mut RequestHead) -> Result<(), Box<HeadError>> {
    note_connection(head);
    frame_body(head)
}

/// Joins fields of the same name. The limit applies to the joined value as well.
pub(super) fn join(table: &mut Table, limits: &HeadLimits) -> Result<(), Box<HeadError>> {
    table.compress(Overlap::Merge);
    match table.iter().find(|(_, value)| value.len() > limits.field_bytes) {
        Some((name, _)) => {
            let before = "Request header exceeds LimitRequestFieldSize after merging: ";
            Err(refuse(560, before, name).with_notes(TOO_LARGE))
        }
        None => Ok(()),
    }
}

/// Sets the flags for `Connection` and `Expect`.
fn note_connection(head: &mut RequestHead) {
    if head.flags.has(HeadFlags::CONNECTION) {
        let value = head.headers.get(b"Connection").unwrap_or_default();
        head.flags.set(HeadFlags::of_connection(value));
    }
    if head.flags.has(HeadFlags::EXPECT) {
        let value = head.headers.get(b"Expect").unwrap_or_default();
        if value.eq_ignore_ascii_case(b"100-continue") {
            head.flags.set(HeadFlags::EXPECT_CONTINUE);
        }
    }
}

/// Chooses between `Content-Length` and `Transfer-Encoding` (RFC 9112 section 6.3): both must be
/// valid; if both are present, the length is dropped and the connection closed.
fn frame_body(head: &mut RequestHead) -> Result<(), Box<HeadError>> {
    let has_length = head.flags.has(HeadFlags::CONTENT_LENGTH);
    if has_length {
        let value = head.headers.get(b"Content-Length").unwrap_or_default();
        let Some(length) = decimal(value) else {
            return Err(unframed(10242, "client sent invalid Content-Length", value, head));
        };
        head.body = Body::Length(length);
    }
    if !head.flags.has(HeadFlags::TRANSFER_ENCODING) {
        return Ok(());
    }
    let value = head.headers.get(b"Transfer-Encoding").unwrap_or_default();
    if !ends_chunked(value) {
        return Err(unframed(2539, "client sent unknown Transfer-Encoding", value, head));
    }
    head.body = Body::Chunked;
    if has_length {
        head.headers.unset(b"Content-Length");
        head.flags.unset(HeadFlags::CONTENT_LENGTH);
        head.flags.set(HeadFlags::CLOSE_AFTER);
    }
    Ok(())
}

fn unframed(log_number: u32, what: &str, value: &[u8], head: &RequestHead) -> Box<HeadError> {
    let message = [what.as_bytes(), b" (", value, b"): ", head.path()].concat();
    HeadError::new(400, log_number, LogLevel::Debug, message)
}

/// Whether `chunked` is the last coding (`ap_is_chunked`).
pub fn ends_chunked(codings: &[u8]) -> bool {
    let Some(start) = codings.len().checked_sub(b"chunked".len()) else { return false };
    let (before, last) = codings.split_at(start);
    if !last.eq_ignore_ascii_case(b"chunked") {
        return false;
    }
    matches!(trim_blanks_end(before).last(), None | Some(b','))
}

pub(super) fn refuse(log_number: u32, before: &str, text: &[u8]) -> Box<HeadError> {
    let shown = text.get(..text.len().min(80)).unwrap_or_default();
    let message = [before.as_bytes(), shown].concat();
    // A configured limit is worth a higher level than input that is not HTTP.
    let level = if (560..=563).contains(&log_number) { LogLevel::Info } else { LogLevel::Debug };
    HeadError::new(400, log_number, level, message)
}
