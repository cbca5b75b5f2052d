//! The text around a listing: the head of the page, `HeaderName`, `ReadmeName`.
//!
//! Source: `emit_head`, `emit_tail`, `do_emit_plain`.

use std::collections::VecDeque;

use rt::Work;
use server::body::Body;
use server::errors::signature;
use server::hooks::Verdict;
use server::path;
use server::request::{FileKind, Request};
use server::subrequest;

use super::DirConfig;
use super::options::Flags;
use crate::filters::rewritten::Passed;

/// Most bytes of a text file around a listing.
const TEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The parts of a response, in order.
#[derive(Default)]
pub struct Parts {
    parts: VecDeque<Body>,
    /// The number of parts up to the last that a subrequest wrote, so that the length is unknown; 0
    /// if none did.
    open: usize,
}

impl Parts {
    /// Appends text.
    pub fn put(&mut self, text: impl Into<Vec<u8>>) {
        let text: Vec<u8> = text.into();
        if !text.is_empty() {
            self.parts.push_back(Body::from(text));
        }
    }

    /// Whether the length is unknown.
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// How Apache passes on the parts, if their lengths are known and it does so one by one.
    pub fn passed(&self) -> Option<Passed> {
        let lengths: Option<Vec<u64>> = self.parts.iter().map(Body::length).collect();
        let lengths = lengths.filter(|_| self.is_open())?;
        let (before, behind) = lengths.split_at_checked(self.open)?;
        let (length, behind) = (lengths.iter().sum(), behind.iter().sum());
        let with_end = Passed::whole(behind).last;
        let last = if behind > 0 { with_end } else { before.last().copied().unwrap_or(0) };
        Some(Passed { length, with_end, last, is_flushed: false, is_held: false })
    }

    /// Joins the parts into a body.
    pub fn into_body(self) -> Body {
        let mut whole = Vec::new();
        for part in &self.parts {
            match part {
                Body::Bytes(bytes) => whole.extend_from_slice(bytes),
                _ => return Body::Parts(self.parts),
            }
        }
        Body::from(whole)
    }
}

/// Writes the text before the list. `title` must be escaped.
pub async fn head(
    config: &DirConfig,
    request: &mut Request,
    flags: Flags,
    title: &[u8],
    parts: &mut Parts,
) {
    let name = config.header.get().cloned();
    let mut needs_preamble = true;
    let mut needs_heading = true;
    if let Some(name) = name {
        match around(request, name, true).await {
            Around::Page(mut sub) => {
                needs_preamble = false;
                if !flags.has(Flags::NO_PREAMBLE) {
                    preamble(config, flags, title, parts);
                }
                needs_heading = !run(&mut sub, parts).await;
                if needs_heading {
                    needs_preamble = flags.has(Flags::NO_PREAMBLE);
                }
            }
            Around::Text(text) => {
                preamble(config, flags, title, parts);
                parts.put(text);
                (needs_preamble, needs_heading) = (false, false);
            }
            Around::Nothing => {}
        }
    }
    if needs_preamble {
        preamble(config, flags, title, parts);
    }
    if needs_heading {
        let start: &[u8] = match config.style_sheet.is_set() {
            true => b"  <h1 id=\"indextitle\">Index of ",
            false => b"<h1>Index of ",
        };
        parts.put([start, title, b"</h1>\n"].concat());
    }
}

/// Writes the text after the list.
pub async fn tail(config: &DirConfig, request: &mut Request, flags: Flags, parts: &mut Parts) {
    let name = config.readme.get().cloned();
    let (mut needs_signature, mut needs_end) = (true, true);
    if let Some(name) = name {
        match around(request, name, false).await {
            Around::Page(mut sub) => {
                if run(&mut sub, parts).await {
                    needs_signature = false;
                    needs_end = !flags.has(Flags::NO_PREAMBLE);
                }
            }
            Around::Text(text) => {
                parts.put(text);
                needs_signature = false;
            }
            Around::Nothing => {}
        }
    }
    if needs_signature {
        parts.put(signature(request, b""));
    }
    if needs_end {
        parts.put(&b"</body></html>\n"[..]);
    }
}

fn preamble(config: &DirConfig, flags: Flags, title: &[u8], parts: &mut Parts) {
    const HTML: &str = "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \
                        \"http://www.w3.org/TR/html4/strict.dtd\">\n<html>\n";
    const XHTML: &str = "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n\
                         \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n\
                         <html xmlns=\"http://www.w3.org/1999/xhtml\">\n";
    let xhtml = flags.has(Flags::XHTML);
    let mut out = if xhtml { XHTML.as_bytes().to_vec() } else { HTML.as_bytes().to_vec() };
    let mut put = |text: &[u8]| out.extend_from_slice(text);
    put(b" <head>\n  <title>Index of ");
    put(title);
    put(b"</title>\n");
    if let Some(sheet) = config.style_sheet.get() {
        put(b"  <link rel=\"stylesheet\" href=\"");
        put(sheet);
        put(b"\" type=\"text/css\"");
        put(if xhtml { b" />\n" } else { b">\n" });
    }
    if let Some(insert) = config.head_insert.get() {
        put(insert);
    }
    put(b" </head>\n <body>\n");
    parts.put(out);
}

/// A file around the listing.
enum Around {
    /// A page whose handler is to run.
    Page(Box<Request>),
    /// Escaped text.
    Text(Vec<u8>),
    /// The file does not exist, or must not be shown.
    Nothing,
}

/// Looks up a file. The header is requested with our query, as if the client accepted only text.
async fn around(request: &mut Request, mut name: Vec<u8>, is_header: bool) -> Around {
    let kept = ["Accept", "Accept-Encoding"].map(|field| {
        (field.as_bytes(), request.head.headers_in.get(field.as_bytes()).map(<[u8]>::to_vec))
    });
    if is_header {
        request.head.headers_in.set(b"Accept", b"text/html, text/plain");
        request.head.headers_in.unset(b"Accept-Encoding");
        name = request.with_query(name);
    }
    let sub = subrequest::lookup_response(request, &name).await;
    if is_header {
        for (field, value) in kept {
            match value {
                Some(value) => request.head.headers_in.set(field, &value),
                None => {
                    request.head.headers_in.unset(field);
                }
            }
        }
    }
    if sub.response.status != 200 || sub.resource.file.kind != FileKind::Regular {
        return Around::Nothing;
    }
    let Some(media_type) = sub.response.content_type.as_deref() else { return Around::Nothing };
    let bare = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_page = bare.eq_ignore_ascii_case(b"text/html")
        || bare.eq_ignore_ascii_case(b"application/xhtml+xml");
    if is_page {
        return Around::Page(Box::new(sub));
    }
    let is_text = media_type.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"text/"));
    if !is_text {
        return Around::Nothing;
    }
    let file = sub.resource.filename;
    let pool = request.engine.handle.blocking().clone();
    let text = pool.run(Work::File, move || read(&file)).await.ok().flatten();
    text.map_or(Around::Nothing, |text| Around::Text(plain(&text)))
}

fn read(file: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    let file = regular::open(path::as_path(file)).ok()?;
    file.take(TEXT_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Escapes text for a page.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut out = b"<pre>\n".to_vec();
    for byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            other => out.push(*other),
        }
    }
    out.extend_from_slice(b"</pre>\n");
    out
}

/// Runs a page's handler and appends its body; returns whether that succeeded.
async fn run(sub: &mut Request, parts: &mut Parts) -> bool {
    if !matches!(subrequest::run(sub).await, Verdict::Ok | Verdict::Done) {
        return false;
    }
    server::filter::apply_all(sub).await;
    parts.parts.push_back(std::mem::take(&mut sub.response.body));
    parts.open = parts.parts.len();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_parts_join() {
        assert_eq!(plain(b"a<b> & \"c\""), b"<pre>\na&lt;b&gt; &amp; \"c\"</pre>\n");
        let mut parts = Parts::default();
        parts.put(&b"one"[..]);
        parts.put(&b""[..]);
        parts.put(&b"two"[..]);
        assert_eq!(parts.into_body().length(), Some(6));
    }
}
