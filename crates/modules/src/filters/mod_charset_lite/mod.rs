//! mod_charset_lite: translates content from one character set to another.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_charset_lite.html>

mod filter;
mod rows;

use bstr::BStr;
use server::directive::Row;
use server::filter::{FilterDef, InputFilterDef, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;
use wire::method::Method;

use super::mod_xml2enc::charset::{Charset, Encoder};

/// `mod_charset_lite.c`
pub struct CharsetLite;

impl Module for CharsetLite {
    const NAME: &'static str = "charset_lite_module";
    const FILE: &'static str = "mod_charset_lite.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<CharsetLite>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, CharsetLite>) {
        hooks.output_filter(FilterDef {
            name: FILTER,
            stage: Stage::RESOURCE,
            make: |request| Some(Box::new(filter::Filter::new(translation(request)?))),
        });
        hooks.input_filter(InputFilterDef { name: "XLATEIN", make: filter::input });
        hooks.on(Phase::Fixups, Rank::MIDDLE, is_set, check).pure();
        hooks.on(Phase::InsertFilter, Rank::REALLY_LAST, adds_filters, insert).pure();
    }
}

/// The name of the output filter.
const FILTER: &str = "XLATEOUT";

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `CharsetSourceEnc`
        pub source: Setting<Vec<u8>>,
        /// `CharsetDefault`
        pub default: Setting<Vec<u8>>,
        /// `CharsetOptions ImplicitAdd`
        pub adds: Setting<bool>,
        /// `CharsetOptions TranslateAllMimeTypes`
        pub all_types: Setting<bool>,
    }
}

/// The character sets of content as it is, and as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Translation {
    from: Charset,
    to: Charset,
}

fn names(dir: &Dir) -> Option<(&[u8], &[u8])> {
    let (source, default) = (dir.source.get()?, dir.default.get()?);
    (!source.eq_ignore_ascii_case(default)).then_some((source, default))
}

fn is_set(charset: Bound<'_, CharsetLite>) -> bool {
    names(charset.dir).is_some()
}

fn adds_filters(charset: Bound<'_, CharsetLite>) -> bool {
    is_set(charset) && charset.dir.adds.or(true)
}

/// The translation for a response; `None` if there is none, or it is not possible.
fn translation(request: &Request) -> Option<Translation> {
    if is_translated_with_page(request) {
        return None;
    }
    of_config(request)
}

/// Whether a subrequest becomes part of a page that is translated itself. Source:
/// `chk_filter_chain`.
fn is_translated_with_page(request: &Request) -> bool {
    let Some(main) = &request.main else { return false };
    let slot = request.engine.server.registry.slot_of::<CharsetLite>();
    let dir = slot.and_then(|slot| main.plan.dir.get::<Dir>(slot));
    dir.is_some_and(|dir| names(dir).is_some() && dir.adds.or(true))
}

/// The translation that the configuration asks for.
fn of_config(request: &Request) -> Option<Translation> {
    let (source, default) = names(request.dir_of::<CharsetLite>()?)?;
    let (from, to) = (Charset::of(source)?, Charset::of(default)?);
    Encoder::can(to).then_some(Translation { from, to })
}

/// Refuses a request whose content can't be translated. Source: `find_code_page`.
fn check<'r>(charset: Bound<'r, CharsetLite>, request: &'r mut Request) -> Step<'r> {
    if of_config(request).is_some() {
        return Step::DECLINED;
    }
    let Some((source, default)) = names(charset.dir) else { return Step::DECLINED };
    let (source, default) = (BStr::new(source), BStr::new(default));
    let message = format_args!("can't open translation {source}->{default}");
    request.log::<CharsetLite>(Level::Error, 1449, message);
    // The line belongs to each request.
    request.depends.pure = false;
    Step::status(500)
}

/// Source: `xlate_insert_filter`.
fn insert<'r>(_: Bound<'r, CharsetLite>, request: &'r mut Request) -> Step<'r> {
    let Some(translation) = translation(request) else { return Step::OK };
    let mut filters = request.response.filters.iter();
    if !filters.any(|attached| attached.name.eq_ignore_ascii_case(FILTER)) {
        let filter = Box::new(filter::Filter::new(translation));
        request.add_filter(FILTER, Stage::RESOURCE, filter);
    }
    let has_body = [Method::POST, Method::PUT].contains(&request.head.method);
    if has_body && let Some(wrap) = filter::input(request) {
        request.body_in.wrap(wrap);
    }
    Step::OK
}
