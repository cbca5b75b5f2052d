//! mod_negotiation: the one of several variants that suits the client best.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_negotiation.html>

mod accept;
mod alternates;
mod choose;
mod encoding;
mod map_file;
mod multi;
mod outcome;
mod quality;
mod rows;
mod type_map;
mod variant;

use server::core::OptionFlags;
use server::directive::Row;
use server::hooks::{Answer, Bound, Hooks, Phase, Rank, always};
use server::merge::Setting;
use server::module::Module;
use server::request::{FileKind, Request};

/// `mod_negotiation.c`
pub struct Negotiation;

/// `ForceLanguagePriority`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Force {
    /// `Prefer`: among equals, `LanguagePriority` decides.
    pub prefer: bool,
    /// `Fallback`: where nothing is acceptable, `LanguagePriority` decides.
    pub fallback: bool,
}

impl Force {
    /// Where nothing is said.
    const DEFAULT: Force = Force { prefer: true, fallback: false };
}

server::config! {
    /// What the module knows of a server.
    pub struct Settings {
        /// `CacheNegotiatedDocs`
        pub cache_negotiated: Setting<bool>,
    }
}

server::config! {
    /// What the module knows of a directory.
    pub struct Directory {
        /// `ForceLanguagePriority`
        pub force: Setting<Force>,
        /// `LanguagePriority`, most wanted first.
        pub language_priority: Setting<Vec<Vec<u8>>>,
    }
}

impl Module for Negotiation {
    const NAME: &'static str = "negotiation_module";
    const FILE: &'static str = "mod_negotiation.c";
    type Server = Settings;
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Negotiation>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        // Both say no to an ordinary file by configuration and file system alone; where they have
        // work they make the request impure themselves.
        hooks.on(Phase::TypeChecker, Rank::FIRST, always, multi_views).pure();
        hooks.on(Phase::Fixups, Rank::MIDDLE, always, encoding::fix).pure();
        hooks.handler("type-map", map_file::handle);
        hooks.handler(MAP_TYPE, map_file::handle);
    }
}

/// The media type of type maps, which is also a handler's name (`MAP_FILE_MAGIC_TYPE`).
const MAP_TYPE: &str = "application/x-type-map";

/// `Options MultiViews`: a path that does not exist may have variants. Source: `handle_multi`
fn multi_views<'r>(negotiation: Bound<'r, Negotiation>, request: &'r mut Request) -> Answer<'r> {
    let options = request.plan.core.options.flags();
    if request.file.kind != FileKind::None || !options.has(OptionFlags::MULTIVIEWS) {
        return Answer::DECLINED;
    }
    request.pure = false;
    Answer::Wait(Box::pin(multi::handle(negotiation, request)))
}
