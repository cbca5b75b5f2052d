//! mod_sed: edits responses and request bodies with sed scripts, line by line.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_sed.html>

mod commands;
mod filter;
mod labels;
mod lines;
mod list;
mod machine;
mod output;
mod parser;
mod pattern;
mod runner;
mod script;
mod search;
mod substitute;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::filter::{FilterDef, InputFilterDef, Stage};
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use parser::Parser;

/// `mod_sed.c`
pub struct Sed;

impl Module for Sed {
    const NAME: &'static str = "sed_module";
    const FILE: &'static str = "mod_sed.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<Sed>] = &[
        Row::<Sed>::new(
            "OutputSed",
            Takes::One(|cx, arg| add(cx, arg, |scripts| &mut scripts.output)),
            "sed-command",
            "Adds commands to the script that edits responses.",
        )
        .standing(Places::DIRECTORY, Override::NONE),
        Row::<Sed>::new(
            "InputSed",
            Takes::One(|cx, arg| add(cx, arg, |scripts| &mut scripts.input)),
            "sed-command",
            "Adds commands to the script that edits request bodies.",
        )
        .standing(Places::DIRECTORY, Override::NONE),
    ];

    fn hooks(hooks: &mut Hooks<'_, Sed>) {
        hooks.output_filter(FilterDef {
            name: "Sed",
            stage: Stage::RESOURCE,
            make: |request| Some(Box::new(filter::Filter::new(output(request)?))),
        });
        hooks.input_filter(InputFilterDef { name: "Sed", make: filter::input });
    }
}

server::config! {
    /// Per-directory configuration. Nothing is merged: one directive in a section, and nothing is
    /// inherited.
    pub struct Dir {
        /// All directives.
        pub own: Setting<Scripts>,
    }
}

/// The scripts of a section.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    /// `OutputSed`
    output: Option<Arc<Parser>>,
    /// `InputSed`
    input: Option<Arc<Parser>>,
}

fn output(request: &Request) -> Option<Arc<Parser>> {
    request.dir_of::<Sed>()?.own.get()?.output.clone()
}

/// Source: `sed_add_expr`.
fn add(
    cx: &mut Cx<'_, '_, Sed>,
    arg: &Arg,
    script: fn(&mut Scripts) -> &mut Option<Arc<Parser>>,
) -> Set {
    let own = &mut cx.dir().own;
    let mut scripts = own.get().cloned().unwrap_or_default();
    let added = Arc::make_mut(script(&mut scripts).get_or_insert_default()).add(&arg.text);
    own.set(scripts);
    added.map_err(|why| Fault::new(format!("Failed to compile sed expression. {why}")).at(arg))
}
