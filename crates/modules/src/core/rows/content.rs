//! Content: types, handlers, filters, error documents, and how files are read.

use std::sync::Arc;

use bstr::ByteSlice;
use conf::Arg;
use server::context::{Override, Places};
use server::core::{ErrorDocument, HandlerName};
use server::directive::{Fault, Row, Set, State, Takes};
use server::expr;
use server::request::PathInfoUse;

use super::{Here, file_info, one_of};
use crate::atoi::atol;
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    file_info(
        "AcceptPathInfo",
        Takes::One(accept_path_info),
        "On|Off|Default",
        "Default",
        "Sets whether a URL may have trailing path information after the file.",
    ),
    file_info(
        "AddDefaultCharset",
        Takes::One(add_default_charset),
        "On|Off|charset",
        "Off",
        "Adds a charset to text/plain and text/html responses without one.",
    ),
    Row::<Core>::new(
        "ContentDigest",
        Takes::Flag(|cx, on| {
            cx.dir().content_digest.set(on);
            Ok(())
        }),
        "On|Off",
        "Adds a Content-MD5 field to responses with files.",
    )
    .standing(Places::ALL, Override::OPTIONS)
    .default("Off"),
    file_info(
        "DefaultType",
        Takes::One(default_type),
        "media-type|none",
        "none",
        "Has no effect; any value except none causes a warning.",
    ),
    file_info(
        "EnableMMAP",
        Takes::One(|cx, arg| {
            let on = on_off(arg)?;
            cx.dir().enable_mmap.set(on);
            Ok(())
        }),
        "On|Off",
        "On",
        "Allows mapping files into memory.",
    )
    .state(State::Accepted("files are never mapped: a file that shrinks would kill the process")),
    file_info(
        "EnableSendfile",
        Takes::One(|cx, arg| {
            let on = on_off(arg)?;
            cx.dir().enable_sendfile.set(on);
            Ok(())
        }),
        "On|Off",
        "Off",
        "Allows the kernel to send files directly.",
    )
    .state(State::Accepted("long files are sent by sendfile in plain HTTP, even with Off")),
    file_info(
        "ErrorDocument",
        Takes::Raw(error_document),
        "error-code document",
        "",
        "Sets the response for an error: a text, a local path or another URL.",
    ),
    Row::<Core>::new(
        "ForceType",
        Takes::One(force_type),
        "media-type|None",
        "Sets the media type of all files in a section, regardless of their names.",
    )
    .standing(Places::PER_DIR, Override::FILE_INFO),
    file_info(
        "SetHandler",
        Takes::One(set_handler),
        "handler-name|none|expression",
        "",
        "Sets the handler of all requests in a section.",
    ),
    file_info(
        "SetInputFilter",
        Takes::One(|cx, arg| {
            let names = filter_names(arg);
            cx.dir().input_filters.set(names);
            Ok(())
        }),
        "filter[;filter...]",
        "",
        "Sets the filters that request bodies pass through.",
    ),
    file_info(
        "SetOutputFilter",
        Takes::One(|cx, arg| {
            let names = filter_names(arg);
            cx.dir().output_filters.set(names);
            Ok(())
        }),
        "filter[;filter...]",
        "",
        "Sets the filters that responses pass through.",
    ),
];

fn on_off(arg: &Arg) -> Result<bool, Fault> {
    one_of(arg, &[("on", true), ("off", false)], "parameter must be 'on' or 'off'")
}

fn accept_path_info(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [
        ("on", PathInfoUse::Accept),
        ("off", PathInfoUse::Reject),
        ("default", PathInfoUse::Default),
    ];
    let choice = one_of(arg, &words, "AcceptPathInfo must be set to on, off or default")?;
    cx.dir().accept_path_info.set(choice);
    Ok(())
}

fn add_default_charset(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    const DEFAULT: &[u8] = b"iso-8859-1";
    let charset = match arg.text.as_slice() {
        text if text.eq_ignore_ascii_case(b"off") => None,
        text if text.eq_ignore_ascii_case(b"on") => Some(DEFAULT.to_vec()),
        text => Some(text.to_vec()),
    };
    cx.dir().add_default_charset.set(charset);
    Ok(())
}

fn default_type(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    // Without an effect of its own it still makes a configuration, which others are merged with.
    cx.dir();
    if !arg.is("none") {
        let span = cx.span();
        let (file, line) = cx.build().sources.place(span);
        cx.warn(format!(
            "AH00117: Ignoring deprecated use of DefaultType in line {line} of {file}."
        ));
    }
    Ok(())
}

fn force_type(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let media_type = (!arg.is("none")).then(|| arg.text.to_ascii_lowercase());
    cx.dir().force_type.set(media_type);
    Ok(())
}

/// Source: `set_sethandler` (server/core.c).
fn set_handler(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let handler = if arg.text.contains_str("%{") {
        let flags = cx.expr_flags();
        let build = cx.build();
        // Its value may be any handler.
        build.counts_hosts = true;
        let expr = expr::parse_string(&build.registry, &arg.text, flags)
            .map_err(|why| Fault::new(format!("Can't parse expression : {why}")).at(arg))?;
        HandlerName::Expr(Arc::new(expr))
    } else {
        let handler = HandlerName::of(&arg.text);
        if let HandlerName::Name(name) = &handler {
            let build = cx.build();
            build.counts_hosts |= build.registry.hooks.shows_host_counts(name);
            cx.target.check_handler(name);
        }
        handler
    };
    cx.dir().handler.set(handler);
    Ok(())
}

fn filter_names(arg: &Arg) -> Arc<Vec<Vec<u8>>> {
    let names = arg.text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    Arc::new(names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
}

/// `ErrorDocument code text`; the text is an argument, or a single double quote and the rest of the
/// line. Source: `set_error_document` (server/core.c).
fn error_document(cx: &mut Here<'_, '_>, raw: &Arg) -> Set {
    let mut line = raw.text.as_slice();
    let Some((code, length)) = conf::word::first_word(line) else { return Err(two_arguments()) };
    line = line.get(length..).unwrap_or_default().trim_ascii_start();
    let Some((document, length)) = conf::word::first_word(line) else {
        return Err(two_arguments());
    };
    // Apache treats an empty word as missing.
    let is_missing = code.is_empty() || document.is_empty();
    if is_missing || !line.get(length..).unwrap_or_default().trim_ascii().is_empty() {
        return Err(two_arguments());
    }
    let status = atol(&code);
    let number = u16::try_from(status).ok();
    let Some(number) = number.filter(|number| wire::status::known_line(*number).is_some()) else {
        return Err(Fault::new(format!("Unsupported HTTP response code {code}")).at(raw));
    };
    if document.as_slice() == b"default" {
        cx.dir().error_documents.insert(number, ErrorDocument::Default);
        return Ok(());
    }
    // A document with a space is a text, however it begins.
    let is_text = document.contains(&b' ');
    let is_url = !is_text && document.find(b"://").is_some();
    if is_url && number == 401 {
        let span = cx.span();
        let (file, line) = cx.build().sources.place(span);
        cx.warn(format!(
            "AH00113: {file}:{line} cannot use a full URL in a 401 ErrorDocument directive \
             --- ignoring!"
        ));
        return Ok(());
    }
    let is_location = !is_text && document.first() == Some(&b'/') || is_url;
    let flags = cx.expr_flags();
    let expr = expr::parse_string(&cx.build().registry, &document, flags).map_err(|why| {
        Fault::new(format!("Cannot parse expression in ErrorDocument: {why}")).at(raw)
    })?;
    let kind = if is_location { ErrorDocument::Location } else { ErrorDocument::Text };
    cx.dir().error_documents.insert(number, kind(Arc::new(expr)));
    Ok(())
}

fn two_arguments() -> Fault {
    Fault::new("ErrorDocument takes two arguments, Change responses for HTTP errors")
}
