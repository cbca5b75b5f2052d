//! The fast path: a complete, well-formed head. All others take the slow path.

use super::previous::Previous;
use super::{HeadFlags, HeadLimits, HeadOptions, RequestHead, Version, line};
use crate::chars::{is_token, is_token_string};
use crate::method::Method;
use crate::table::{Field, Overlap, TABLE_LIMIT_BYTES};
use crate::{scan, words};

/// Most fields of a head on the fast path.
const FIELDS: usize = 64;

/// `" HTTP/1.1"`.
const PROTOCOL_BYTES: usize = 9;

/// Fills the head from `buf`, including the flags of its fields, and returns the number of bytes
/// consumed. On `None` the contents of the head are unspecified, and the slow path decides.
pub(super) fn parse(
    head: &mut RequestHead,
    previous: &mut Previous,
    buf: &[u8],
    limits: &HeadLimits,
    options: &HeadOptions<'_>,
) -> Option<usize> {
    let line = buf.get(..scan::control(buf)?)?;
    if line.len() > limits.line_bytes || !ends_line(buf, line.len()) {
        return None;
    }
    read_line(head, line, options)?;
    read_fields(head, previous, buf, line.len() + 2, limits)
}

/// Whether CR LF are at `at`.
fn ends_line(buf: &[u8], at: usize) -> bool {
    buf.get(at..).is_some_and(|rest| rest.starts_with(b"\r\n"))
}

/// Parses a request line of single spaces, without control bytes.
fn read_line(head: &mut RequestHead, line: &[u8], options: &HeadOptions<'_>) -> Option<()> {
    let target_end = line.len().checked_sub(PROTOCOL_BYTES)?;
    let (before, protocol) = line.split_at(target_end);
    head.version = match protocol {
        b" HTTP/1.1" => Version::HTTP_11,
        b" HTTP/1.0" => Version::HTTP_10,
        _ => return None,
    };
    let method_len = before.iter().position(|byte| *byte == b' ')?;
    let (method, target) = (before.get(..method_len)?, before.get(method_len + 1..)?);
    let is_valid = matches!(method, b"GET" | b"HEAD" | b"POST") || is_token_string(method);
    if !is_valid || target.is_empty() {
        return None;
    }
    head.line.clear();
    head.line.extend_from_slice(line);
    head.method_len = method_len;
    head.target = (method_len + 1, target_end);
    head.protocol = (target_end + 1, line.len());
    head.method = Method::of(method, options.methods);
    head.header_only = method == b"HEAD";
    if options.registered_methods && !head.method.is_known() {
        return None;
    }
    read_target(head, target, options.strict)
}

/// Splits a target without spaces and without a fragment.
fn read_target(head: &mut RequestHead, target: &[u8], strict: bool) -> Option<()> {
    if scan::position(target, |byte| (byte == b' ') | (byte == b'#')).is_some() {
        return None;
    }
    let is_path = target.first() == Some(&b'/') && target.get(1) != Some(&b'/');
    if is_path && head.method != Method::CONNECT {
        let (start, end) = head.target;
        let query = scan::position(target, |byte| byte == b'?');
        head.path = (start, query.map_or(end, |at| start + at));
        head.query = query.map(|at| (start + at + 1, end));
        return Some(());
    }
    (line::set_target(head) && (!strict || line::check_strict_target(head).is_ok())).then_some(())
}

/// Parses the fields, which begin at `start`, up to the blank line.
fn read_fields(
    head: &mut RequestHead,
    previous: &mut Previous,
    buf: &[u8],
    start: usize,
    limits: &HeadLimits,
) -> Option<usize> {
    let text = buf.get(start..)?;
    if let Some((len, flags)) = previous.repeat(&mut head.headers, text, limits) {
        head.flags.set(flags);
        return Some(start + len);
    }
    let (len, flags) = read_lines(head, previous, text, limits)?;
    head.flags.set(flags);
    Some(start + len)
}

/// Parses the fields, line by line; returns the length of their text and their flags.
fn read_lines(
    head: &mut RequestHead,
    previous: &mut Previous,
    text: &[u8],
    limits: &HeadLimits,
) -> Option<(usize, HeadFlags)> {
    let most = if limits.fields == 0 { FIELDS } else { limits.fields.min(FIELDS) };
    let mut fields = head.headers.begin_block();
    let (mut at, mut flags, mut line) = (0, HeadFlags::NONE, 0);
    loop {
        let rest = text.get(at..)?;
        let (len, field) = match previous.repeated_line(line, rest) {
            Some(repeated) => {
                line += 1;
                repeated
            }
            None if rest.starts_with(b"\r\n") => break,
            None => {
                let (len, field) = read_field(rest)?;
                line = previous.after(line, field.mark);
                (len, field)
            }
        };
        if len - 2 > limits.field_bytes || fields.len() == most {
            return None;
        }
        flags.set(field.flags);
        fields.add(field, at);
        at += len;
    }
    let len = at + b"\r\n".len();
    if !fields.finish(text.get(..len)?)? {
        previous.keep(&head.headers, flags, limits);
        return Some((len, flags));
    }
    previous.clear();
    head.headers.compress(Overlap::Merge);
    // The limit applies to joined values as well.
    let is_within = |value: &[u8]| value.len() <= limits.field_bytes;
    head.headers.iter().all(|(_, value)| is_within(value)).then_some((len, flags))
}

/// Parses the field line at the beginning of `rest`; returns its length with its end. It is not
/// inlined, so that the loop keeps its registers.
#[inline(never)]
fn read_field(rest: &[u8]) -> Option<(usize, Field)> {
    let name = rest.get(..name_len(rest)?)?;
    let after_colon = name.len() + 1;
    let mut end = after_colon + scan::control(rest.get(after_colon..)?)?;
    while rest.get(end) == Some(&b'\t') {
        end += 1 + scan::control(rest.get(end + 1..)?)?;
    }
    if end > TABLE_LIMIT_BYTES || !ends_line(rest, end) {
        return None;
    }
    let (value_at, value_len) = value_of(rest, after_colon, end);
    Some((end + 2, Field::new(name, value_at, value_len)))
}

/// Length of the field's name, a token before a colon.
#[inline]
fn name_len(line: &[u8]) -> Option<usize> {
    let mut len = words::name_start(line);
    loop {
        match *line.get(len)? {
            b':' => return (len > 0).then_some(len),
            byte if is_token(byte) => len += 1,
            _ => return None,
        }
    }
}

/// Position and length of the value without the blanks around it, in `start..end` of the line.
#[inline(always)]
fn value_of(line: &[u8], start: usize, end: usize) -> (usize, usize) {
    let is_blank = |at: usize| matches!(line.get(at), Some(b' ' | b'\t'));
    let mut first = start + usize::from(line.get(start) == Some(&b' '));
    let mut end = end.max(first);
    while is_blank(first) {
        first += 1;
    }
    while end > first && is_blank(end - 1) {
        end -= 1;
    }
    (first, end - first)
}
