//! mod_vhost_alias: a document root for each host name or address, by a pattern.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_vhost_alias.html>

mod pattern;

use std::borrow::Cow;
use std::sync::Arc;

use conf::Arg;
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::merge::Setting;
use server::module::Module;
use server::path;
use server::request::Request;

use super::set_context;
use pattern::Pattern;

/// `mod_vhost_alias.c`
pub struct VhostAlias;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `VirtualDocumentRoot`, `VirtualDocumentRootIP`
        documents: Setting<Root>,
        /// `VirtualScriptAlias`, `VirtualScriptAliasIP`
        programs: Setting<Root>,
    }
}

/// A pattern, and what it is filled with; `None` for `none`.
type Root = Option<(Part, Arc<Pattern>)>;

/// What a pattern is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The name of the server.
    Name,
    /// The server's address on the connection.
    Address,
}

impl Module for VhostAlias {
    const NAME: &'static str = "vhost_alias_module";
    const FILE: &'static str = "mod_vhost_alias.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<VhostAlias>] = &[
        row(
            "VirtualDocumentRoot",
            |cx, arg| documents(cx, arg, Part::Name),
            "Sets the document root of each host name by a pattern.",
        ),
        row(
            "VirtualDocumentRootIP",
            |cx, arg| documents(cx, arg, Part::Address),
            "Sets the document root of each address of the server by a pattern.",
        ),
        row(
            "VirtualScriptAlias",
            |cx, arg| programs(cx, arg, Part::Name),
            "Sets the folder of CGI programs of each host name by a pattern.",
        ),
        row(
            "VirtualScriptAliasIP",
            |cx, arg| programs(cx, arg, Part::Address),
            "Sets the folder of CGI programs of each address of the server by a pattern.",
        ),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::TranslateName, Rank::MIDDLE, maps, translate).pure();
    }
}

const fn row(
    name: &'static str,
    set: fn(&mut Cx<'_, '_, VhostAlias>, &Arg) -> Set,
    doc: &'static str,
) -> Row<VhostAlias> {
    Row::new(name, Takes::One(set), "interpolated-directory|none", doc).default("none")
}

fn documents(cx: &mut Cx<'_, '_, VhostAlias>, arg: &Arg, part: Part) -> Set {
    let root = parse(arg, part)?;
    cx.server().documents.set(root);
    Ok(())
}

fn programs(cx: &mut Cx<'_, '_, VhostAlias>, arg: &Arg, part: Part) -> Set {
    let root = parse(arg, part)?;
    if root.is_some() {
        cx.target.check_handler(SCRIPT.as_bytes());
    }
    cx.server().programs.set(root);
    Ok(())
}

/// Source: `vhost_alias_set`
fn parse(arg: &Arg, part: Part) -> Result<Root, Fault> {
    if arg.text.first() == Some(&b'/') {
        let pattern = Pattern::parse(&arg.text);
        let pattern = pattern.ok_or_else(|| Fault::new("syntax error in format string").at(arg))?;
        return Ok(Some((part, Arc::new(pattern))));
    }
    if arg.is("none") {
        return Ok(None);
    }
    Err(Fault::new("format string must be an absolute path, or 'none'").at(arg))
}

fn maps(bound: Bound<'_, VhostAlias>) -> bool {
    let is_used = |root: &Setting<Root>| matches!(root.get(), Some(Some(_)));
    is_used(&bound.server.documents) || is_used(&bound.server.programs)
}

/// The handler of CGI programs.
const SCRIPT: &str = "cgi-script";

/// Source: `mva_translate`
fn translate<'r>(bound: Bound<'r, VhostAlias>, request: &'r mut Request) -> Step<'r> {
    let uri = &request.resource.uri;
    let has_programs = matches!(bound.server.programs.get(), Some(Some(_)));
    let program = has_programs.then(|| program(uri)).flatten();
    let (root, rest) = match program {
        Some(rest) => (&bound.server.programs, rest.to_vec()),
        None if uri.first() == Some(&b'/') => (&bound.server.documents, uri.clone()),
        None => return Step::DECLINED,
    };
    let is_program = program.is_some();
    let Some(Some((part, pattern))) = root.get() else { return Step::DECLINED };
    let mut root = match part {
        Part::Name => pattern.fill(request.server_name(), || request.server_port()),
        Part::Address => {
            let address = request.own_address().to_string();
            pattern.fill(address.as_bytes(), || request.server_port())
        }
    };
    if root.last() == Some(&b'/') {
        root.pop();
    }
    let Some(file) = path::into_canonical([root.as_slice(), &rest].concat()) else {
        return Step::status(403);
    };
    set_context(request, is_program.then_some(b"/cgi-bin"), Some(&root));
    request.set_document_root(&root);
    request.resource.canonical_filename.clone_from(&file);
    request.resource.filename = file;
    if is_program {
        request.handler = Some(Cow::Borrowed(SCRIPT.as_bytes()));
        request.notes.set(b"alias-forced-type", SCRIPT.as_bytes());
    }
    Step::OK
}

/// What follows `/cgi-bin` if the path begins with `/cgi-bin/`.
fn program(uri: &[u8]) -> Option<&[u8]> {
    let slashes = uri.iter().take_while(|byte| **byte == b'/').count();
    let rest = uri.get(slashes..)?.strip_prefix(b"cgi-bin")?;
    rest.starts_with(b"/").then_some(rest)
}
