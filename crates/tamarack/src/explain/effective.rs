//! The effective directives: the places that set each, and the one that won.

use std::collections::HashMap;
use std::rc::Rc;

use server::context::Places as Contexts;
use server::directive::ErasedRow;
use server::explain::{Event, Kind};
use server::host::Host;
use server::registry::Registry;

use super::places::{Directive, Place, Places};

/// Directives that add to those of outer places, or concern one key of many.
const ADDING: &[&str] = &[
    "addalt",
    "addaltbyencoding",
    "addaltbytype",
    "addcharset",
    "adddescription",
    "addencoding",
    "addhandler",
    "addicon",
    "addiconbyencoding",
    "addiconbytype",
    "addinputfilter",
    "addlanguage",
    "addoutputfilter",
    "addoutputfilterbytype",
    "addtype",
    "alias",
    "aliasmatch",
    "allow",
    "allowmethods",
    "browsermatch",
    "browsermatchnocase",
    "customlog",
    "deny",
    "errordocument",
    "expiresbytype",
    "filterchain",
    "filterdeclare",
    "filterprovider",
    "header",
    "headername",
    "indexignore",
    "listen",
    "logformat",
    "passenv",
    "redirect",
    "redirectmatch",
    "redirectpermanent",
    "redirecttemp",
    "removecharset",
    "removeencoding",
    "removehandler",
    "removeinputfilter",
    "removelanguage",
    "removeoutputfilter",
    "removetype",
    "requestheader",
    "rewritecond",
    "rewritemap",
    "rewriterule",
    "scriptalias",
    "scriptaliasmatch",
    "serveralias",
    "setenv",
    "setenvif",
    "setenvifexpr",
    "setenvifnocase",
    "unsetenv",
];

/// A directive that applies, of the innermost place that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// The directive's name.
    pub name: String,
    /// Its effective arguments; those of several lines are joined.
    pub value: String,
    /// Their place.
    pub place: Place,
    /// The places that it overrode, the last one first, with their arguments. Empty for lines that
    /// add to those of other places.
    pub over: Vec<(Place, String)>,
}

/// A directive that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The name as written.
    pub name: String,
    /// The arguments.
    pub args: String,
    /// Its place.
    pub place: Place,
}

/// The directives of all places, the outermost first.
pub fn lines(places: &Places, levels: &[Level]) -> Vec<Line> {
    let all = levels.iter().flat_map(|level| level.iter()).filter(|one| one.inside.is_none());
    let line = |one: &Directive| {
        let (name, args) = (one.name.clone(), one.args.clone());
        Some(Line { name, args, place: places.of(one.span)? })
    };
    all.filter_map(line).collect()
}

/// A place of the configuration, with its directives.
pub type Level = Rc<[Directive]>;

/// The places that apply to an answer, the outermost first.
pub fn levels(places: &Places, host: &Host, parts: &[u64], events: &Event) -> Vec<Level> {
    let mut by_id: HashMap<u64, &Event> = HashMap::new();
    events.each(&mut |event| {
        let id = event.fact("id").and_then(|id| id.parse().ok());
        if let (Kind::Section, Some(id)) = (event.kind, id) {
            by_id.insert(id, event);
        }
    });
    let mut levels = vec![places.top.clone()];
    let is_host = |one: &&Directive| {
        let place = places.of(one.span);
        let own = host.defined_at.as_ref();
        let own = own.map(|(file, line)| (places.short(file), *line));
        one.name.eq_ignore_ascii_case("VirtualHost")
            && own.is_some_and(|own| place.is_some_and(|place| own == (place.file, place.line)))
    };
    levels.extend(places.top.iter().find(is_host).and_then(|one| one.inside.clone()));
    for id in parts {
        let of_span = || places.directive(by_id.get(id)?.span?)?.inside.as_ref();
        levels.extend(places.of_file(*id).or_else(of_span).cloned());
    }
    levels
}

/// The directives that apply to requests, those that add to others after them.
pub fn winners(places: &Places, levels: &[Level], registry: &Registry) -> Vec<Winner> {
    let mut adding = Vec::new();
    let mut order: Vec<String> = Vec::new();
    let mut set: HashMap<String, Vec<Vec<&Directive>>> = HashMap::new();
    for level in levels {
        let mut here: HashMap<String, Vec<&Directive>> = HashMap::new();
        for one in level.iter().filter(|one| one.inside.is_none()) {
            let name = one.name.to_ascii_lowercase();
            if !concerns_requests(registry, &name) {
                continue;
            }
            if ADDING.contains(&&*name) {
                adding.push(one);
            } else {
                if !order.contains(&name) {
                    order.push(name.clone());
                }
                here.entry(name).or_default().push(one);
            }
        }
        for (name, lines) in here {
            set.entry(name).or_default().push(lines);
        }
    }
    let mut found = Vec::new();
    for name in order {
        let Some((last, before)) = set.get(&name).and_then(|all| all.split_last()) else {
            continue;
        };
        let shown = |lines: &[&Directive]| {
            let texts: Vec<&str> = lines.iter().map(|line| line.args.as_str()).collect();
            Some((places.of(lines.first()?.span)?, texts.join("; ")))
        };
        let Some((place, value)) = shown(last) else { continue };
        let over = before.iter().rev().filter(|_| !is_relative(&name, last));
        let over = over.filter_map(|lines| shown(lines)).collect();
        let name = last.first().map(|line| line.name.clone()).unwrap_or_default();
        found.push(Winner { name, value, place, over });
    }
    let added = |line: &&Directive| {
        let (name, value) = (line.name.clone(), line.args.clone());
        Some(Winner { name, value, place: places.of(line.span)?, over: Vec::new() })
    };
    found.extend(adding.iter().filter_map(added));
    found
}

/// Whether a directive is for sections: others do not concern a single request.
fn concerns_requests(registry: &Registry, name: &str) -> bool {
    let is_per_directory = |row: &ErasedRow| row.places.contains(Contexts::DIRECTORY);
    match name {
        "documentroot" => true,
        // It is for the whole server wherever it stands.
        "defaultruntimedir" => false,
        _ => registry.row(name).is_some_and(is_per_directory),
    }
}

/// Whether a line adds to outer ones by a sign (`Options +Indexes`).
fn is_relative(name: &str, lines: &[&Directive]) -> bool {
    let has_sign = |line: &&Directive| line.args.starts_with(['+', '-']);
    matches!(name, "options" | "indexoptions" | "ssloptions") && lines.iter().all(has_sign)
}
