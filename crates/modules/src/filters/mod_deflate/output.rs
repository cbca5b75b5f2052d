//! The output filters: DEFLATE and INFLATE.

use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use server::body::Body;
use server::errors;
use server::filter::{Beginning, OutputFilter};
use server::log::Level;
use server::request::{BodyEnd, FileCoding, Request};
use server::variant_key::VariantKey;

use super::gzip::{
    FLAGS_AT, HEAD_BYTES, Packer, TRAILER_BYTES, Unpacker, WINDOW_BITS_MIN, Wrong, has_magic,
};
use super::ratio::Ratio;
use super::recode::{Coding, Recoded};
use super::totals::Totals;
use super::{Deflate, coding, unpacking};
use crate::filters::compressed::{done, done_before};
use crate::filters::settings::{InForce, in_force};

/// Extra bytes of a compressed response's fields.
const FIELD_BYTES: usize = 50;

/// Longest body in bytes that is not worth compressing.
const NOT_WORTH_BYTES: u64 = (HEAD_BYTES + TRAILER_BYTES + FIELD_BYTES) as u64;

/// `DEFLATE`. Source: `deflate_out_filter`.
pub(super) struct Pack;

impl OutputFilter for Pack {
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        let is_wanted = |request: &mut Request| {
            request.env.contains(b"force-gzip") || request.depends_on(&TAKES_GZIP) != 0
        };
        comes && (is_excluded(request) || !is_wanted(request))
    }

    /// As many bytes as tell whether the body is worth it, if its end follows them in any case.
    fn looks_at(&self, request: &Request) -> usize {
        let is_asked = request.response.end == BodyEnd::WithBody && !is_excluded(request);
        if is_asked { NOT_WORTH_BYTES as usize + 1 } else { 0 }
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if request.head.header_only && body.is_announced() {
            // Nothing is there of what another server would have sent.
            return body;
        }
        let is_open = match request.response.end {
            BodyEnd::ByFraming => request.response.chunked,
            BodyEnd::WithBody | BodyEnd::Gathered => false,
            BodyEnd::Apart => true,
        };
        if is_open && body.length() == Some(0) {
            // Nothing precedes the end: the head has waited for it.
            request.response.chunked = false;
            return body;
        }
        let least = if is_open { 0 } else { NOT_WORTH_BYTES };
        let is_worth_it = body.length().is_none_or(|length| length > least);
        if is_excluded(request) || !is_worth_it {
            return body;
        }
        // Caches must know that the response depends on the field, whatever the outcome.
        request.response.headers_out.merge(b"Vary", b"Accept-Encoding");
        if !request.env.contains(b"force-gzip") && request.depends_on(&TAKES_GZIP) == 0 {
            return body;
        }
        let InForce { own: packing, etag, has_notes } = in_force::<Deflate>(request);
        if packing.window_bits < WINDOW_BITS_MIN && request.response.status != 304 {
            let why = "unable to init Zlib: deflateInit2 returned -2";
            let uri = String::from_utf8_lossy(&request.resource.uri).into_owned();
            request.log::<Deflate>(Level::Error, 1383, format_args!("{why}: URL {uri}"));
            // Each of these responses is to be logged.
            request.depends.pure = false;
            return body;
        }
        coding::name_coding(request, b"gzip");
        request.response.unset_length();
        request.response.headers_out.unset(b"Content-MD5");
        coding::alter_etag(request, b"gzip", etag);
        if request.response.status == 304 {
            return body;
        }
        // The compressed content may come from another response: not if totals are logged, and not
        // for HEAD, for which nothing is compressed.
        let is_shared = !has_notes && !request.head.header_only;
        let file = is_shared.then(|| request.file_coding(&body, packing.number())).flatten();
        if let Some(coded) = file.as_ref().and_then(FileCoding::get) {
            return done_before(request, coded.bytes, coded.has_length);
        }
        let mut head = Vec::new();
        let packer = Packer::new(packing.level, packing.window_bits, &mut head);
        let totals = Totals::default();
        request.keep(totals.clone());
        // A cached response has no totals to log.
        request.depends.pure &= !has_notes;
        let recoded = Recoded::new(body, Coding::Pack(Box::new(packer)), head, totals);
        let recoded = recoded.recorded(file);
        body_of(request, recoded, packing.buffer_bytes)
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Whether the client accepts gzip.
static TAKES_GZIP: VariantKey = VariantKey {
    name: "Accept-Encoding: gzip",
    of: |request| {
        let field = request.head.headers_in.get(b"Accept-Encoding");
        u16::from(field.is_some_and(|field| coding::accepts(field, b"gzip")))
    },
};

/// Whether a response is not compressed for any client.
fn is_excluded(request: &Request) -> bool {
    let is_html = request
        .response
        .content_type
        .as_deref()
        .is_some_and(|media| media.starts_with(b"text/html"));
    request.main.is_some()
        || request.response.status == 204
        || request.env.contains(b"no-gzip")
        || request.response.headers_out.contains(b"Content-Range")
        || (!is_html && request.env.get(b"gzip-only-text/html") == Some(b"1"))
        || coding::is_coded(&coding::content_encoding(request))
}

/// `INFLATE`. Source: `inflate_out_filter`.
pub(super) struct Unpack;

impl OutputFilter for Unpack {
    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        let nothing = request.response.body.length() == Some(0);
        if request.main.is_some()
            || request.response.status == 204
            || nothing
            || request.response.headers_out.contains(b"Content-Range")
            || !coding::take_gzip(request)
        {
            return None;
        }
        let etag = in_force::<Deflate>(request).etag;
        request.response.unset_length();
        request.response.headers_out.unset(b"Content-MD5");
        coding::alter_etag(request, b"gunzip", etag);
        Some(Box::pin(unpack(request)))
    }

    fn apply(self: Box<Self>, _: &mut Request, body: Body) -> Body {
        body
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Unpacks what precedes the head of the response; returns false if the response has become an
/// error. What is no gzip is sent as it is.
async fn unpack(request: &mut Request) -> bool {
    let body = std::mem::take(&mut request.response.body);
    let is_stream = matches!(body, Body::Stream(_));
    let (head, body) = beginning(body).await;
    let is_gzip = head.len() < HEAD_BYTES || has_magic(&head);
    let flags = head.get(FLAGS_AT).filter(|_| head.len() >= HEAD_BYTES).copied();
    if !is_gzip {
        request.response.body = body;
        return true;
    }
    let limits = unpacking(request);
    let ratio = Ratio::new(limits.ratio_limit, limits.ratio_burst);
    let coding = Coding::Unpack(Box::new(Unpacker::new()), ratio);
    let recoded = Recoded::new(body, coding, Vec::new(), Totals::default());
    let buffer_bytes = in_force::<Deflate>(request).own.buffer_bytes;
    match recoded.begun(is_stream, buffer_bytes).await {
        Ok(body) => {
            request.response.body = done(request, body);
            true
        }
        Err(error) => {
            log_wrong(request, &error, flags);
            Box::pin(errors::replace(request, 500)).await;
            false
        }
    }
}

/// The first bytes of a body, and the body. A file stays one: of what is no gzip, ranges are sent.
async fn beginning(body: Body) -> (Bytes, Body) {
    match body {
        Body::Bytes(bytes) => (bytes.slice(..HEAD_BYTES.min(bytes.len())), Body::Bytes(bytes)),
        Body::File(slice) => {
            let count = usize::try_from(slice.length).unwrap_or(HEAD_BYTES).min(HEAD_BYTES);
            let mut head = vec![0; count];
            let read = slice.file.read_exact_at(&mut head, slice.offset);
            (read.map(|()| head.into()).unwrap_or_default(), Body::File(slice))
        }
        body => {
            let (head, rest) = body.gathered(HEAD_BYTES).await.split_head();
            let body = match rest {
                Body::Empty => Body::Bytes(head.clone()),
                rest => Body::Parts([Body::Bytes(head.clone()), rest].into()),
            };
            (head, body)
        }
    }
}

/// Logs why a body can't be unpacked; `flags` are those of a whole header.
fn log_wrong(request: &mut Request, error: &io::Error, flags: Option<u8>) {
    // The line belongs to each request.
    request.depends.pure = false;
    let Some(wrong) = error.get_ref().and_then(|inner| inner.downcast_ref()) else { return };
    match (wrong, flags) {
        (Wrong::Head, Some(flags)) => {
            // As C shows it, with its sign.
            let what = format_args!("inflate: bad flags {:02x}", i32::from(flags.cast_signed()));
            request.log::<Deflate>(Level::Error, 2620, what);
        }
        (Wrong::Trailer, _) => {
            let what = format_args!("Zlib: Checksum of inflated stream invalid");
            request.log::<Deflate>(Level::Error, 1399, what);
        }
        (Wrong::Head | Wrong::Data | Wrong::End, _) => {
            let what = format_args!("Zlib: Validation bytes not present");
            request.log::<Deflate>(Level::Error, 1401, what);
        }
    }
}

/// The recoded body. If it is complete its length is known, even if that of the old one was not.
fn body_of(request: &mut Request, recoded: Recoded, buffer_bytes: usize) -> Body {
    done(request, recoded.into_body(buffer_bytes))
}
