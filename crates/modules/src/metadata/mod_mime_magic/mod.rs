//! mod_mime_magic: media types and codings of files by their first bytes.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_mime_magic.html>. The content of a compressed
//! file is found without running gzip(1).

mod find;
mod loaded;
mod magic;
mod unpack;

use std::path::PathBuf;
use std::sync::Arc;

use conf::Arg;
use server::build::Build;
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank};
use server::merge::Setting;
use server::module::Module;

use loaded::Loaded;

/// `mod_mime_magic.c`
pub struct MimeMagic;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `MimeMagicFile`
        file: Setting<PathBuf>,
        /// The rules in that file.
        loaded: Setting<Arc<Loaded>>,
    }
}

impl Module for MimeMagic {
    const NAME: &'static str = "mime_magic_module";
    const FILE: &'static str = "mod_mime_magic.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<MimeMagic>] = &[Row::<MimeMagic>::new(
        "MimeMagicFile",
        Takes::One(magic_file),
        "file-path",
        "Turns on media types by content, with the rules in a file.",
    )];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(load);
        hooks.logs_opened(loaded::log_faults);
        let has_rules = |bound: Bound<'_, MimeMagic>| {
            bound.server.loaded.get().is_some_and(|loaded| !loaded.magic.is_empty())
        };
        hooks
            .on(Phase::TypeChecker, Rank::MIDDLE, has_rules, find::find_type)
            .after(&["mod_mime.c"])
            .pure();
    }
}

fn magic_file(cx: &mut Cx<'_, '_, MimeMagic>, file: &Arg) -> Set {
    let path = cx.build().path(&file.text);
    cx.server().file.set(path);
    Ok(())
}

/// Reads the files. As in Apache, faults do not prevent the start, but after a file with faults no
/// further one is read (`magic_init`).
fn load(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<MimeMagic>() else { return };
    let mut is_over = false;
    build.edit_servers(slot, |settings: &mut Settings| {
        if let Some(file) = settings.file.get().filter(|_| !is_over) {
            let loaded = Loaded::read(file);
            is_over = loaded.is_faulty();
            settings.loaded.set(Arc::new(loaded));
        }
    });
}
