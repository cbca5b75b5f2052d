//! mod_negotiation: chooses the variant that suits the client best.
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
use server::hooks::{Bound, Hooks, Phase, Rank, Step, always};
use server::merge::Setting;
use server::module::Module;
use server::request::{FileKind, Request};

/// `mod_negotiation.c`
pub struct Negotiation;

/// `ForceLanguagePriority`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Force {
    /// `Prefer`: `LanguagePriority` decides among equals.
    pub prefer: bool,
    /// `Fallback`: `LanguagePriority` decides if no variant is acceptable.
    pub fallback: bool,
}

impl Force {
    /// The default.
    const DEFAULT: Force = Force { prefer: true, fallback: false };
}

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `CacheNegotiatedDocs`
        pub cache_negotiated: Setting<bool>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ForceLanguagePriority`
        pub force: Setting<Force>,
        /// `LanguagePriority`, the most preferred first.
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
        // For an ordinary file both decline by configuration and file system alone; otherwise they
        // make the request impure themselves.
        hooks.on(Phase::TypeChecker, Rank::FIRST, always, multi_views).pure();
        hooks.on(Phase::Fixups, Rank::MIDDLE, always, encoding::fix).pure();
        hooks.handler("type-map", map_file::handle);
        hooks.handler(MAP_TYPE, map_file::handle);
    }
}

/// The media type and handler name of type maps (`MAP_FILE_MAGIC_TYPE`).
const MAP_TYPE: &str = "application/x-type-map";

/// `Options MultiViews`: finds variants of a path that does not exist. Source: `handle_multi`
fn multi_views<'r>(negotiation: Bound<'r, Negotiation>, request: &'r mut Request) -> Step<'r> {
    let options = request.plan.core.options.flags();
    if request.resource.file.kind != FileKind::None || !options.has(OptionFlags::MULTIVIEWS) {
        return Step::DECLINED;
    }
    request.depends.pure = false;
    Step::Pending(Box::pin(multi::handle(negotiation, request)))
}
