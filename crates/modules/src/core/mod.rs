//! The core, Apache's `server/core.c`, and `modules/core`.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/core.html>. The types of the core's configuration
//! are in `server::core`, since the phases read them.

mod etag;
pub(crate) mod handler;
mod mapping;
pub mod mod_macro;
pub mod mod_so;
pub mod mod_watchdog;
mod names;
mod options;
mod rows;
mod section_argument;
mod sections;

pub use mapping::map_to_document_root;

use server::core::{CoreDir, CoreServer};
use server::directive::Row;
use server::hooks::{Bound, Hooks, Phase, Rank, always};
use server::module::{CORE, Module};

/// `core.c`, which is always active.
pub struct Core;

impl Module for Core {
    const NAME: &'static str = CORE;
    const FILE: &'static str = "core.c";
    type Server = CoreServer;
    type Dir = CoreDir;
    const DIRECTIVES: &'static [Row<Core>] = rows::ALL;

    fn hooks(hooks: &mut Hooks<'_, Core>) {
        let last = Rank::REALLY_LAST;
        hooks.on(Phase::TranslateName, last, always, mapping::translate_name).pure();
        hooks.on(Phase::MapToStorage, last, always, mapping::map_to_storage).pure();
        let fixed = |core: Bound<'_, Core>| {
            mapping::overrides_type(core) && !mapping::overrides_by_expression(core)
        };
        let changing = mapping::overrides_by_expression;
        hooks.on(Phase::Fixups, Rank::REALLY_FIRST, fixed, mapping::override_type).pure();
        hooks.on(Phase::Fixups, Rank::REALLY_FIRST, changing, mapping::override_type);
        let first = Rank::REALLY_FIRST;
        hooks.on(Phase::PostReadRequest, first, names::asks_own, names::look_up_own);
        hooks.on(Phase::PostReadRequest, first, names::asks, names::look_up);
        // Expressions that use the name are impure themselves.
        hooks.on(Phase::AccessChecker, first, names::asks, names::look_up).pure();
        hooks.on(Phase::AccessChecker, first, names::asks_own, names::look_up_own);
        hooks.on(Phase::LogTransaction, first, names::asks, names::look_up).pure();
        let filters = mapping::insert_filters;
        hooks.on(Phase::InsertFilter, Rank::MIDDLE, mapping::has_filters, filters).pure();
        hooks.on(Phase::Handler, last, always, handler::default_handler).pure();
    }
}

#[cfg(test)]
mod tests;
