//! The directives of mod_proxy_html.

use std::sync::Arc;

use conf::Arg;
use conf::word::{first_word, is_blank};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::expr;

use super::ProxyHtml;
use super::config::{Doctype, Html};
use super::rules::{Condition, Flags, Pattern, Rule};

type Here<'a, 't> = Cx<'a, 't, ProxyHtml>;

const fn row(
    name: &'static str,
    takes: Takes<ProxyHtml>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<ProxyHtml> {
    Row::new(name, takes, syntax, doc).standing(Places::NOT_HTACCESS, Override::NONE)
}

/// A switch that is off by default.
const fn switch(
    name: &'static str,
    set: fn(&mut Here<'_, '_>, bool) -> Set,
    doc: &'static str,
) -> Row<ProxyHtml> {
    row(name, Takes::Flag(set), "On|Off", doc).default("Off")
}

pub(super) const ROWS: &[Row<ProxyHtml>] = &[
    row(
        "ProxyHTMLEvents",
        Takes::Each(|cx, arg| {
            let events = html(cx).events.get_or_insert_default();
            Arc::make_mut(events).push(arg.text.to_vec());
            Ok(())
        }),
        "attribute [attribute ...]",
        "Declares attributes with scripts, in which ProxyHTMLExtended rewrites links.",
    ),
    row(
        "ProxyHTMLLinks",
        Takes::EachOf(|cx, element, attribute| {
            let links = Arc::make_mut(html(cx).links.get_or_insert_default());
            links.entry(element.text.to_vec()).or_default().push(attribute.text.to_vec());
            Ok(())
        }),
        "element attribute [attribute2 ...]",
        "Declares the attributes of an element that are links.",
    ),
    row(
        "ProxyHTMLURLMap",
        Takes::Raw(url_map),
        "from-pattern to-pattern [flags] [cond]",
        "Adds a rule by which links are rewritten.",
    ),
    row(
        "ProxyHTMLDoctype",
        Takes::Some { least: 1, most: 2, set: doctype },
        "HTML|XHTML [Legacy]|HTML5|fpi [SGML|XML]",
        "Sets the document type of pages, and leaves out elements that HTML or XHTML do not have.",
    ),
    row(
        "ProxyHTMLFixups",
        Takes::Each(fixups),
        "lowercase|dospath|reset ...",
        "Sets how links are corrected.",
    ),
    switch(
        "ProxyHTMLMeta",
        |cx, on| with(cx, |html| html.follows_meta = on),
        "Whether `<meta http-equiv>` elements become header fields.",
    ),
    switch(
        "ProxyHTMLInterp",
        |cx, on| with(cx, |html| html.interpolates = on),
        "Enables variables and conditions in ProxyHTMLURLMap.",
    ),
    switch(
        "ProxyHTMLExtended",
        |cx, on| with(cx, |html| html.is_extended = on),
        "Whether links are rewritten in scripts, style sheets and comments as well.",
    ),
    switch(
        "ProxyHTMLStripComments",
        |cx, on| with(cx, |html| html.strips_comments = on),
        "Whether comments are removed.",
    ),
    row(
        "ProxyHTMLBufSize",
        Takes::One(|_, _| Ok(())),
        "bytes",
        "Sets the initial size of a buffer.",
    )
    .default("8192")
    .state(State::Accepted("buffers grow as they need to")),
    row(
        "ProxyHTMLCharsetOut",
        Takes::One(|cx, arg| with(cx, |html| html.charset_out = Some(arg.text.to_vec()))),
        "Charset|*",
        "Sets the character set of pages, instead of UTF-8; `*` keeps the one that they had.",
    ),
    switch(
        "ProxyHTMLEnable",
        |cx, on| with(cx, |html| html.is_enabled = on),
        "Enables the rewriting of proxied pages.",
    ),
];

fn html<'c>(cx: &'c mut Here<'_, '_>) -> &'c mut Html {
    &mut cx.dir().html
}

fn with(cx: &mut Here<'_, '_>, set: impl FnOnce(&mut Html)) -> Set {
    set(html(cx));
    Ok(())
}

fn doctype(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [kind, more @ ..] = args else { return Ok(()) };
    let more = more.first();
    let is_strict = !more.is_some_and(|word| word.is("legacy"));
    let is_xml = more.is_some_and(|word| matches!(word.text.first(), Some(b'x' | b'X')));
    let (doctype, is_xml) = if kind.is("xhtml") {
        (Doctype::Xhtml { is_strict }, true)
    } else if kind.is("html") {
        (Doctype::Html { is_strict }, false)
    } else if kind.is("html5") {
        (Doctype::Text(b"<!DOCTYPE html>\n".to_vec()), false)
    } else {
        (Doctype::Text(kind.text.to_vec()), is_xml)
    };
    with(cx, |html| (html.doctype, html.is_xml) = (doctype, is_xml))
}

/// As in Apache, an unknown word has no effect.
fn fixups(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let html = html(cx);
    html.lowers |= arg.is("lowercase");
    html.slashes |= arg.is("dospath");
    html.resets |= arg.is("reset");
    Ok(())
}

/// Source: `set_urlmap`, `comp_urlmap`.
fn url_map(cx: &mut Here<'_, '_>, raw: &Arg) -> Set {
    let mut rest = raw.text.as_slice();
    let mut next = || {
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        rest = rest.get(blanks..).unwrap_or_default();
        let (word, length) = first_word(rest)?;
        rest = rest.get(length..).unwrap_or_default();
        Some(word.to_vec())
    };
    let (from, to) = (next().unwrap_or_default(), next().unwrap_or_default());
    let flags = next().unwrap_or_default();
    // Without flags there is no condition.
    let condition = if flags.is_empty() { None } else { next() };
    let condition = condition.filter(|word| !word.is_empty());
    let flags = Flags::of(&flags);
    let pattern = if flags.is_regex {
        let pcre = flags.pcre(cx.build().regex_flags);
        if flags.interpolates_from {
            Pattern::Later(from, pcre)
        } else {
            let regex = pcre::Regex::new(&from, pcre).map_err(|why| {
                Fault::new("Regular expression could not be compiled.").help(why.to_string())
            })?;
            Pattern::Regex(regex)
        }
    } else {
        Pattern::Text(from)
    };
    let condition = match condition {
        None => None,
        Some(text) => {
            let expr_flags = cx.expr_flags();
            let text = Condition::of_old_form(&text).unwrap_or(text);
            let expr = expr::parse_bool(&cx.build().registry, &text, expr_flags);
            Some(Condition(Arc::new(expr.map_err(|why| Fault::new(why.to_string()))?)))
        }
    };
    let rules = Arc::make_mut(&mut html(cx).rules);
    rules.push(Rule { pattern, to, flags, condition });
    Ok(())
}
