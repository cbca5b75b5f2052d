//! What the filters BROTLI_COMPRESS and ZSTD have in common.
//!
//! Source: `compress_filter` (modules/filters/mod_brotli.c).

use std::io::{self, Write};
use std::marker::PhantomData;

use bytes::Bytes;
use server::body::Body;
use server::filter::{Beginning, OutputFilter};
use server::request::{FileCoding, Request};
use server::variant_key::VariantKey;

use super::mod_deflate::coding::{alter_etag, content_encoding, is_coded, name_coding};
use super::mod_deflate::recode::{Coding, Pack, Recoded, SHORT_BYTES};
use super::mod_deflate::totals::Totals;
use super::settings::{self, Compressor, InForce};

/// How a host compresses.
pub(super) trait Effort: Copy + Default + 'static {
    /// Whether it takes too long for a loop.
    fn is_slow(self) -> bool;

    /// A number for everything that the compressed body depends on besides the content.
    fn number(self) -> u64;

    /// Bytes of output that precede the end of a response of known length.
    fn buffer_bytes(self) -> usize {
        BUFFER_BYTES
    }

    /// Creates the compressor.
    fn pack(self) -> io::Result<Box<dyn Pack>>;
}

/// A module with such a filter.
pub(super) trait Coder: Compressor<Own: Effort> {
    /// The coding's name in fields and in the suffix of the ETag.
    const CODING: &'static [u8];

    /// The variable that turns it off for a request.
    const VARIABLE: &'static [u8];

    /// Whether the client accepts the coding.
    const KEY: &'static VariantKey;
}

/// The filter of a module that compresses.
pub(super) struct Filter<M> {
    is_done: bool,
    module: PhantomData<M>,
}

impl<M: Coder> Filter<M> {
    /// Creates it for a response.
    pub fn create() -> Box<dyn OutputFilter> {
        Box::new(Filter::<M> { is_done: false, module: PhantomData })
    }
}

impl<M: Coder> OutputFilter for Filter<M> {
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        comes && (is_excluded::<M>(request) || request.depends_on(M::KEY) == 0)
    }

    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        let how = settings::in_force::<M>(request);
        if !how.own.is_slow() || !is_for_later(request) {
            return None;
        }
        self.is_done = true;
        Some(Box::pin(async move {
            let body = std::mem::take(&mut request.response.body);
            request.response.body = match prepared::<M>(request, body, &how) {
                Ok(recoded) => {
                    let body = recoded.into_body_later(how.own.buffer_bytes()).await;
                    done(request, body)
                }
                Err(body) => body,
            };
            true
        }))
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if self.is_done {
            return body;
        }
        let how = settings::in_force::<M>(request);
        match prepared::<M>(request, body, &how) {
            Ok(recoded) => done(request, recoded.into_body(how.own.buffer_bytes())),
            Err(body) => body,
        }
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Bytes of output for which the head of a response waits.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

/// Whether a body is compressed before the head is sent, on the pool if it is not short.
fn is_for_later(request: &Request) -> bool {
    request.response.body.at_hand().is_some_and(|length| length > SHORT_BYTES)
}

/// A compressed body that is complete comes as a whole, whatever it was made of: the head has its
/// length, and ranges select bytes of it.
pub(super) fn done(request: &mut Request, body: Body) -> Body {
    if body.length().is_some() {
        request.response.chunked = false;
        request.allow_ranges();
    }
    body
}

/// The body that was made of the same file before, passed on as it was then.
pub(super) fn done_before(request: &mut Request, bytes: Bytes, has_length: bool) -> Body {
    let body = Body::Bytes(bytes);
    if has_length {
        return done(request, body);
    }
    request.response.chunked = true;
    body
}

/// Prepares the head of a response; the body if it stays as it is, or is known already.
fn prepared<M: Coder>(
    request: &mut Request,
    body: Body,
    how: &InForce<M::Own>,
) -> Result<Recoded, Body> {
    if is_excluded::<M>(request) {
        return Err(body);
    }
    if request.head.header_only && body.is_announced() {
        // To HEAD, the other server has sent no body that could be compressed.
        return Err(body);
    }
    // Caches must know that the response depends on the field, whatever the outcome.
    request.response.headers_out.merge(b"Vary", b"Accept-Encoding");
    if request.depends_on(M::KEY) == 0 {
        return Err(body);
    }
    name_coding(request, M::CODING);
    request.response.unset_length();
    request.response.headers_out.unset(b"Content-MD5");
    alter_etag(request, M::CODING, how.etag);
    if request.response.status == 304 {
        return Err(body);
    }
    let is_shared = !how.has_notes && !request.head.header_only;
    let file = is_shared.then(|| request.file_coding(&body, how.own.number())).flatten();
    if let Some(coded) = file.as_ref().and_then(FileCoding::get) {
        return Err(done_before(request, coded.bytes, coded.has_length));
    }
    let Ok(pack) = how.own.pack() else {
        // Its settings were checked when they were read; what is left is a lack of memory.
        request.depends.pure = false;
        return Err(Body::failed());
    };
    let totals = Totals::default();
    request.keep(totals.clone());
    // A cached response has no totals to log.
    request.depends.pure &= !how.has_notes;
    Ok(Recoded::new(body, Coding::Pack(pack), Vec::new(), totals).recorded(file))
}

/// Whether a response is not compressed for any client.
fn is_excluded<M: Coder>(request: &Request) -> bool {
    request.main.is_some()
        || request.response.status == 204
        || request.env.contains(M::VARIABLE)
        || request.response.headers_out.contains(b"Content-Range")
        || is_coded(&content_encoding(request))
}

/// An encoder of a library: what is written to it comes out of it.
pub(super) trait Encode: Write + Send {
    /// What has come out.
    fn out(&mut self) -> &mut Vec<u8>;

    /// Ends the data; returns the rest.
    fn end(self) -> io::Result<Vec<u8>>;
}

/// Compresses with an encoder.
pub(super) struct Packer<E> {
    /// `None` at the end.
    encoder: Option<E>,
    is_slow: bool,
    bytes_in: u64,
    bytes_out: u64,
}

impl<E: Encode> Packer<E> {
    /// With a fresh encoder, which may be slow.
    pub fn new(encoder: E, is_slow: bool) -> Packer<E> {
        Packer { encoder: Some(encoder), is_slow, bytes_in: 0, bytes_out: 0 }
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        if let Some(encoder) = &mut self.encoder {
            self.bytes_out += encoder.out().len() as u64;
            out.append(encoder.out());
        }
    }
}

impl<E: Encode> Pack for Packer<E> {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.bytes_in += input.len() as u64;
        if let Some(encoder) = &mut self.encoder {
            encoder.write_all(input)?;
        }
        self.take(out);
        Ok(())
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(encoder) = &mut self.encoder {
            encoder.flush()?;
        }
        self.take(out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(encoder) = self.encoder.take() {
            let rest = encoder.end()?;
            self.bytes_out += rest.len() as u64;
            out.extend_from_slice(&rest);
        }
        Ok(())
    }

    fn totals(&self) -> (u64, u64) {
        (self.bytes_in, self.bytes_out)
    }

    fn is_slow(&self) -> bool {
        self.is_slow
    }
}

/// Asserts that what is packed in pieces of `size` unpacks to the same.
#[cfg(test)]
pub(super) fn assert_unpacks(
    mut packer: impl Pack,
    text: &[u8],
    (size, flushes): (usize, bool),
    unpack: impl Fn(&[u8]) -> Vec<u8>,
) {
    let mut out = Vec::new();
    for piece in text.chunks(size) {
        packer.push(piece, &mut out).unwrap();
        if flushes {
            packer.flush(&mut out).unwrap();
        }
    }
    packer.finish(&mut out).unwrap();
    assert_eq!(packer.totals(), (text.len() as u64, out.len() as u64));
    assert!(unpack(&out) == text);
}
