//! mod_mime: media types, encodings, languages, handlers and filters by a file's extensions.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_mime.html>

mod extension;
mod find;
mod parameters;
mod rows;
mod types_file;

pub use extension::{Extension, Extensions, MultiviewsMatch};
pub use find::{Unrecognized, split_extensions};
pub use types_file::TypesFile;

use std::path::PathBuf;
use std::sync::Arc;

use server::build::Build;
use server::directive::Row;
use server::hooks::{Hooks, Phase, Rank, always};
use server::merge::{Outermost, Setting};
use server::module::Module;

/// `mod_mime.c`
pub struct Mime;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `TypesConfig`
        pub types_config: Outermost<Setting<PathBuf>>,
        /// The contents of the file.
        pub types: Outermost<Arc<TypesFile>>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// The properties of extensions.
        pub extensions: Extensions,
        /// `DefaultLanguage`
        pub default_language: Setting<Vec<u8>>,
        /// `MultiviewsMatch`
        pub multiviews_match: Setting<MultiviewsMatch>,
        /// `ModMimeUsePathInfo`
        pub use_path_info: Setting<bool>,
    }
}

impl Module for Mime {
    const NAME: &'static str = "mime_module";
    const FILE: &'static str = "mod_mime.c";
    type Server = Settings;
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Mime>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(read_types);
        hooks.on(Phase::TypeChecker, Rank::MIDDLE, always, find::find_types).pure();
    }
}

/// The default file of types.
const DEFAULT_TYPES: &[u8] = b"mime.types";

/// Reads `TypesConfig`. As in Apache, startup fails if the file can't be read.
fn read_types(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Mime>() else { return };
    let named = build.main.server.get::<Settings>(slot);
    let named = named.and_then(|settings| settings.types_config.0.get().cloned());
    let path = named.clone().unwrap_or_else(|| build.path(DEFAULT_TYPES));
    let types = match TypesFile::read(&path) {
        Ok(types) => Arc::new(types),
        // Apache requires its default file as well; a server that starts without it is more useful.
        Err(_) if named.is_none() => Arc::new(TypesFile::default()),
        Err(error) => {
            return build.error_without_place(format!(
                "AH01597: could not open mime types config file {}: {error}.",
                path.display()
            ));
        }
    };
    build.edit_servers(slot, |settings: &mut Settings| settings.types.0 = types.clone());
}
