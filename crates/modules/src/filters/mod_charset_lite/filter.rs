//! The filters. Source: `xlate_out_filter`, `xlate_in_filter`.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::body::Body;
use server::errors;
use server::filter::{Beginning, InputFilter, OutputFilter};
use server::log::Level;
use server::request::Request;
use server::request_body::{BodyError, BodySource};

use super::{CharsetLite, Translation, Wanted, log_unchanged, of_config};
use crate::filters::mod_xml2enc::charset::{Decoder, Encoder};
use crate::filters::rewritten::{Rewrite, body_of};

/// A longer body is translated while it is sent.
const WHOLE_BYTES: usize = 256 * 1024;

/// `XLATEOUT`
pub(super) struct Filter {
    wanted: Wanted,
    /// Whether the body has been translated.
    is_done: bool,
}

impl Filter {
    /// A filter for a response.
    pub fn new(wanted: Wanted) -> Filter {
        Filter { wanted, is_done: false }
    }
}

impl OutputFilter for Filter {
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        comes || self.wanted != Wanted::Unchanged && is_translated(request)
    }

    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        if !is_translated(request) {
            self.is_done = true;
            return None;
        }
        let translation = match self.wanted {
            Wanted::Translation(translation) => translation,
            Wanted::Unchanged => {
                self.is_done = true;
                log_unchanged(request);
                return None;
            }
            Wanted::Same => return None,
        };
        request.response.unset_length();
        let length = request.response.body.length()?;
        if length == 0 {
            self.is_done = true;
            return None;
        }
        let is_short = length <= WHOLE_BYTES as u64;
        is_short.then(|| Box::pin(begin(self, translation, request)) as Beginning<'r>)
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if self.is_done {
            return body;
        }
        let Wanted::Translation(translation) = self.wanted else {
            // The end comes by itself.
            request.refuse_ranges();
            return body;
        };
        request.response.unset_length();
        let translate = Translate::new(translation);
        let body = body_of(translate, Bytes::new(), body, Vec::new());
        request.response.chunked = true;
        body
    }

    fn is_pure(&self) -> bool {
        self.wanted != Wanted::Unchanged
    }
}

/// Whether the response is text, or all responses are translated.
fn is_translated(request: &Request) -> bool {
    let Some(media) = request.response.content_type.as_deref() else { return false };
    let begins = |prefix: &[u8]| {
        media.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let all = request.dir_of::<CharsetLite>().is_some_and(|dir| dir.all_types.or(false));
    all || begins(b"text/") || begins(b"message/")
}

/// Translates a short body; returns false if the response has become an error.
async fn begin(filter: &mut Filter, translation: Translation, request: &mut Request) -> bool {
    let body = std::mem::take(&mut request.response.body);
    let (head, rest) = body.gathered(WHOLE_BYTES + 1).await.split_head();
    if !matches!(rest, Body::Empty) {
        request.response.body = Body::Parts([Body::Bytes(head), rest].into());
        return true;
    }
    let (mut translate, mut out) = (Translate::new(translation), Vec::new());
    let done = translate.push(&head, &mut out).and_then(|()| translate.end(&mut out));
    if done.is_err() {
        let message = format_args!("xlate filter - an input character was invalid");
        request.log::<CharsetLite>(Level::Error, 2194, message);
        Box::pin(errors::fail_in_filter(request)).await;
        return false;
    }
    filter.is_done = true;
    // Apache passes the end on by itself.
    request.response.chunked = true;
    request.response.body = Body::from(out);
    true
}

/// A translation in pieces.
pub(super) struct Translate {
    decoder: Option<Decoder>,
    encoder: Option<Encoder>,
    text: Vec<u8>,
}

impl Translate {
    /// Begins a translation.
    pub fn new(Translation { from, to }: Translation) -> Translate {
        let encoder = Encoder::new(to);
        let decoder = match encoder.is_some() {
            true => Decoder::new(from),
            // What stays as it is has to be UTF-8 nevertheless.
            false => Decoder::new(from).or_else(|| Some(Decoder::checking())),
        };
        Translate { decoder, encoder, text: Vec::new() }
    }

    fn run(&mut self, piece: &[u8], last: bool, out: &mut Vec<u8>) -> io::Result<()> {
        let mut left_out = 0;
        let text = match &mut self.decoder {
            Some(decoder) => {
                self.text.clear();
                left_out += decoder.decode(piece, last, &mut self.text);
                self.text.as_slice()
            }
            None => piece,
        };
        match &mut self.encoder {
            Some(encoder) => left_out += encoder.encode(text, last, out),
            None => out.extend_from_slice(text),
        }
        match left_out {
            0 => Ok(()),
            _ => Err(io::Error::other("a character can't be translated")),
        }
    }
}

impl Rewrite for Translate {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.run(piece, false, out)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.run(b"", true, out)
    }
}

/// Creates the filter for the body of a request, which is translated the other way round.
pub(super) fn input(request: &mut Request) -> Option<InputFilter> {
    let Translation { from, to } = of_config(request)?;
    let back = Encoder::can(from).then_some(Translation { from: to, to: from })?;
    let translate = Translate::new(back);
    Some(Box::new(move |source| Box::new(Input { source, translate, is_over: false })))
}

/// The body of a request.
struct Input {
    source: Box<dyn BodySource>,
    translate: Translate,
    is_over: bool,
}

impl BodySource for Input {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        while !self.is_over {
            let mut out = Vec::new();
            let done = match ready!(self.source.poll_data(cx)) {
                Some(Ok(piece)) => self.translate.push(&piece, &mut out),
                None => {
                    self.is_over = true;
                    self.translate.end(&mut out)
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
            };
            if done.is_err() {
                self.is_over = true;
                return Poll::Ready(Some(Err(BodyError::Status(400))));
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(out.into())));
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::mod_xml2enc::charset::Charset;

    fn cut(name: (&str, &str), text: &[u8], at: &[usize]) -> io::Result<Vec<u8>> {
        let of = |name: &str| Charset::of(name.as_bytes()).unwrap();
        let mut translate = Translate::new(Translation { from: of(name.0), to: of(name.1) });
        let (mut out, mut start) = (Vec::new(), 0);
        for end in at.iter().copied().chain([text.len()]) {
            translate.push(&text[start..end], &mut out)?;
            start = end;
        }
        translate.end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn the_result_does_not_depend_on_cuts() {
        let text = "é€ 日本 ab".as_bytes();
        let wide: Vec<u8> = "é€ 日".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (name, text) in [
            (("UTF-8", "EUC-JP"), "日本 ab".as_bytes()),
            (("UTF-8", "UTF-8"), text),
            (("UTF-16BE", "UTF-8"), wide.as_slice()),
            (("ISO-8859-1", "UTF-8"), b"\xe9\x80ab".as_slice()),
            (("UTF-8", "windows-1252"), "é€ ab".as_bytes()),
        ] {
            let whole = cut(name, text, &[]).unwrap();
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    assert_eq!(cut(name, text, &[first, second]).unwrap(), whole, "{name:?}");
                }
            }
        }
        assert!(cut(("UTF-8", "ISO-8859-1"), "€".as_bytes(), &[]).is_err());
        assert!(cut(("UTF-8", "ISO-8859-1"), b"caf\xc3", &[]).is_err());
        assert!(cut(("UTF-8", "ISO-8859-1"), b"\xff x", &[1]).is_err());
    }
}
