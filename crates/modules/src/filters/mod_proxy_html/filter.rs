//! The output filter. Source: `proxy_html_filter`.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use conf::expr::Backrefs;
use pcre::Later;
use server::body::Body;
use server::errorlog::Verbatim;
use server::expr;
use server::filter::OutputFilter;
use server::log::Level;
use server::request::{Proxied, Request};

use super::config::Html;
use super::html::Parser;
use super::rules::Rule;
use super::writer::{Dropped, Writer};
use super::{ProxyHtml, has_xml2enc, meta};
use crate::filters::mod_xml2enc::{Found, of_output};
use crate::filters::rewritten::{Rewrite, body_of};

/// How much of a document `ProxyHTMLMeta` looks at.
const HEAD_BYTES: usize = 8192;

/// A shorter document is left alone.
const LEAST_BYTES: usize = 4;

/// `proxy-html`
#[derive(Default)]
pub(super) struct Filter {
    /// The rules whose conditions hold, once they are evaluated.
    rules: Vec<Rule>,
    /// How many conditions are evaluated.
    decided: usize,
}

impl OutputFilter for Filter {
    fn prepare(&mut self, request: &mut Request) -> Result<(), Later> {
        let Some(html) = html(request) else { return Ok(()) };
        if !html.interpolates || !applies(request) {
            return Ok(());
        }
        let rules = html.rules.clone();
        while let Some(rule) = rules.get(self.decided) {
            let holds = match &rule.condition {
                None => true,
                Some(condition) => holds(&condition.0, request)?,
            };
            if holds {
                self.rules.extend(rule.interpolated(request));
            }
            self.decided += 1;
        }
        Ok(())
    }

    fn looks_at(&self, request: &Request) -> usize {
        let Some(html) = html(request).filter(|_| applies(request)) else { return 0 };
        if html.follows_meta { HEAD_BYTES } else { LEAST_BYTES }
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if !applies(request) {
            return body;
        }
        let Some(html) = html(request).cloned() else { return body };
        request.response.unset_length();
        let (head, rest) = body.split_head();
        if matches!(rest, Body::Empty) && head.len() < LEAST_BYTES {
            return Body::Bytes(head);
        }
        let rules = if html.interpolates { Arc::new(self.rules) } else { html.rules.clone() };
        let found = found(request);
        let charset = name_charset(request, &html, found.as_ref());
        let head =
            if html.follows_meta { follow_meta(request, head, found.as_ref()) } else { head };
        let out = match &charset {
            // The document type goes through the conversion as well.
            Some(_) => Vec::new(),
            None => html.doctype.text().to_vec(),
        };
        let doctype = if charset.is_some() { html.doctype.text().to_vec() } else { Vec::new() };
        if html.doctype.enforced().is_some() && request.logs::<ProxyHtml>(Level::Debug) {
            log_dropped(request, &html, &head, found.as_ref());
        }
        let writer = Writer::new(html, rules, doctype);
        let parser = Parser::new(found.map(|found| found.charset));
        let rewrite = of_output(request, charset.as_deref(), Document { parser, writer });
        let body = body_of(rewrite, head, rest, out);
        request.response.chunked &= body.length().is_none();
        body
    }
}

fn html(request: &Request) -> Option<&Html> {
    request.dir_of::<ProxyHtml>().map(|config| &config.html)
}

/// Whether the response is rewritten. Source: `check_filter_init`.
fn applies(request: &Request) -> bool {
    if html(request).is_none_or(|html| html.links.is_none()) {
        return false;
    }
    if request.env.contains(b"PROXY_HTML_FORCE") {
        return true;
    }
    let media = request.response.content_type.as_deref().unwrap_or_default();
    let begins = |prefix: &[u8]| {
        media.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    request.resource.proxied != Proxied::No
        && (begins(b"text/html") || begins(b"application/xhtml+xml"))
}

/// Whether a rule's condition holds. Source: `fixup_rules`.
fn holds(condition: &conf::expr::Expr, request: &mut Request) -> Result<bool, Later> {
    Ok(match expr::condition(condition, request, &mut Backrefs::new())? {
        Ok(holds) => holds,
        Err(why) => {
            let what = format_args!("Error evaluating expr: {why}");
            request.log::<ProxyHtml>(Level::Error, 1421, what);
            // Apache's outcome of an error counts as one that holds.
            true
        }
    })
}

/// What mod_xml2enc has found out.
fn found(request: &Request) -> Option<Found> {
    let found = request.kept::<Found>().cloned();
    if found.is_none() && !has_xml2enc(request) {
        let what = format_args!("No i18n support found.  Install mod_xml2enc if required");
        request.log::<ProxyHtml>(Level::Warn, 1422, what);
    }
    found
}

/// Names the character set in the response; returns its name unless it is UTF-8.
fn name_charset(request: &mut Request, html: &Html, found: Option<&Found>) -> Option<Vec<u8>> {
    let charset = match (found, &html.charset_out) {
        (Some(found), Some(out)) => {
            Some(if out.starts_with(b"*") { found.name.clone() } else { out.clone() })
        }
        _ => None,
    };
    let shown = charset.as_deref().unwrap_or(b"utf-8");
    let media = [b"text/html;charset=", shown].concat();
    request.response.content_type = Some(media);
    charset
}

/// Adds the fields of `<meta>` elements; returns the document without the one that is wrong now.
fn follow_meta(request: &mut Request, head: Bytes, found: Option<&Found>) -> Bytes {
    // Apache looks at the first piece only: up to the element that mod_xml2enc has cut out.
    let piece = found.and_then(|found| found.cut).unwrap_or(head.len()).min(head.len());
    let start = LEAST_BYTES.min(piece);
    let metas = meta::read(head.get(start..piece).unwrap_or_default());
    for (name, value) in metas.fields {
        request.response.headers_out.set(&name, &value);
    }
    match metas.cut {
        None => head,
        Some(cut) => {
            let mut head = head.to_vec();
            head.drain(start + cut.start..start + cut.end);
            head.into()
        }
    }
}

/// Logs what is left out of the beginning of a document.
fn log_dropped(request: &Request, html: &Html, head: &[u8], found: Option<&Found>) {
    let mut parser = Parser::new(found.map(|found| found.charset));
    let mut writer = Writer::new(html.clone(), Arc::default(), Vec::new());
    writer.dropped = Some(Vec::new());
    // A document that is too large ends in an error anyway.
    if parser.push(head, &mut writer).is_err() {
        return;
    }
    for dropped in writer.dropped.unwrap_or_default() {
        let log = |number, what| request.log::<ProxyHtml>(Level::Debug, number, what);
        match dropped {
            Dropped::Element(name) => {
                log(1416, format_args!("Bogus HTML element {} dropped", Verbatim::new(&name)));
            }
            Dropped::OldElement(name) => {
                log(1417, format_args!("Deprecated HTML element {} dropped", Verbatim::new(&name)));
            }
            Dropped::Attribute(name, element, is_old) => {
                let (name, element) = (Verbatim::new(&name), Verbatim::new(&element));
                let (number, kind) = if is_old { (1419, "Deprecated") } else { (1418, "Bogus") };
                log(number, format_args!("{kind} HTML attribute {name} of {element} dropped"));
            }
            Dropped::Missing(name, count) => {
                let name = Verbatim::new(&name);
                let what =
                    format_args!("HTML element {name} is missing {count} required attributes");
                log(1420, what);
            }
        }
    }
}

/// A document that is being rewritten.
struct Document {
    parser: Parser,
    writer: Writer,
}

impl Rewrite for Document {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.parser.push(piece, &mut self.writer).map_err(io::Error::other)?;
        out.append(&mut self.writer.out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.parser.end(&mut self.writer).map_err(io::Error::other)?;
        out.append(&mut self.writer.out);
        Ok(())
    }
}
