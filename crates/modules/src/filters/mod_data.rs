//! mod_data: turns responses into `data:` URLs (RFC 2397).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_data.html>

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use server::body::Body;
use server::filter::{FilterDef, OutputFilter, Stage};
use server::hooks::Hooks;
use server::module::Module;
use server::request::{Announced, BodyEnd, Request};

use super::rewritten::{Passed, Rewrite, body_of};

/// `mod_data.c`
pub struct Data;

impl Module for Data {
    const NAME: &'static str = "data_module";
    const FILE: &'static str = "mod_data.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Data>) {
        hooks.output_filter(FilterDef {
            name: "DATA",
            stage: Stage::RESOURCE,
            make: |_| Some(Box::new(Filter)),
        });
    }
}

/// `DATA`. Source: `data_out_filter`.
struct Filter;

/// How much of a body is encoded before it is sent: with it, a length is known.
const WHOLE_BYTES: usize = 64 * 1024;

/// Bytes in base64 of what is left at the end.
const LAST_BYTES: u64 = 4;

/// Apache removes a `Content-Length` from here on.
const LENGTH_LIMIT: u64 = i32::MAX as u64;

/// What comes with the end of a body of this length, and the last piece of that, bytes in base64:
/// what is not a multiple of three bytes, or what came behind the rest before.
fn ends(request: &Request, length: u64) -> (u64, u64) {
    if !length.is_multiple_of(3) {
        return (LAST_BYTES, LAST_BYTES);
    }
    let behind = Passed::of(request, length).map_or(0, |passed| passed.with_end);
    match length.saturating_sub(behind) {
        before if behind > 0 && before > 0 => {
            ((length / 3 - before / 3) * 4, (behind / 3 * 4).max(LAST_BYTES))
        }
        _ => (0, 0),
    }
}

impl OutputFilter for Filter {
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        comes && !request.is_initial()
    }

    fn looks_at(&self, request: &Request) -> usize {
        let length = request.response.body.length();
        let is_short = length.is_some_and(|length| length <= WHOLE_BYTES as u64);
        if request.is_initial() && is_short { WHOLE_BYTES + 1 } else { 0 }
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if !request.is_initial() {
            return body;
        }
        let (media, charset) = named(request.response.content_type.as_deref().unwrap_or_default());
        let start = [b"data:", media, charset, b";base64,"].concat();
        let told = request.response.announced;
        let announced = request.response.headers_out.get(b"Content-Length").and_then(number);
        let announced = announced.or_else(|| body.length().filter(|_| told == Announced::Length));
        request.response.unset_length();
        request.response.content_type = Some(b"text/plain".to_vec());
        // The response to a condition that decided has no body.
        let has_none = told == Announced::End || matches!(request.response.status, 304 | 412);
        if has_none && body.length() == Some(0) {
            // The beginning comes with the end: it is as any other body.
            request.response.chunked = false;
            return Body::from(start);
        }
        let length = announced
            .filter(|length| *length < LENGTH_LIMIT)
            .map(|length| start.len() as u64 + length.div_ceil(3) * 4);
        if let Some(length) = length {
            request.response.headers_out.set(b"Content-Length", length.to_string().as_bytes());
        }
        let (with_end, last) = body.length().map_or((0, 0), |length| ends(request, length));
        let passed = body.length().and_then(|length| Passed::of(request, length));
        let is_held = passed.is_some_and(|passed| passed.is_held);
        let (head, rest) = body.split_head();
        let body = body_of(Encode::default(), head, rest, start);
        request.response.chunked = length.is_none();
        if request.response.end != BodyEnd::Gathered {
            request.response.end = BodyEnd::Apart;
        }
        request.refuse_ranges();
        let known = if is_held { body.at_hand() } else { body.length() };
        if let (Some(length), true) = (known, with_end > 0 || is_held) {
            request.keep(Passed { length, with_end, last, is_flushed: is_held, is_held: false });
        }
        match length {
            Some(length) if matches!(body, Body::Stream(_)) => body.with_length(length),
            _ => body,
        }
    }

    fn is_pure(&self) -> bool {
        true
    }
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// The media type, and the parameter behind a blank. What follows another one is dropped.
fn named(content_type: &[u8]) -> (&[u8], &[u8]) {
    let mut words = content_type.split(|byte| *byte == b' ');
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

/// Encodes in base64.
#[derive(Default)]
struct Encode {
    /// One or two bytes that wait for a third.
    open: Vec<u8>,
}

impl Encode {
    fn append(bytes: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + bytes.len().div_ceil(3) * 4, 0);
        let written = STANDARD.encode_slice(bytes, out.get_mut(start..).unwrap_or_default());
        debug_assert!(written.is_ok(), "there is room for all");
    }
}

impl Rewrite for Encode {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let mut piece = piece;
        if !self.open.is_empty() {
            let (first, rest) = piece.split_at((3 - self.open.len()).min(piece.len()));
            self.open.extend_from_slice(first);
            piece = rest;
            if self.open.len() < 3 {
                return Ok(());
            }
            Encode::append(&self.open, out);
            self.open.clear();
        }
        let (whole, rest) = piece.split_at(piece.len() / 3 * 3);
        Encode::append(whole, out);
        self.open.extend_from_slice(rest);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        Encode::append(&std::mem::take(&mut self.open), out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_does_not_depend_on_cuts() {
        let text = b"\x00\xffabcdefg";
        for length in 0..=text.len() {
            let wanted = STANDARD.encode(&text[..length]);
            for first in 0..=length {
                for second in first..=length {
                    let (mut encode, mut out) = (Encode::default(), Vec::new());
                    for part in [&text[..first], &text[first..second], &text[second..length]] {
                        encode.push(part, &mut out).unwrap();
                    }
                    encode.end(&mut out).unwrap();
                    assert_eq!(out, wanted.as_bytes(), "{length} {first} {second}");
                }
            }
        }
    }
}
