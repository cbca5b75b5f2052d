//! mod_substitute: replaces text in responses, line by line.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_substitute.html>

mod filter;
mod lines;
mod rows;
mod rule;

use std::sync::Arc;

use server::directive::Row;
use server::filter::{FilterDef, Stage};
use server::hooks::Hooks;
use server::merge::Merge;
use server::module::Module;

use rule::Rule;

/// `mod_substitute.c`
pub struct Substitute;

impl Module for Substitute {
    const NAME: &'static str = "substitute_module";
    const FILE: &'static str = "mod_substitute.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<Substitute>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Substitute>) {
        hooks.output_filter(FilterDef {
            name: "SUBSTITUTE",
            stage: Stage::RESOURCE,
            make: |_| Some(Box::new(filter::Filter::default())),
        });
    }
}

/// The default of `SubstituteMaxLineLength` (`AP_SUBST_MAX_LINE_LENGTH`).
const LINE_BYTES: usize = 1024 * 1024;

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// All directives.
        pub rules: Rules,
    }
}

/// The rules of a directory, and how they are applied.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// `Substitute`
    list: Arc<Vec<Rule>>,
    /// `SubstituteMaxLineLength`, bytes.
    line_bytes: Option<usize>,
    /// `SubstituteInheritBefore`
    inherits_before: Option<bool>,
}

impl Merge for Rules {
    /// Source: `merge_substitute_dcfg`.
    fn merge(outer: &Rules, inner: &Rules) -> Rules {
        let inherits_before = inner.inherits_before.or(outer.inherits_before);
        let list = match (outer.list.is_empty(), inner.list.is_empty()) {
            (_, true) => outer.list.clone(),
            (true, false) => inner.list.clone(),
            (false, false) => {
                let (first, second) = match inherits_before {
                    Some(true) => (outer, inner),
                    _ => (inner, outer),
                };
                Arc::new(first.list.iter().chain(&*second.list).cloned().collect())
            }
        };
        Rules { list, line_bytes: inner.line_bytes.or(outer.line_bytes), inherits_before }
    }
}

impl Rules {
    /// Most bytes of a line.
    fn limit(&self) -> usize {
        self.line_bytes.unwrap_or(LINE_BYTES)
    }
}
