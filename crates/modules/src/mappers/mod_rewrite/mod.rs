//! mod_rewrite: rules that rewrite URLs.
//!
//! The rules of a host run when its URLs become file names ([`of_server`]), those of a directory
//! when the file is known ([`of_directory`]). Both are a [`pass`] through rules that were parsed
//! with the configuration; nothing is parsed for a request. A request that matches no pattern never
//! waits.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_rewrite.html>

mod act;
mod condition;
mod cookie;
mod expand;
mod flags;
mod holds;
mod input;
pub(crate) mod line;
mod look_up;
pub(crate) mod map;
mod of_directory;
mod of_server;
mod pass;
#[cfg(test)]
mod passed_over_tests;
mod prefixes;
mod redirect;
mod rows;
mod rule;
mod rule_set;
mod settings;
mod template;
mod trace;
mod url;
mod value;
mod variable;

use server::build::Build;
use server::directive::{Cx, Row};
use server::hooks::{Bound, Hooks, Phase, Rank};
use server::module::Module;

use settings::{Directory, Settings};

pub use map::companions;
pub(super) use of_directory::HANDLER;
pub(crate) use url::is_own as is_own_host;

/// `mod_rewrite.c`
pub struct Rewrite;

impl Module for Rewrite {
    const NAME: &'static str = "rewrite_module";
    const FILE: &'static str = "mod_rewrite.c";
    type Server = Settings;
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Rewrite>] = rows::ROWS;

    fn skipped(cx: &mut Cx<'_, '_, Self>) {
        rows::skip(cx);
    }

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(prepare);
        // Reading a variable that depends on more than path and files makes the request impure.
        hooks.on(Phase::TranslateName, Rank::FIRST, of_server::runs, of_server::translate).pure();
        hooks
            .on(Phase::Fixups, Rank::FIRST, of_directory::runs, of_directory::fixup)
            .after(&["mod_proxy.c"])
            .pure();
        hooks.on(Phase::Fixups, Rank::LAST, forces_type, of_directory::force_type).pure();
        hooks.handler(of_directory::HANDLER, of_directory::handle).pure();
    }
}

/// Makes the prefixes of the hosts' rules: no request waits for them, and all processes share them.
fn prepare(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Rewrite>() else { return };
    build.edit_servers(slot, |settings: &mut Settings| {
        settings.common.rules.prefixes();
    });
}

/// Whether a rule may have set a type: the host's rules run under any configuration.
fn forces_type(rewrite: Bound<'_, Rewrite>) -> bool {
    rewrite.server.common.forces_type() || rewrite.dir.common.forces_type()
}
