//! mod_ext_filter: programs as filters of responses and of request bodies.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_ext_filter.html>. A companion starts the
//! programs, as those of mod_cgi.

mod define;
mod input;
mod order;
mod output;
mod passage;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::filter::Stage;
use server::hooks::{Bound, Hooks, Phase, Rank};
use server::merge::{Overlay, Setting};
use server::module::Module;

/// `mod_ext_filter.c`
pub struct ExtFilter;

server::config! {
    /// The configuration per virtual host.
    pub struct Settings {
        /// `ExtFilterDefine`, by name in lower case. A host also has those of the main server.
        filters: Overlay<Vec<u8>, Definition>,
    }
}

server::config! {
    /// The configuration per directory.
    pub struct Directory {
        /// `ExtFilterOptions LogStderr`
        logs_errors: Setting<bool>,
        /// `ExtFilterOptions Onfail=remove`
        removes: Setting<bool>,
    }
}

/// A filter (`ef_filter_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Definition {
    /// Its name as written.
    name: Vec<u8>,
    is_input: bool,
    stage: Stage,
    /// The program and its arguments; empty without `cmd=`.
    words: Vec<Vec<u8>>,
    /// The media type that is filtered; `None` for all.
    in_type: Option<Vec<u8>>,
    /// The media type that the result has; `None` if it is the same.
    out_type: Option<Vec<u8>>,
    /// The variable without which nothing is filtered.
    enabled_by: Option<Vec<u8>>,
    /// The variable with which nothing is filtered.
    disabled_by: Option<Vec<u8>>,
    preserves_length: bool,
}

impl Module for ExtFilter {
    const NAME: &'static str = "ext_filter_module";
    const FILE: &'static str = "mod_ext_filter.c";
    type Server = Settings;
    type Dir = Directory;
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<ExtFilter>] = &[
        Row::new(
            "ExtFilterDefine",
            Takes::Raw(define::define),
            "filtername parameters",
            "Defines a filter that a program is.",
        ),
        Row::<ExtFilter>::new(
            "ExtFilterOptions",
            Takes::Each(option),
            "option [option] ...",
            "Sets what happens to the standard error of programs, and to responses whose program \
             can't be started: [No]LogStderr, Onfail=abort|remove.",
        )
        .standing(Places::DIRECTORY, Override::NONE)
        .default("NoLogStderr"),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::InsertFilter, Rank::FIRST, filters_bodies, input::prepare).pure();
    }
}

/// Source: `add_options`
fn option(cx: &mut Cx<'_, '_, ExtFilter>, arg: &Arg) -> Set {
    let dir = cx.dir();
    match arg.text.to_ascii_lowercase().as_slice() {
        b"logstderr" => dir.logs_errors.set(true),
        b"nologstderr" => dir.logs_errors.set(false),
        b"onfail=remove" => dir.removes.set(true),
        b"onfail=abort" => dir.removes.set(false),
        _ => {
            let fault = format!("Invalid ExtFilterOptions option: {}", arg.text);
            return Err(Fault::new(fault).at(arg));
        }
    }
    Ok(())
}

fn filters_bodies(bound: Bound<'_, ExtFilter>) -> bool {
    bound.server.filters.iter().any(|(_, filter)| filter.is_input)
}
