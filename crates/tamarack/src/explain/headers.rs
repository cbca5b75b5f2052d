//! The fields of a response, and the module and line that set each.

use std::collections::HashMap;

use conf::Span;
use server::explain::{Event, Kind};

use super::places::{Place, Places};

/// A field of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The module, such as `mod_headers`.
    pub module: String,
    /// The responsible line, if the module reports it.
    pub place: Option<Place>,
}

/// The module and line that set a field last.
#[derive(Clone, Default)]
struct Origin {
    module: String,
    span: Option<Span>,
}

/// The fields of a head, in order.
pub fn of(head: &[u8], event: &Event, places: &Places) -> Vec<Field> {
    let mut origins = HashMap::new();
    collect(event, "core.c", &mut origins);
    let text = String::from_utf8_lossy(head);
    let lines = text.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, value)| {
            let origin = origins.get(&name.to_ascii_lowercase()).cloned().unwrap_or_default();
            let module = if origin.module.is_empty() { "core.c" } else { &origin.module };
            Field {
                name: name.to_owned(),
                value: value.to_owned(),
                module: module_name(module),
                place: origin.span.and_then(|span| places.of(span)),
            }
        })
        .collect()
}

/// A module's name without the extension of its file.
pub fn module_name(file: &str) -> String {
    file.strip_suffix(".c").unwrap_or(file).to_owned()
}

fn collect(event: &Event, module: &str, origins: &mut HashMap<String, Origin>) {
    let module = match event.kind {
        Kind::Hook => event.name.as_str(),
        Kind::Filter => filter_owner(&event.name),
        _ => module,
    };
    for inner in &event.events {
        let name = match (inner.kind, inner.name.as_str()) {
            (Kind::Change, "header" | "header (always)") => inner.fact("name").unwrap_or_default(),
            (Kind::Change, "type") => "content-type",
            (Kind::Change, "encoding") => "content-encoding",
            (Kind::Change, "languages") => "content-language",
            _ => {
                collect(inner, module, origins);
                continue;
            }
        };
        let is_rule = |one: &Event| {
            let applied = !matches!(one.outcome.as_str(), "no match" | "a condition does not hold");
            one.kind == Kind::Rule && applied && name.eq_ignore_ascii_case("Location")
        };
        let is_it = |one: &&Event| {
            let is_directive = one.kind == Kind::Directive && one.name.eq_ignore_ascii_case(name);
            is_directive || is_rule(one)
        };
        let span = event.events.iter().rev().find(is_it).and_then(|one| one.span);
        let origin = Origin { module: module.to_owned(), span };
        origins.insert(name.to_ascii_lowercase(), origin);
    }
}

/// The module of a filter; the filter's name if the module is unknown.
fn filter_owner(name: &str) -> &str {
    match name {
        "DEFLATE" | "INFLATE" | "BYTYPE:DEFLATE" | "BYTYPE:INFLATE" => "mod_deflate.c",
        "BYTERANGE" => "core.c",
        name if name.starts_with("FIXUP_HEADERS") => "mod_headers.c",
        name => name,
    }
}
