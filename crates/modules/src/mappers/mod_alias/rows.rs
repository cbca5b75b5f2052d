//! The directives.

use std::sync::Arc;

use conf::Arg;
use conf::expr::Expr;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::expr;
use server::within::Within;

use super::{Alias, AliasEntry, Pattern, Redirect, Whole, entry};
use crate::mappers::number;

const fn redirect(name: &'static str, takes: Takes<Alias>, syntax: &'static str) -> Row<Alias> {
    Row::new(name, takes, syntax, "Redirects a URL path to another URL, or responds with a status.")
        .standing(Places::ALL, Override::FILE_INFO)
}

const fn alias(name: &'static str, takes: Takes<Alias>, doc: &'static str) -> Row<Alias> {
    Row::new(name, takes, "[URL-path] file-path|directory-path", doc)
        .standing(Places::NOT_HTACCESS, Override::NONE)
}

pub(super) const ROWS: &[Row<Alias>] = &[
    alias(
        "Alias",
        Takes::Some { least: 1, most: 2, set: |cx, args| set_alias(cx, args, None) },
        "Maps a URL path to a file or folder.",
    ),
    alias(
        "ScriptAlias",
        Takes::Some { least: 1, most: 2, set: |cx, args| set_alias(cx, args, Some(SCRIPT)) },
        "Maps a URL path to a folder of CGI programs.",
    ),
    Row::new(
        "AliasMatch",
        Takes::Two(|cx, regex, target| alias_match(cx, regex, target, None)),
        "regex file-path|directory-path",
        "Maps URL paths that match a regular expression to files.",
    ),
    Row::new(
        "ScriptAliasMatch",
        Takes::Two(|cx, regex, target| alias_match(cx, regex, target, Some(SCRIPT))),
        "regex file-path|directory-path",
        "Maps URL paths that match a regular expression to CGI programs.",
    ),
    Row::new(
        "AliasPreservePath",
        Takes::Flag(preserve_path),
        "OFF|ON",
        "Keeps the path after the section's when an Alias applies to a whole Location.",
    )
    .standing(Places::ALL, Override::FILE_INFO)
    .default("OFF"),
    redirect(
        "Redirect",
        Takes::Some { least: 1, most: 3, set: |cx, args| set_redirect(cx, args, 302, false) },
        "[status] [URL-path] URL",
    ),
    redirect(
        "RedirectMatch",
        Takes::Some { least: 2, most: 3, set: |cx, args| set_redirect(cx, args, 302, true) },
        "[status] regex URL",
    ),
    redirect(
        "RedirectTemp",
        Takes::Some { least: 2, most: 2, set: |cx, args| set_redirect(cx, args, 302, false) },
        "URL-path URL",
    ),
    redirect(
        "RedirectPermanent",
        Takes::Some { least: 2, most: 2, set: |cx, args| set_redirect(cx, args, 301, false) },
        "URL-path URL",
    ),
    Row::new(
        "RedirectRelative",
        Takes::Flag(relative),
        "On|Off",
        "Leaves the path of a redirect relative, without the server's name.",
    )
    .standing(Places::ALL, Override::FILE_INFO)
    .default("Off"),
];

type Here<'a, 't> = Cx<'a, 't, Alias>;

fn preserve_path(cx: &mut Here<'_, '_>, on: bool) -> Set {
    cx.dir().preserve_path.set(on);
    Ok(())
}

fn relative(cx: &mut Here<'_, '_>, on: bool) -> Set {
    cx.dir().relative.set(on);
    Ok(())
}

/// The handler of `ScriptAlias`.
const SCRIPT: &str = "cgi-script";

fn set_alias(cx: &mut Here<'_, '_>, args: &[Arg], handler: Option<&'static str>) -> Set {
    if let Some(handler) = handler {
        cx.target.check_handler(handler.as_bytes());
    }
    match args {
        [from, target] => {
            if !cx.outside_sections() {
                let name = cx.target.directive;
                return Err(format!("{name} cannot occur within directory context").into());
            }
            let from = Pattern::Prefix(from.text.to_vec());
            push_alias(
                cx,
                AliasEntry { span: cx.span(), from, target: target.text.to_vec(), handler },
            );
            Ok(())
        }
        [target] => whole(cx, target, handler),
        _ => Ok(()),
    }
}

fn whole(cx: &mut Here<'_, '_>, target: &Arg, handler: Option<&'static str>) -> Set {
    let name = cx.target.directive;
    cx.not_within(name, &[Within::Limit, Within::Directory, Within::Files])?;
    let Some(path) = cx.path().map(<[u8]>::to_vec) else {
        return Err("Alias must have two arguments when used globally".into());
    };
    let target = parse(cx, target, "alias")?;
    cx.dir().alias.set(Arc::new(Whole { path, target, handler }));
    Ok(())
}

fn parse(cx: &mut Here<'_, '_>, arg: &Arg, what: &str) -> Result<Expr, Fault> {
    let flags = cx.expr_flags();
    expr::parse_string(&cx.build().registry, &arg.text, flags).map_err(|why| {
        let text = format!("Cannot parse {what} expression '{}': {why}", arg.text);
        Fault { message: text, span: Some(arg.part(why.offset, why.length)), help: None }
    })
}

fn alias_match(
    cx: &mut Here<'_, '_>,
    regex: &Arg,
    target: &Arg,
    handler: Option<&'static str>,
) -> Set {
    if let Some(handler) = handler {
        cx.target.check_handler(handler.as_bytes());
    }
    let from = compile(cx, regex)?;
    push_alias(cx, AliasEntry { span: cx.span(), from, target: target.text.to_vec(), handler });
    Ok(())
}

fn compile(cx: &mut Here<'_, '_>, arg: &Arg) -> Result<Pattern, Fault> {
    let regex = cx.build().regex(&arg.text, false).map_err(|fault| Fault {
        message: "Regular expression could not be compiled.".to_owned(),
        span: Some(arg.span),
        ..fault
    })?;
    Ok(Pattern::Regex(regex))
}

/// Adds an alias, and warns if an earlier one always takes precedence.
fn push_alias(cx: &mut Here<'_, '_>, added: AliasEntry) {
    let name = cx.target.directive;
    if let Pattern::Prefix(path) = &added.from {
        let hides = |earlier: &&AliasEntry| match &earlier.from {
            Pattern::Prefix(prefix) => entry::prefix_length(path, prefix).is_some(),
            Pattern::Regex(regex) => regex.matches(path, None).surely(),
        };
        let hiding = cx.server().aliases.iter().find(hides).map(|earlier| {
            let script = if earlier.handler.is_some() { "Script" } else { "" };
            let matching = if matches!(earlier.from, Pattern::Regex(_)) { "Match" } else { "" };
            format!("{script}Alias{matching}")
        });
        if let Some(earlier) = hiding {
            let span = cx.span();
            let (file, line) = cx.build().sources.place(span);
            cx.warn(format!(
                "AH00671: The {name} directive in {file} at line {line} will probably never match \
                 because it overlaps an earlier {earlier}."
            ));
        }
    }
    cx.server().aliases.push(added);
}

/// The status for a word or number.
fn status_of(arg: &Arg) -> Option<u16> {
    const WORDS: [(&str, u16); 4] =
        [("permanent", 301), ("temp", 302), ("seeother", 303), ("gone", 410)];
    let word = WORDS.iter().find(|(word, _)| arg.is(word)).map(|(_, status)| *status);
    let is_number = arg.text.first().is_some_and(u8::is_ascii_digit);
    word.or_else(|| is_number.then(|| number(&arg.text)))
}

/// Source: `add_redirect_internal`
fn set_redirect(cx: &mut Here<'_, '_>, args: &[Arg], status: u16, matching: bool) -> Set {
    let named = args.first().and_then(status_of);
    let status = named.unwrap_or(status);
    let is_redirect = wire::status::is_redirect(status);
    let in_section = cx.path().is_some();
    let (from, target) = match (named, args) {
        (None, [_, _, _]) => return Err("Redirect: invalid first argument (of three)".into()),
        (Some(_), [_]) if !is_redirect => {
            cx.dir().redirect.set((status, None));
            return Ok(());
        }
        (Some(_), [_, target]) if is_redirect && in_section => {
            return redirect_section(cx, status, target);
        }
        (None, [target]) if in_section => return redirect_section(cx, status, target),
        (Some(_), [_, from]) => (from, None),
        (Some(_), [_, from, target]) => (from, Some(target)),
        (None, [from, target]) => (from, Some(target)),
        _ => return Err("URL to redirect to is missing".into()),
    };
    let from_pattern = match matching {
        true => compile(cx, from)?,
        false => Pattern::Prefix(from.text.to_vec()),
    };
    match target {
        None if is_redirect => return Err("URL to redirect to is missing".into()),
        Some(url) if !is_redirect => {
            return Err(Fault::new("Redirect URL not valid for this status").at(url));
        }
        Some(url) if !matching && url.text.first() != Some(&b'/') && !entry::is_url(&url.text) => {
            return Err(Fault::new("Redirect to non-URL").at(url));
        }
        _ => {}
    }
    let target = target.map(|arg| arg.text.to_vec());
    let added = Redirect { span: cx.span(), from: from_pattern, target, status };
    if in_section {
        cx.dir().redirects.push(added);
    } else {
        cx.server().redirects.push(added);
    }
    Ok(())
}

/// Sets a redirect for a whole section.
fn redirect_section(cx: &mut Here<'_, '_>, status: u16, target: &Arg) -> Set {
    let target = parse(cx, target, "redirect")?;
    cx.dir().redirect.set((status, Some(Arc::new(target))));
    Ok(())
}
