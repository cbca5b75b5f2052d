//! mod_info: the configuration as read, the active modules with their directives and hooks, and the
//! providers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_info.html>

mod hooks;
mod listing;
mod page;

use std::sync::Arc;

use conf::{Arg, Node, Sources};
use server::body::Body;
use server::build::Build;
use server::directive::{Cx, Row, Set, Takes};
use server::discard::finish_printed;
use server::hooks::{Bound, Hooks, Step};
use server::merge::{Outermost, Prepend};
use server::module::Module;
use server::request::Request;
use wire::{Method, MethodSet};

/// `mod_info.c`
pub struct Info;

/// The directives as read: conditions evaluated, files included, macros expanded.
#[derive(Debug, Default)]
pub struct Directives {
    nodes: Vec<Node>,
    sources: Sources,
}

/// An `AddModuleInfo`: the file of a module, and HTML.
#[derive(Clone, Debug)]
pub struct Remark {
    module: Vec<u8>,
    html: Vec<u8>,
}

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `AddModuleInfo`
        remarks: Prepend<Remark>,
        directives: Outermost<Arc<Directives>>,
    }
}

impl Module for Info {
    const NAME: &'static str = "info_module";
    const FILE: &'static str = "mod_info.c";
    type Server = Settings;
    type Dir = ();
    // It keeps all directives.
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<Info>] = &[Row::<Info>::new(
        "AddModuleInfo",
        Takes::Two(add_module_info),
        "module-name string",
        "Adds HTML to what is shown of a module.",
    )];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.directives_read(keep);
        hooks.handler("server-info", handle);
    }
}

fn add_module_info(cx: &mut Cx<'_, '_, Info>, module: &Arg, html: &Arg) -> Set {
    let remark = Remark { module: module.text.to_vec(), html: html.text.to_vec() };
    cx.server().remarks.push(remark);
    Ok(())
}

/// Directives that Apache executes while it reads them, and does not show.
const UNSHOWN: [&str; 2] = ["ServerRoot", "DefaultRuntimeDir"];

/// Keeps the directives.
fn keep(build: &mut Build, nodes: &[Node]) {
    let Some(slot) = build.registry.slot_of::<Info>() else { return };
    let shown = |node: &&Node| !UNSHOWN.iter().any(|name| node.is(name));
    let nodes = nodes.iter().filter(shown).cloned().collect();
    let all = Arc::new(Directives { nodes, sources: build.sources.clone() });
    build.edit_servers(slot, |settings: &mut Settings| settings.directives.0 = all.clone());
}

/// Source: `display_info`
fn handle<'r>(bound: Bound<'r, Info>, request: &'r mut Request) -> Step<'r> {
    let get: MethodSet = [Method::GET].into_iter().collect();
    request.response.allowed = get;
    if request.head.method != Method::GET {
        return Step::DECLINED;
    }
    let query = request.query().map(<[u8]>::to_vec);
    let signature = server::errors::signature(request, b"");
    let text = page::write(bound.server, request, query.as_deref(), &signature);
    request.response.content_type = Some(b"text/html; charset=ISO-8859-1".to_vec());
    request.print(Body::from(text));
    finish_printed(request)
}
