//! mod_autoindex: directory listings in Apache's format.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_autoindex.html>

mod around;
mod describe;
mod entry;
mod fancy;
mod handler;
mod item;
mod list;
mod natural;
mod options;
mod query;
mod rows;
mod table;
pub(crate) mod text;
mod title;
mod turns;

use server::directive::Row;
use server::hooks::Hooks;
use server::merge::{Prepend, Setting};
use server::module::Module;

use describe::Description;
use item::{Ignored, Item};
use options::IndexOptions;

/// `mod_autoindex.c`
pub struct Autoindex;

impl Module for Autoindex {
    const NAME: &'static str = "autoindex_module";
    const FILE: &'static str = "mod_autoindex.c";
    type Server = ();
    type Dir = DirConfig;
    const DIRECTIVES: &'static [Row<Autoindex>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Autoindex>) {
        hooks.handler("httpd/unix-directory", handler::handle);
        hooks.handler("autoindex", handler::handle_always);
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct DirConfig {
        /// `IndexOptions`
        pub options: IndexOptions,
        /// `AddIcon`, `AddIconByType`, `AddIconByEncoding`
        pub icons: Prepend<Item>,
        /// `AddAlt`, `AddAltByType`, `AddAltByEncoding`
        pub alts: Prepend<Item>,
        /// `AddDescription`
        pub descriptions: Prepend<Description>,
        /// `IndexIgnore`, `IndexIgnoreReset`
        pub ignored: Ignored,
        /// `HeaderName`
        pub header: Setting<Vec<u8>>,
        /// `ReadmeName`
        pub readme: Setting<Vec<u8>>,
        /// `DefaultIcon`
        pub default_icon: Setting<Vec<u8>>,
        /// `IndexStyleSheet`
        pub style_sheet: Setting<Vec<u8>>,
        /// `IndexHeadInsert`
        pub head_insert: Setting<Vec<u8>>,
        /// `IndexOrderDefault`
        pub order: Setting<query::Order>,
    }
}
