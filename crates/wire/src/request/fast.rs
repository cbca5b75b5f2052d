//! The fast path: a complete, well-formed head. All others take the slow path.

use std::mem::MaybeUninit;

use super::{HeadLimits, HeadOptions, RequestHead, Version, line};
use crate::method::Method;

/// Most fields of a head on the fast path.
const FIELDS: usize = 64;

/// Fills the head from `buf` and returns the number of bytes consumed. On `None` the contents of
/// the head are unspecified, and the slow path decides.
pub(super) fn parse(
    head: &mut RequestHead,
    buf: &[u8],
    limits: &HeadLimits,
    options: &HeadOptions<'_>,
) -> Option<usize> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let consumed = match request.parse_with_uninit_headers(buf, &mut fields) {
        Ok(httparse::Status::Complete(consumed)) => consumed,
        _ => return None,
    };
    let method = request.method?.as_bytes();
    let target = request.path?.as_bytes();
    let line_len = method.len() + 1 + target.len() + b" HTTP/1.1".len();
    let is_within = line_len <= limits.line_bytes
        && (limits.fields == 0 || request.headers.len() <= limits.fields);
    // The line must end exactly where single spaces and CR LF put its end.
    if !is_within || buf.get(line_len..line_len + 2)? != b"\r\n" {
        return None;
    }
    if !fields_end_in_crlf(request.headers, buf, consumed, limits.field_bytes) {
        return None;
    }
    head.line.clear();
    head.line.extend_from_slice(buf.get(..line_len)?);
    head.method_len = method.len();
    head.target = (method.len() + 1, method.len() + 1 + target.len());
    head.protocol = (head.target.1 + 1, line_len);
    head.method = Method::of(method, options.methods);
    head.header_only = method == b"HEAD";
    head.version = if request.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let is_sound = line::set_target(head)
        && (!options.registered_methods || head.method.is_known())
        && (!options.strict || line::check_strict_target(head).is_ok());
    if !is_sound {
        return None;
    }
    let block = buf.get(line_len + 2..consumed)?;
    let pairs = request.headers.iter().map(|field| (field.name.as_bytes(), field.value));
    head.headers.add_from_block(block, pairs);
    Some(consumed)
}

/// Checks that every field line ends in CR LF (httparse accepts a bare LF too) and is within the
/// limit.
fn fields_end_in_crlf(
    fields: &[httparse::Header<'_>],
    buf: &[u8],
    consumed: usize,
    field_bytes: usize,
) -> bool {
    let mut previous: Option<usize> = None;
    let mut ends_well = |start: usize| {
        let crlf = start.checked_sub(2).and_then(|end| buf.get(end..start)) == Some(b"\r\n");
        let fits = previous.is_none_or(|before| start - before <= field_bytes + 2);
        previous = Some(start);
        crlf && fits
    };
    for field in fields {
        let start = (field.name.as_ptr() as usize).wrapping_sub(buf.as_ptr() as usize);
        if !ends_well(start) {
            return false;
        }
    }
    consumed >= 2 && ends_well(consumed - 2) && buf.get(consumed - 2..consumed) == Some(b"\r\n")
}
