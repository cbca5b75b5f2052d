//! The findings that concern one request, for `tamarack explain`.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

use conf::Span;
use server::explain::{Event, Kind};

use super::{Finding, engine, files, of_configuration, redirects};
use crate::explain::places::{Directive, Places};

/// A request.
pub struct Subject<'r> {
    /// The directives that apply, by place.
    pub levels: &'r [Rc<[Directive]>],
    /// The recording.
    pub event: &'r Event,
    /// Whether the main server responds.
    pub is_of_main: bool,
    /// The path of the URL, and of the file.
    pub paths: [&'r str; 2],
}

/// Returns what concerns a request, in the order of its directives.
pub fn of_request(places: &Places, subject: &Subject<'_>) -> Vec<Finding> {
    let mut found = of_configuration(&places.top);
    let hosts = redirects::hosts(&places.top);
    let read = htaccess_files(places, subject.event);
    let is_on = engine::any_in_folders(&places.top)
        || read.iter().any(|(_, directives)| engine::has_switch(directives));
    for (folder, directives) in read {
        files::of_folder(&directives, &mut found);
        engine::of_file(&directives, is_on, &mut found);
        redirects::folder(Path::new(&folder), &directives, &hosts, &mut found);
    }
    let spans = spans(subject);
    let is_near = |one: &Finding| {
        let applies = one.span.is_some_and(|span| spans.contains(&span));
        let concerns = |path: &String| subject.paths.iter().any(|own| own.contains(&**path));
        applies && one.about.as_ref().is_none_or(concerns)
    };
    found.retain(is_near);
    found.sort_by_key(|one| (one.severity, one.span, one.message.clone()));
    found.dedup();
    found
}

/// The `.htaccess` files that were read for the request: their folders and directives.
fn htaccess_files(places: &Places, event: &Event) -> Vec<(String, Rc<[Directive]>)> {
    let mut files = Vec::new();
    event.each(&mut |event| {
        let is_file = event.kind == Kind::Section && event.fact("htaccess").is_some();
        let id = event.fact("id").filter(|_| is_file).and_then(|id| id.parse().ok());
        let Some(directives) = id.and_then(|id| places.of_file(id)) else { return };
        let folder = Path::new(&event.name).parent().unwrap_or(Path::new("/"));
        files.push((folder.to_string_lossy().into_owned(), directives.clone()));
    });
    files
}

/// The directives that apply. The rules of the main server do not apply to other hosts, unless
/// these inherit them.
fn spans(subject: &Subject<'_>) -> HashSet<Span> {
    let mut spans = HashSet::new();
    for (at, level) in subject.levels.iter().enumerate() {
        let is_main = at == 0 && !subject.is_of_main;
        let inherits = subject.levels.iter().flat_map(|level| level.iter()).any(|one| {
            one.name.eq_ignore_ascii_case("RewriteOptions")
                && one.args.to_ascii_lowercase().contains("inherit")
        });
        for one in level.iter() {
            let is_rewriting = one.name.to_ascii_lowercase().starts_with("rewrite");
            if !(is_main && is_rewriting && !inherits) {
                spans.insert(one.span);
            }
        }
    }
    spans
}
