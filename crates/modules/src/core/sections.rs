//! The containers: `<VirtualHost>`, `<Directory>`, `<Location>`, `<Files>`, `<If>`, `<Limit>` and
//! similar.
//!
//! Source: `dirsection`, `urlsection`, `filesection`, `ifsection`, `ap_limit_section`,
//! `virtualhost_section` (server/core.c).

use std::sync::Arc;

use conf::{Arg, Node};
use server::context::{Override, Places};
use server::core::CoreDir;
use server::directive::{Fault, Row, Set, Takes, Target};
use server::expr;
use server::host::HostDraft;
use server::registry::Slots;
use server::section::{Condition, Matches, Section};
use server::within::Within;
use wire::method::{Method, MethodSet};

use crate::core::Core;
use crate::core::rows::Here;
use crate::core::section_argument::{Argument, split, words};

/// The rows of this file.
pub(super) const ROWS: &[Row<Core>] = &[
    Row::<Core>::new(
        "VirtualHost",
        Takes::Section(virtual_host),
        "addr[:port] [addr[:port]] ...",
        "Encloses directives for requests to certain addresses and host names.",
    )
    .standing(Places::SERVER, Override::NONE),
    Row::<Core>::new(
        "Directory",
        Takes::Section(|cx, raw, nodes| directory(cx, raw, nodes, false)),
        "directory-path",
        "Encloses directives for a directory and everything below it.",
    ),
    Row::<Core>::new(
        "DirectoryMatch",
        Takes::Section(|cx, raw, nodes| directory(cx, raw, nodes, true)),
        "regex",
        "Encloses directives for directories whose path matches a regular expression.",
    ),
    Row::<Core>::new(
        "Location",
        Takes::Section(|cx, raw, nodes| location(cx, raw, nodes, false)),
        "URL-path|URL",
        "Encloses directives for URLs that begin with a path.",
    ),
    Row::<Core>::new(
        "LocationMatch",
        Takes::Section(|cx, raw, nodes| location(cx, raw, nodes, true)),
        "regex",
        "Encloses directives for URLs that match a regular expression.",
    ),
    Row::<Core>::new(
        "Files",
        Takes::Section(|cx, raw, nodes| files(cx, raw, nodes, false)),
        "filename",
        "Encloses directives for files with a name.",
    )
    .standing(Places::ALL, Override::ALL),
    Row::<Core>::new(
        "FilesMatch",
        Takes::Section(|cx, raw, nodes| files(cx, raw, nodes, true)),
        "regex",
        "Encloses directives for files whose name matches a regular expression.",
    )
    .standing(Places::ALL, Override::ALL),
    Row::<Core>::new(
        "If",
        Takes::Section(|cx, raw, nodes| conditional(cx, raw, nodes, Link::If)),
        "expression",
        "Encloses directives for requests for which an expression is true.",
    )
    .standing(Places::ALL, Override::ALL),
    Row::<Core>::new(
        "ElseIf",
        Takes::Section(|cx, raw, nodes| conditional(cx, raw, nodes, Link::ElseIf)),
        "expression",
        "Encloses directives for requests to which no preceding section of the chain applies and \
         for which an expression is true.",
    )
    .standing(Places::ALL, Override::ALL),
    Row::<Core>::new(
        "Else",
        Takes::Section(|cx, raw, nodes| conditional(cx, raw, nodes, Link::Else)),
        "",
        "Encloses directives for requests to which no preceding section of the chain applies.",
    )
    .standing(Places::ALL, Override::ALL),
    Row::<Core>::new(
        "Limit",
        Takes::Section(|cx, raw, nodes| limit(cx, raw, nodes, false)),
        "method [method] ... ",
        "Restricts the enclosed access control to some methods.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG.or(Override::LIMIT)),
    Row::<Core>::new(
        "LimitExcept",
        Takes::Section(|cx, raw, nodes| limit(cx, raw, nodes, true)),
        "method [method] ... ",
        "Restricts the enclosed access control to all methods except some.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG.or(Override::LIMIT)),
];

fn virtual_host(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node]) -> Set {
    let addresses = words(raw);
    if addresses.is_empty() {
        return Err("<VirtualHost> directive requires additional arguments".into());
    }
    let mut draft = HostDraft::new(&cx.build().registry);
    for address in &addresses {
        if let Err(why) = conf::values::VirtualHostAddress::parse(&address.text) {
            // As in Apache, an address that can't be parsed is ignored; a missing host is an error.
            if why.starts_with("Missing") || why.starts_with("Scope") {
                return Err(Fault::new(why).at(raw));
            }
            let text = &address.text;
            cx.warn(format!("AH00547: Could not resolve host name {text} -- ignoring!"));
        }
    }
    draft.span = cx.span();
    draft.addresses = addresses;
    let mut target = Target {
        build: &mut *cx.target.build,
        server: &mut draft.server,
        dir: &mut draft.dir,
        place: Places::VHOST,
        container: Some("VirtualHost"),
        path: None,
        limited: None,
        allowed: Override::ALL,
        allowed_options: None,
        allowed_names: None,
        nonfatal: Override::NONE,
        nonfatal_unknown: false,
        span: cx.target.span,
        directive: "",
    };
    target.apply(nodes);
    cx.build().hosts.push(draft);
    Ok(())
}

fn directory(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node], is_match: bool) -> Set {
    let name = if is_match { "DirectoryMatch" } else { "Directory" };
    let argument = Argument::read(name, raw, is_match)?;
    if !argument.rest.is_empty() {
        return Err(format!("Multiple <{name}> arguments not (yet) supported.").into());
    }
    let (matches, path) = if argument.is_regex {
        (Matches::Regex(cx.build().regex(&argument.text, false)?), argument.text)
    } else {
        let mut path = directory_path(cx, &argument.text).ok_or_else(|| {
            let text = bstr::BStr::new(&argument.text);
            Fault::new(format!("<Directory \"{text}\"> path is invalid.")).at(raw)
        })?;
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        (pattern(path.clone()), path)
    };
    let dir = inside(cx, name, path, nodes);
    let section = Section::new(matches, dir, cx.span());
    cx.server().directories.push(section);
    Ok(())
}

/// Canonicalises a path; one that is not absolute (a shell pattern may begin with `*`) stays as it
/// is.
fn directory_path(cx: &mut Here<'_, '_>, text: &[u8]) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    if conf::fnmatch::has_wildcard(text) {
        return Some(text.to_vec());
    }
    let root = cx.build().server_root.clone();
    let path = conf::values::relative_to(&root, text)?;
    Some(path.as_os_str().as_bytes().to_vec())
}

fn location(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node], is_match: bool) -> Set {
    let name = if is_match { "LocationMatch" } else { "Location" };
    let argument = Argument::read(name, raw, is_match)?;
    if !argument.rest.is_empty() {
        return Err(format!("Multiple <{name}> arguments not (yet) supported.").into());
    }
    let matches = if argument.is_regex {
        Matches::Regex(cx.build().regex(&argument.text, false)?)
    } else {
        pattern(argument.text.clone())
    };
    let dir = inside(cx, name, argument.text, nodes);
    let section = Section::new(matches, dir, cx.span());
    cx.server().locations.push(section);
    Ok(())
}

fn files(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node], is_match: bool) -> Set {
    let name = if is_match { "FilesMatch" } else { "Files" };
    cx.not_within(&format!("<{name}>"), &[Within::Limit, Within::Location])?;
    let argument = Argument::read(name, raw, is_match)?;
    if !argument.rest.is_empty() {
        return Err(format!("Multiple <{name}> arguments not (yet) supported.").into());
    }
    let matches = if argument.is_regex {
        Matches::Regex(cx.build().regex(&argument.text, false)?)
    } else {
        pattern(argument.text.clone())
    };
    let dir = inside(cx, name, argument.text, nodes);
    let section = Section::new(matches, dir, cx.span());
    cx.dir().files.push(section);
    Ok(())
}

/// How a conditional section relates to the preceding ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    If,
    ElseIf,
    Else,
}

/// The path of conditional sections, wherever they stand: directives only notice that they are in a
/// section (`ifsection`).
const CONDITIONAL_PATH: &[u8] = b"*If";

fn conditional(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node], link: Link) -> Set {
    let name = match link {
        Link::If => "If",
        Link::ElseIf => "ElseIf",
        Link::Else => "Else",
    };
    cx.not_within(&format!("<{name}>"), &[Within::Limit])?;
    let holds = condition(cx, raw, link, name)?;
    if link != Link::If {
        check_chain(cx)?;
    }
    let dir = inside(cx, name, CONDITIONAL_PATH.to_vec(), nodes);
    let span = cx.span();
    let (file, line) = cx.build().sources.place(span);
    let place = format!("{file}:{line}").into();
    let matches = Matches::If(Condition { is_else: link != Link::If, holds, place });
    let section = Section::new(matches, dir, span);
    cx.dir().ifs.push(section);
    Ok(())
}

fn condition(
    cx: &mut Here<'_, '_>,
    raw: &Arg,
    link: Link,
    name: &str,
) -> Result<Option<Arc<conf::expr::Expr>>, Fault> {
    if link == Link::Else {
        if raw.text.trim_ascii().is_empty() {
            return Ok(None);
        }
        return Err("<Else> does not take an argument".into());
    }
    let Some((text, rest)) = split(&raw.text) else {
        return Err(format!("<{name}> directive requires additional arguments").into());
    };
    let help = "enclose the whole condition in double quotes";
    let parsed = {
        let flags = cx.expr_flags();
        expr::parse_bool(&cx.build().registry, &text, flags)
    };
    let parsed = parsed.map_err(|why| {
        let fault = Fault::new(format!("Cannot parse condition clause: {why}")).at(raw);
        if rest.is_empty() { fault } else { fault.help(help) }
    })?;
    if !rest.is_empty() {
        let message = format!("Multiple <{name}> arguments not supported.");
        return Err(Fault::new(message).at(raw).help(help));
    }
    Ok(Some(Arc::new(parsed)))
}

/// Checks that the last section can be followed by another of its chain.
fn check_chain(cx: &mut Here<'_, '_>) -> Result<(), Fault> {
    let last = cx.dir().ifs.last().map(|section| &section.matches);
    if let Some(Matches::If(Condition { holds: Some(_), .. })) = last {
        return Ok(());
    }
    let missing = "<Else> or <ElseIf> section without previous <If> or <ElseIf> section in same \
                   scope";
    Err(missing.into())
}

fn limit(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node], except: bool) -> Set {
    let name = if except { "LimitExcept" } else { "Limit" };
    // As in Apache, it begins the core configuration of its section or file, which then merges.
    let _ = cx.dir();
    let mut set = MethodSet::EMPTY;
    let words = words(raw);
    if words.is_empty() {
        return Err(format!("<{name}> directive requires additional arguments").into());
    }
    for word in words {
        let method = Method::of(&word.text, &cx.build().methods);
        if method == Method::TRACE && !except {
            return Err("TRACE cannot be controlled by <Limit>, see TraceEnable".into());
        }
        let method = match method.is_known() {
            true => method,
            // Settings of an `.htaccess` must not outlive it.
            false if cx.in_htaccess() => {
                let fault = "from .htaccess configuration";
                let fault =
                    format!("Could not register method '{}' for <{name} {fault}", word.text);
                return Err(Fault::new(fault).at(&word));
            }
            false => cx.build().methods.register(&word.text).unwrap_or(Method::INVALID),
        };
        set.insert(method);
    }
    if except {
        set = set.complement();
    }
    let outer = cx.target.limited;
    let limited = outer.map_or(set, |outer| outer.intersection(set));
    if outer.is_some() && limited.is_empty() {
        return Err(format!("<{name}> directive excludes all methods").into());
    }
    if outer == Some(limited) {
        return Err(format!("<{name}> directive specifies methods already excluded").into());
    }
    let container = cx.target.container.replace(name);
    cx.target.limited = Some(limited);
    cx.apply(nodes);
    cx.target.limited = outer;
    cx.target.container = container;
    Ok(())
}

/// Applies the contents of a section to configurations of its own.
fn inside(cx: &mut Here<'_, '_>, name: &'static str, path: Vec<u8>, nodes: &[Node]) -> Slots {
    let registry = cx.build().registry.clone();
    let mut dir = registry.empty_dir();
    // In Apache each section has its own core configuration, which merges even if it is empty.
    let _ = dir.edit::<CoreDir>(registry.core);
    cx.target.inside(name, Some(path), &mut dir).apply(nodes);
    dir
}

/// A literal path or a shell pattern.
fn pattern(text: Vec<u8>) -> Matches {
    if conf::fnmatch::has_wildcard(&text) { Matches::Wildcard(text) } else { Matches::Path(text) }
}
