//! mod_speling: redirects misspelt paths to files with similar names.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_speling.html>

mod candidates;
mod page;

use messages::Message;
use rt::Work;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::log::Level;
use server::merge::Merge;
use server::module::Module;
use server::request::{FileKind, Request};
use wire::Method;

use candidates::{Candidate, Rules, Scan, Similarity};

/// `mod_speling.c`
pub struct Speling;

/// Per-directory configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Directory {
    /// `CheckSpelling`
    is_on: bool,
    /// `CheckCaseOnly`
    case_only: bool,
    /// `CheckBasenameMatch Off`
    no_base_names: bool,
}

impl Merge for Directory {
    /// The module merges nothing: an inner section replaces everything.
    fn merge(_: &Self, inner: &Self) -> Self {
        *inner
    }
}

impl Module for Speling {
    const NAME: &'static str = "speling_module";
    const FILE: &'static str = "mod_speling.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Speling>] = &[
        row(
            "CheckSpelling",
            |cx, on| set(cx, |dir| dir.is_on = on),
            "Off",
            "Redirects requests for files that do not exist to files with similar names.",
        ),
        row(
            "CheckCaseOnly",
            |cx, on| set(cx, |dir| dir.case_only = on),
            "Off",
            "Treats names as similar only if they differ in case.",
        ),
        row(
            "CheckBasenameMatch",
            |cx, on| set(cx, |dir| dir.no_base_names = !on),
            "On",
            "Also treats names as similar if they are equal up to the first dot.",
        ),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        // A scan of the directory makes the request impure.
        hooks.on(Phase::Fixups, Rank::LAST, |speling| speling.dir.is_on, check).pure();
    }
}

const fn row(
    name: &'static str,
    set: fn(&mut Cx<'_, '_, Speling>, bool) -> Set,
    default: &'static str,
    doc: &'static str,
) -> Row<Speling> {
    Row::new(name, Takes::Flag(set), "on|off", doc)
        .standing(Places::ALL, Override::OPTIONS)
        .default(default)
}

fn set(cx: &mut Cx<'_, '_, Speling>, change: impl FnOnce(&mut Directory)) -> Set {
    change(cx.dir());
    Ok(())
}

/// The parts of a request for a name that may be misspelt.
struct Misspelt {
    /// The directory, without the slash at its end.
    directory: Vec<u8>,
    /// The name that is not in it.
    name: Vec<u8>,
    /// The URL path of the directory, with the slash at its end.
    url: Vec<u8>,
}

/// Source: `check_speling`
fn check<'r>(bound: Bound<'r, Speling>, request: &'r mut Request) -> Step<'r> {
    if request.head.method != Method::GET
        || request.resource.file.kind != FileKind::None
        || request.main.is_some()
    {
        return Step::DECLINED;
    }
    match split(request) {
        Some(misspelt) => Step::Pending(Box::pin(correct(bound.dir, request, misspelt))),
        None => Step::DECLINED,
    }
}

fn split(request: &Request) -> Option<Misspelt> {
    let resource = &request.resource;
    let (uri, rest) = (&resource.uri, &resource.path_info);
    if uri == b"/" {
        return None;
    }
    let slash = resource.filename.iter().rposition(|byte| *byte == b'/')?;
    let (directory, name) = resource.filename.split_at(slash);
    let name = name.get(1..)?.to_vec();
    let url = uri.strip_suffix(rest.as_slice())?.strip_suffix(name.as_slice())?.to_vec();
    Some(Misspelt { directory: directory.to_vec(), name, url })
}

async fn correct(dir: &Directory, request: &mut Request, misspelt: Misspelt) -> Verdict {
    request.depends.pure = false;
    let rules = Rules { case_only: dir.case_only, base_names: !dir.no_base_names };
    let (directory, name) = (misspelt.directory.clone(), misspelt.name.clone());
    let pool = request.engine.handle.blocking().clone();
    let scan = match pool.run(Work::File, move || candidates::scan(&directory, &name, rules)).await
    {
        Ok(scan) => scan,
        Err(why) => {
            let number = Message::PoolRefused.number();
            request.log::<Speling>(Level::Error, number, format_args!("{why}"));
            return Verdict::Status(503);
        }
    };
    match scan {
        Scan::Unreadable => Verdict::Declined,
        Scan::IsThere => Verdict::Ok,
        Scan::Similar(found) => match found.as_slice() {
            [] => Verdict::Ok,
            [first, rest @ ..] if is_certain(first, rest.first()) => {
                redirect(request, &misspelt, first)
            }
            _ => choices(request, &misspelt, &found),
        },
    }
}

/// Whether the first candidate is more similar than all others.
fn is_certain(first: &Candidate, second: Option<&Candidate>) -> bool {
    first.similarity != Similarity::BaseName
        && second.is_none_or(|second| second.similarity != first.similarity)
}

fn redirect(request: &mut Request, misspelt: &Misspelt, found: &Candidate) -> Verdict {
    let path = [misspelt.url.as_slice(), &found.name, &request.resource.path_info].concat();
    let mut target = Vec::new();
    wire::escape::path(&mut target, &path);
    if let Some(query) = request.query() {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    let url = request.construct_url(&target);
    request.response.headers_out.set(b"Location", &url);
    let (uri, target) = (Verbatim::new(&request.resource.uri), Verbatim::new(&target));
    match request.head.headers_in.get(b"Referer").map(Verbatim::new) {
        Some(referer) => request.log::<Speling>(
            Level::Info,
            3224,
            format_args!("Fixed spelling: {uri} to {target} from {referer}"),
        ),
        None => request.log::<Speling>(
            Level::Info,
            3225,
            format_args!("Fixed spelling: {uri} to {target}"),
        ),
    }
    Verdict::Status(301)
}

/// Responds with a list of the candidates.
fn choices(request: &mut Request, misspelt: &Misspelt, found: &[Candidate]) -> Verdict {
    let page = page::Page::make(request, &misspelt.url, found);
    request.notes.set(b"variant-list", &page.text);
    request.env.merge(b"VARIANTS", &page.variants);
    let (uri, count) = (Verbatim::new(&request.resource.uri), found.len());
    match request.head.headers_in.get(b"Referer").map(Verbatim::new) {
        Some(referer) => request.log::<Speling>(
            Level::Info,
            3226,
            format_args!("Spelling fix: {uri}: {count} candidates from {referer}"),
        ),
        None => request.log::<Speling>(
            Level::Info,
            3227,
            format_args!("Spelling fix: {uri}: {count} candidates"),
        ),
    }
    Verdict::Status(300)
}
