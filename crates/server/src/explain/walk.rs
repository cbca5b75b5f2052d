//! The sections that a walk has matched.

use std::sync::Arc;

use super::{Event, Kind};
use crate::config::section::{Matches, Section};
use crate::engine::plan::Layer;
use crate::request::Request;

/// An `.htaccess` that the directory walk found missing or did not look for.
pub(crate) struct Unread {
    /// Its directory.
    pub directory: Vec<u8>,
    /// Whether `AllowOverride` forbids to read it.
    pub is_forbidden: bool,
}

/// Records a walk through `<Location>`, `<Files>` or `<If>`.
#[cold]
pub(crate) fn section_walk(
    request: &Request,
    name: &'static str,
    subject: &[u8],
    sections: &[Arc<Section>],
    layers: [&Layer; 2],
) {
    if sections.is_empty() {
        return;
    }
    let Some(recorder) = &request.engine.recorder else { return };
    let walk = Event::new(Kind::Walk, name).with("subject", super::state::shown(subject));
    let begun = recorder.begin(walk);
    add_sections(request, sections, layers, subject);
    begun.end(|_| {});
}

/// Records the directory walk.
#[cold]
pub(crate) fn directory_walk(
    request: &Request,
    path: &[u8],
    unread: &[Unread],
    layers: [&Layer; 2],
) {
    let Some(recorder) = &request.engine.recorder else { return };
    let sections = request.host.directories.all();
    let walk = Event::new(Kind::Walk, "directories").with("subject", super::state::shown(path));
    let begun = recorder.begin(walk);
    add_sections(request, &sections, layers, path);
    for one in unread {
        let outcome = if one.is_forbidden { "not read" } else { "none" };
        let event = Event::new(Kind::NoHtaccess, super::state::shown(&one.directory));
        recorder.add(event.came_to(outcome));
    }
    begun.end(|_| {});
}

/// Adds the sections that matched in the order of their merge, then the others.
fn add_sections(
    request: &Request,
    sections: &[Arc<Section>],
    [before, after]: [&Layer; 2],
    subject: &[u8],
) {
    let Some(recorder) = &request.engine.recorder else { return };
    let matched = recorder.matched(sections, before.id, after.id);
    for id in &matched {
        let event = match sections.iter().find(|section| section.id == *id) {
            Some(section) => {
                Event::new(Kind::Section, described(&section.matches)).at(section.span)
            }
            None => file_event(recorder, *id),
        };
        recorder.add(event.came_to("matched").with("id", id.to_string()));
    }
    for section in sections.iter().filter(|section| !matched.contains(&section.id)) {
        let event = Event::new(Kind::Section, described(&section.matches)).at(section.span);
        let why = why_not(&section.matches, subject);
        recorder.add(event.came_to("no").with("why", why));
    }
}

fn file_event(recorder: &super::Recorder, id: u64) -> Event {
    let files = recorder.files();
    let file = files.iter().find(|file| file.section == id);
    let source = file.and_then(|file| file.tree.sources.iter().next());
    let name = source.map(|(_, source)| source.name.to_string()).unwrap_or_default();
    Event::new(Kind::Section, name).with("htaccess", "yes")
}

/// What a section matches, as text.
fn described(matches: &Matches) -> String {
    match matches {
        Matches::Path(text) | Matches::Wildcard(text) => super::state::shown(text),
        Matches::Regex(regex) => super::state::shown(regex.pattern()),
        Matches::If(_) | Matches::Always => String::new(),
    }
}

/// The reason why a section did not match, by its kind alone.
fn why_not(matches: &Matches, subject: &[u8]) -> String {
    let shown = super::state::shown(subject);
    match matches {
        Matches::Path(_) => format!("{shown} is neither this path nor below it"),
        Matches::Wildcard(_) => format!("{shown} does not match the pattern"),
        Matches::Regex(_) => format!("{shown} does not match the expression"),
        Matches::If(_) => "the condition does not hold".to_owned(),
        Matches::Always => String::new(),
    }
}
