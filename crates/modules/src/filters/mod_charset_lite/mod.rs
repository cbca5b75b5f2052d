//! mod_charset_lite: translates content from one character set to another.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_charset_lite.html>

mod filter;
mod rows;

use std::rc::Rc;

use server::directive::Row;
use server::errorlog::Verbatim;
use server::filter::{FilterDef, InputFilterDef, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::plan::Plan;
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
            make: |request| Some(Box::new(filter::Filter::new(wanted(request)?))),
        });
        hooks.input_filter(InputFilterDef { name: "XLATEIN", make: filter::input });
        hooks.on(Phase::Fixups, Rank::MIDDLE, is_set, check).pure();
        let adds = |charset: Bound<'_, CharsetLite>| charset.dir.adds.or(true);
        hooks.on(Phase::InsertFilter, Rank::REALLY_LAST, adds, insert).pure();
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

/// The plan of a request at its fixups, which decide whether it is translated: a directory has that
/// of its index afterwards.
struct Checked(Rc<Plan>);

/// The configuration at that time, if there was something to translate.
fn checked(request: &Request) -> Option<&Dir> {
    if request.main.is_some() {
        return request.dir_of::<CharsetLite>();
    }
    let Checked(plan) = request.kept()?;
    plan.dir.get::<Dir>(request.engine.server.registry.slot_of::<CharsetLite>()?)
}

/// What is wanted of a response's filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// To translate the content.
    Translation(Translation),
    /// To leave it as it is, since one of the character sets is unknown.
    Unchanged,
    /// To translate it from a character set to the same: a directory's index has no other.
    Same,
}

/// What the filter of a response is to do; `None` if there is nothing to translate.
fn wanted(request: &Request) -> Option<Wanted> {
    if is_translated_with_page(request) {
        return None;
    }
    names(checked(request)?)?;
    let Some((source, default)) = request.dir_of::<CharsetLite>().and_then(names) else {
        return Some(Wanted::Same);
    };
    match of_names(source, default) {
        Ok(translation) => Some(Wanted::Translation(translation)),
        Err(Fault::Unknown) => Some(Wanted::Unchanged),
        Err(Fault::Refused) => None,
    }
}

/// Whether a subrequest becomes part of a page that is translated itself. Source:
/// `chk_filter_chain`.
fn is_translated_with_page(request: &Request) -> bool {
    let Some(main) = &request.main else { return false };
    let slot = request.engine.server.registry.slot_of::<CharsetLite>();
    let dir = slot.and_then(|slot| main.plan.dir.get::<Dir>(slot));
    dir.is_some_and(|dir| names(dir).is_some() && dir.adds.or(true))
}

/// Why there is no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// There is no such character set, as far as is known.
    Unknown,
    /// There is one, but not here: the content would not be what was meant.
    Refused,
}

/// Beginnings of names that iconv has, and the Encoding Standard does not.
const REFUSED: [&[u8]; 8] =
    [b"IBM", b"CP", b"EBCDIC", b"UTF-", b"UTF16", b"UTF32", b"UCS", b"ISO-10646"];

fn of_names(source: &[u8], default: &[u8]) -> Result<Translation, Fault> {
    let fault = |name: &[u8]| {
        let upper = name.to_ascii_uppercase();
        let begins = REFUSED.iter().any(|begin| upper.starts_with(begin));
        // `//TRANSLIT` and `//IGNORE` of iconv.
        let has_suffix = upper.windows(2).any(|two| two == b"//");
        if begins || has_suffix { Fault::Refused } else { Fault::Unknown }
    };
    match (Charset::of(source), Charset::of(default)) {
        (Some(from), Some(to)) if Encoder::can(to) => Ok(Translation { from, to }),
        (Some(_), Some(_)) => Err(Fault::Refused),
        (None, Some(_)) => Err(fault(source)),
        (Some(_), None) => Err(fault(default)),
        (None, None) => Err(fault(source).max(fault(default))),
    }
}

/// The translation that the configuration asks for.
fn of_config(request: &Request) -> Option<Translation> {
    let (source, default) = names(checked(request)?)?;
    of_names(source, default).ok()
}

/// Whether the body of a request is translated, too.
fn has_body(request: &Request) -> bool {
    [Method::POST, Method::PUT].contains(&request.head.method)
}

/// Refuses a request whose content can't be translated. Source: `find_code_page`.
fn check<'r>(charset: Bound<'r, CharsetLite>, request: &'r mut Request) -> Step<'r> {
    let Some((source, default)) = names(charset.dir) else { return Step::DECLINED };
    if request.main.is_none() {
        request.keep(Checked(request.plan.clone()));
    }
    match of_names(source, default) {
        Ok(_) => return Step::DECLINED,
        // The content of a response stays as it is.
        Err(Fault::Unknown) if !has_body(request) => return Step::DECLINED,
        Err(_) => {}
    }
    log_fault(request, 1449, source, default);
    Step::status(500)
}

/// Logs that there is no such translation.
fn log_fault(request: &mut Request, number: u32, source: &[u8], default: &[u8]) {
    let (source, default) = (Verbatim::new(source), Verbatim::new(default));
    let message = format_args!("can't open translation {source}->{default}");
    request.log::<CharsetLite>(Level::Error, number, message);
    // The line belongs to each request.
    request.depends.pure = false;
}

/// Logs that a response is not translated.
pub(super) fn log_unchanged(request: &mut Request) {
    let names = request.dir_of::<CharsetLite>().and_then(names);
    let names = names.map(|(source, default)| (source.to_vec(), default.to_vec()));
    if let Some((source, default)) = names {
        log_fault(request, 1453, &source, &default);
    }
}

/// Source: `xlate_insert_filter`.
fn insert<'r>(_: Bound<'r, CharsetLite>, request: &'r mut Request) -> Step<'r> {
    let Some(wanted) = wanted(request) else { return Step::OK };
    let mut filters = request.response.filters.iter();
    if !filters.any(|attached| attached.name.eq_ignore_ascii_case(FILTER)) {
        request.add_filter(FILTER, Stage::RESOURCE, Box::new(filter::Filter::new(wanted)));
    }
    if has_body(request)
        && let Some(wrap) = filter::input(request)
    {
        request.body_in.wrap(wrap);
    }
    Step::OK
}
