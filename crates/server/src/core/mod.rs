//! The core: Apache's `core.c` as a module like any other, and `http_core.c`.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/core.html>

pub mod byterange;
pub mod digest;
pub mod dir_config;
pub mod etag;
pub(crate) mod handler;
mod http;
mod mapping;
pub mod media_type;
pub(crate) mod methods;
pub mod options;
pub(crate) mod rows;
mod section_argument;
mod sections;
pub mod server_config;
mod unprovided;

pub use dir_config::{AllowOverride, CoreDir};
pub use handler::discard_body;
pub use http::HttpCore;
pub use mapping::map_to_document_root;
pub use options::{Links, OptionFlags, Options};
pub use server_config::{CoreServer, EncodedSlashes, ServerName};

use crate::api::directive::Row;
use crate::api::hooks::{Bound, Hooks, Phase, Rank, always};
use crate::api::module::Module;
use crate::phases::hostname;

/// `core.c`, which is always active.
pub struct Core;

impl Module for Core {
    const NAME: &'static str = "core_module";
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
        hooks.on(Phase::PostReadRequest, first, hostname::asks_own, hostname::look_up_own);
        hooks.on(Phase::PostReadRequest, first, hostname::asks, hostname::look_up);
        // Expressions that use the name are impure themselves.
        hooks.on(Phase::AccessChecker, first, hostname::asks, hostname::look_up).pure();
        hooks.on(Phase::AccessChecker, first, hostname::asks_own, hostname::look_up_own);
        hooks.on(Phase::LogTransaction, first, hostname::asks, hostname::look_up).pure();
        let filters = mapping::insert_filters;
        hooks.on(Phase::InsertFilter, Rank::MIDDLE, mapping::has_filters, filters).pure();
        hooks.on(Phase::Handler, last, always, handler::default_handler).pure();
    }
}

#[cfg(test)]
pub(crate) mod tests;
