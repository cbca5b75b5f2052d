//! The directives of mod_include.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::Include;
use super::config::{Tags, XBitHack};

type Here<'a, 't> = Cx<'a, 't, Include>;

pub(super) const ROWS: &[Row<Include>] = &[
    Row::<Include>::new(
        "XBitHack",
        Takes::One(xbithack),
        "on|off|full",
        "Parses HTML files that their owner can execute.",
    )
    .standing(Places::ALL, Override::OPTIONS)
    .default("off"),
    anywhere(
        "SSIErrorMsg",
        Takes::One(|cx, arg| {
            cx.dir().error_message.set(Arc::from(&arg.text[..]));
            Ok(())
        }),
        "message",
        "Sets the text that takes the place of an element that fails.",
    )
    .default("\"[an error occurred while processing this directive]\""),
    anywhere(
        "SSITimeFormat",
        Takes::One(|cx, arg| {
            cx.dir().time_format.set(Arc::from(&arg.text[..]));
            Ok(())
        }),
        "formatstring",
        "Sets the format of dates, as for strftime.",
    )
    .default("\"%A, %d-%b-%Y %H:%M:%S %Z\""),
    anywhere(
        "SSIUndefinedEcho",
        Takes::One(|cx, arg| {
            cx.dir().undefined_echo.set(Arc::from(&arg.text[..]));
            Ok(())
        }),
        "string",
        "Sets the text of a variable that is not set.",
    )
    .default("\"(none)\""),
    Row::<Include>::new(
        "SSIStartTag",
        Takes::One(start_tag),
        "tag",
        "Sets what begins an element.",
    )
    .standing(Places::HOST, Override::NONE)
    .default("\"<!--#\""),
    Row::<Include>::new("SSIEndTag", Takes::One(end_tag), "tag", "Sets what ends an element.")
        .standing(Places::HOST, Override::NONE)
        .default("\"-->\""),
    switch(
        "SSILegacyExprParser",
        |cx, on| {
            cx.dir().legacy_expressions.set(on);
            Ok(())
        },
        "Reads conditions in the syntax of Apache 2.2.",
    ),
    switch(
        "SSILastModified",
        |cx, on| {
            cx.dir().last_modified.set(on);
            Ok(())
        },
        "Keeps Last-Modified, or sets it to the time of the file.",
    ),
    switch(
        "SSIETag",
        |cx, on| {
            cx.dir().etag.set(on);
            Ok(())
        },
        "Allows ETags for pages.",
    ),
];

const fn anywhere(
    name: &'static str,
    takes: Takes<Include>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Include> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::ALL)
}

const fn switch(
    name: &'static str,
    set: fn(&mut Here<'_, '_>, bool) -> Set,
    doc: &'static str,
) -> Row<Include> {
    Row::new(name, Takes::Flag(set), "on|off", doc)
        .standing(Places::PER_DIR, Override::LIMIT)
        .default("off")
}

fn xbithack(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let hack = match arg.text.to_ascii_lowercase().as_slice() {
        b"off" => XBitHack::Off,
        b"on" => XBitHack::On,
        b"full" => XBitHack::Full,
        _ => return Err(Fault::new("XBitHack must be set to Off, On, or Full").at(arg)),
    };
    cx.dir().xbithack.set(hack);
    Ok(())
}

fn start_tag(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let start = tag(arg, "SSIStartTag may not contain any whitespaces")?;
    let tags = Tags { start, ..tags(cx) };
    cx.server().tags.set(Arc::new(tags));
    Ok(())
}

fn end_tag(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let end = tag(arg, "SSIEndTag may not contain any whitespaces")?;
    let tags = Tags { end, ..tags(cx) };
    cx.server().tags.set(Arc::new(tags));
    Ok(())
}

fn tag(arg: &Arg, fault: &'static str) -> Result<Vec<u8>, Fault> {
    // Apache's `isspace`, which includes the vertical tab.
    if arg.text.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0x0b) {
        return Err(Fault::new(fault).at(arg));
    }
    Ok(arg.text.to_vec())
}

fn tags(cx: &mut Here<'_, '_>) -> Tags {
    cx.server().tags.get().map(|tags| (**tags).clone()).unwrap_or_default()
}
