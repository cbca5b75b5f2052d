//! The output filters: to UTF-8, and from UTF-8 for mod_proxy_html.

use std::io;

use bytes::Bytes;
use server::body::Body;
use server::errorlog::Verbatim;
use server::filter::OutputFilter;
use server::log::Level;
use server::request::{Proxied, Request};

use super::Xml2enc;
use super::charset::{Charset, Decoder, Encoder};
use super::sniff::{Sniffed, sniff};
use crate::filters::rewritten::{Rewrite, body_of};

/// How much of a text is sniffed. Apache waits for 4 KiB, and sniffs what came with them.
const HEAD_BYTES: usize = 8192;

/// `xml2enc`: converts text to UTF-8, unless the parser behind does it. Source: `xml2enc_ffunc`.
pub(crate) struct Sniff {
    /// Whether `xml2StartParse` applies: not if mod_proxy_html has added the filter.
    pub may_skip: bool,
}

impl OutputFilter for Sniff {
    fn looks_at(&self, request: &Request) -> usize {
        if is_text(request) { HEAD_BYTES } else { 0 }
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if !is_text(request) {
            return body;
        }
        let (head, rest) = body.split_head();
        let Sniffed { mut found, convert, cut } = sniff(request, &head);
        let mut text = head.to_vec();
        // Behind the element that is cut out, no element counts as the start.
        let searched = cut.as_ref().map_or(text.len(), |cut| cut.start);
        if let Some(cut) = cut {
            text.drain(cut);
        }
        if self.may_skip {
            let skipped = skip(request, text.get(..searched).unwrap_or_default());
            text.drain(..skipped);
            found.cut = found.cut.map(|at| at.saturating_sub(skipped));
        }
        request.response.unset_length();
        request.keep(found);
        let is_whole = matches!(rest, Body::Empty);
        if is_whole {
            request.allow_ranges();
        }
        // As in Apache, the end of another server's response does not come with its beginning.
        let is_open = !is_whole && request.resource.proxied != Proxied::No;
        let text = Bytes::from(text);
        let body = match convert {
            None if matches!(rest, Body::Empty) => Body::Bytes(text),
            None => Body::Parts([Body::Bytes(text), rest].into()),
            Some(charset) => {
                let decode = Decode { decoder: decoder(charset) };
                note_invalid(request, charset, &text, matches!(rest, Body::Empty));
                body_of(decode, text, rest, Vec::new())
            }
        };
        match is_open {
            true => request.response.chunked = true,
            false => request.response.chunked &= body.length().is_none(),
        }
        body
    }
}

/// Whether the response is text (RFC 7303).
fn is_text(request: &Request) -> bool {
    let Some(media) = request.response.content_type.as_deref() else { return false };
    let bare = media.split(|byte| *byte == b';').next().unwrap_or_default().to_ascii_lowercase();
    bare.starts_with(b"text/")
        || bare == b"application/xml"
        || (bare.len() > b"a/b+xml".len() && bare.ends_with(b"+xml"))
}

/// How many bytes precede the first element of `xml2StartParse`. Source: `fix_skipto`.
fn skip(request: &Request, text: &[u8]) -> usize {
    let Some(starts) = request.dir_of::<Xml2enc>().and_then(|config| config.starts.get()) else {
        return 0;
    };
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let places = text.iter().enumerate().filter(|(_, byte)| **byte == b'<');
    for (at, _) in places {
        let tail = text.get(at + 1..).unwrap_or_default();
        let begins = |name: &Vec<u8>| {
            tail.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        if let Some(name) = starts.iter().find(|name| begins(name)) {
            let shown = Verbatim::new(name);
            let what = format_args!("Skipped to first <{shown}> element");
            request.log::<Xml2enc>(Level::Debug, 1428, what);
            if !tail.contains(&b'<') {
                warn_of_start(request);
            }
            return at;
        }
    }
    warn_of_start(request);
    0
}

/// As in Apache, this is logged as well if the element found is the last.
fn warn_of_start(request: &Request) {
    let what = format_args!("Failed to find start of recognised HTML!");
    request.log::<Xml2enc>(Level::Warn, 1429, what);
}

/// Logs that a text has bytes which are left out, as far as it is there.
fn note_invalid(request: &Request, charset: Charset, text: &[u8], is_whole: bool) {
    if !request.logs::<Xml2enc>(Level::Error) {
        return;
    }
    let left_out = decoder(charset).decode(text, is_whole, &mut Vec::new());
    if left_out > 0 {
        let what = format_args!("Skipping invalid byte(s) in input stream!");
        request.log::<Xml2enc>(Level::Error, 1444, what);
    }
}

/// Conversion to UTF-8. That of UTF-8 itself leaves out what is none, as iconv does.
fn decoder(charset: Charset) -> Decoder {
    Decoder::new(charset).unwrap_or_else(Decoder::checking)
}

/// Applies a decoder to a body.
struct Decode {
    decoder: Decoder,
}

impl Rewrite for Decode {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.decoder.decode(piece, false, out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.decoder.decode(b"", true, out);
        Ok(())
    }
}

/// Conversion from UTF-8, behind a rewrite.
pub(crate) struct Output<R> {
    rewrite: R,
    encoder: Option<Encoder>,
    plain: Vec<u8>,
}

/// Converts what `rewrite` writes to the character set of a name, if that is possible; otherwise it
/// stays UTF-8, and a line is logged.
pub(crate) fn of_output<R>(request: &Request, name: Option<&[u8]>, rewrite: R) -> Output<R> {
    let encoder = name.and_then(|name| match Charset::of(name).filter(|set| Encoder::can(*set)) {
        Some(charset) => Encoder::new(charset),
        None => {
            let shown = Verbatim::new(name);
            let what = format_args!("xml2enc: Charset {shown} not supported.");
            request.log::<Xml2enc>(Level::Error, 1427, what);
            None
        }
    });
    Output { rewrite, encoder, plain: Vec::new() }
}

impl<R: Rewrite> Rewrite for Output<R> {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let Some(encoder) = &mut self.encoder else { return self.rewrite.push(piece, out) };
        self.rewrite.push(piece, &mut self.plain)?;
        encoder.encode(&self.plain, false, out);
        self.plain.clear();
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(encoder) = &mut self.encoder else { return self.rewrite.end(out) };
        self.rewrite.end(&mut self.plain)?;
        encoder.encode(&self.plain, true, out);
        self.plain.clear();
        Ok(())
    }
}
