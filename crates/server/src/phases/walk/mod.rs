//! Walks a request through the matching sections to a merged configuration.
//!
//! Source: `ap_location_walk`, `ap_directory_walk`, `ap_file_walk`, `ap_if_walk`
//! (server/request.c).

mod again;
mod directory;
mod directory_sections;
mod entered;
mod gathered;
mod htaccess;
mod ifs;
mod proxied;
pub(super) mod symlink;

pub(in crate::phases) use directory::MatchedSections;
pub use directory::{PATH_LIMIT, directories};
pub use directory_sections::DirectorySections;
pub use entered::{ENTERED_LIMIT, ENTERED_LIMIT_OF_THREAD, EnteredCache};
pub use htaccess::{
    HtaccessCache, KEPT_BYTES_LIMIT, KEPT_BYTES_LIMIT_OF_THREAD, hand_down, leave_wanted,
    read_wanted, wants_to_read,
};
pub use ifs::{IfWalks, ifs, repeat as repeat_ifs};
pub use proxied::proxied;

use std::rc::Rc;

use pcre::{Captures, Later, Matched, Regex};

use crate::config::section::{Matches, Section, fresh_id};
use crate::engine::plan::Layer;
use crate::explain;
use crate::phases::matching::{Stop, certain};
use crate::request::Request;

use gathered::Gathered;

/// Wildcards of `<Location>` and `<Directory>` do not match a slash.
pub(crate) const PATHNAME: conf::fnmatch::Flags =
    conf::fnmatch::Flags { pathname: true, period: false, ignoring_case: false, no_escape: false };

/// Returns to the host's own configuration, before any section.
pub fn back_to_host(request: &mut Request) {
    let root = request.engine.plans.root(&request.host);
    enter(request, root);
    request.copy = again::first_copy(request);
}

/// Sets the request's configuration to `layer`.
pub fn enter(request: &mut Request, layer: Rc<Layer>) {
    if Rc::ptr_eq(&layer, &request.layer) {
        return;
    }
    request.plan = request.engine.plans.plan(&request.host, &layer);
    request.layer = layer;
}

/// The status for a path that may not be walked. Apache sets it at once, so that a request that was
/// redirected here has no error document.
fn forbid(request: &mut Request) -> u16 {
    if request.prev.is_some() {
        request.response.status = 403;
    }
    403
}

/// Merges `<Location>` and `<LocationMatch>`.
///
/// # Errors
/// The status that ends the request, or [`Stop::Later`] if a match has to be made first.
pub fn locations(request: &mut Request) -> Result<(), Stop> {
    if request.host.core.locations.is_empty() {
        return Ok(());
    }
    let host = request.host.clone();
    let mut matching = Gathered::default();
    // Except for regular expressions, double slashes are merged even under `MergeSlashes Off`.
    let mut merged = None;
    if request.resource.uri.first() == Some(&b'/')
        && request.resource.uri.windows(2).any(|pair| pair == b"//")
    {
        let mut uri = request.resource.uri.clone();
        wire::uri::no_double_slashes(&mut uri);
        merged = Some(uri);
    }
    for section in host.core.locations.iter() {
        if location_matches(section, request, merged.as_deref())? {
            matching.add(request, section);
        }
    }
    let base = request.layer.clone();
    enter(request, matching.onto(request, &base));
    if request.engine.recording().is_some() {
        let (uri, all) = (&request.resource.uri, &host.core.locations);
        explain::section_walk(request, "locations", uri, all, [&base, &request.layer]);
    }
    if matching.is_some() {
        again::merged(request, |request, before| before.is_at(&request.resource.uri));
    }
    let is_changed = !Rc::ptr_eq(&request.layer, &base);
    if is_changed && request.is_file_lookup() && base.id != request.engine.plans.root(&host).id {
        // Apache compares this walk with the first of the main request, which began with the host's
        // own configuration, and so merges again.
        request.copy = fresh_id();
    }
    Ok(())
}

/// Merges `<Files>` and `<FilesMatch>`. A directory's name is the text after its last slash: empty,
/// which `*` matches.
///
/// # Errors
/// As [`locations`].
pub fn files(request: &mut Request) -> Result<(), Stop> {
    let core = request.plan.core.clone();
    if core.files.is_empty() {
        return Ok(());
    }
    let name = match request.resource.filename.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => request.resource.filename.get(slash + 1..).unwrap_or_default().to_vec(),
        None => return Ok(()),
    };
    let mut matching = Gathered::default();
    for section in core.files.iter() {
        let matched = match &section.matches {
            Matches::Path(path) => *path == name,
            Matches::Wildcard(pattern) => {
                conf::fnmatch::fnmatch(pattern, &name, Default::default())
            }
            Matches::Regex(regex) => certain(match_names(regex, &name, request)?)?,
            Matches::If(_) | Matches::Always => false,
        };
        if matched {
            matching.add(request, section);
        }
    }
    let base = request.layer.clone();
    enter(request, matching.onto(request, &base));
    if matching.is_some() {
        again::merged(request, |_, before| before.is_named(&name));
    }
    if request.engine.recording().is_some() {
        let layers = [&*base, &*request.layer];
        explain::section_walk(request, "files", &name, &core.files, layers);
    }
    Ok(())
}

/// Whether a section matches. `merged` is the path without double slashes, if it has some.
fn location_matches(
    section: &Section,
    request: &mut Request,
    merged: Option<&[u8]>,
) -> Result<bool, Stop> {
    let uri = merged.unwrap_or(&request.resource.uri);
    Ok(match &section.matches {
        Matches::Path(path) => is_prefix(path, uri),
        Matches::Wildcard(pattern) => conf::fnmatch::fnmatch(pattern, uri, PATHNAME),
        Matches::Regex(regex) => {
            let uri = std::mem::take(&mut request.resource.uri);
            let matched = match_names(regex, &uri, request);
            request.resource.uri = uri;
            certain(matched?)?
        }
        Matches::If(_) | Matches::Always => false,
    })
}

/// Whether `path` is `uri` or a whole-segment prefix of it. An empty one is a prefix of `*`, too.
fn is_prefix(path: &[u8], uri: &[u8]) -> bool {
    let Some(rest) = uri.strip_prefix(path) else { return false };
    matches!(path.last(), None | Some(b'/')) || matches!(rest.first(), None | Some(b'/'))
}

/// Matches a regular expression; named groups go to the environment as `MATCH_NAME`.
pub(crate) fn match_names(
    regex: &Regex,
    subject: &[u8],
    request: &mut Request,
) -> Result<Matched, Later> {
    if regex.names().is_empty() {
        return request.matches(regex, subject, None);
    }
    let mut captures = Captures::default();
    let matched = request.matches(regex, subject, Some(&mut captures))?;
    if matched != Matched::Yes {
        return Ok(matched);
    }
    for (name, index) in regex.names() {
        let value = captures.text(*index, subject);
        let Some(value) = value else { continue };
        let mut key = b"MATCH_".to_vec();
        key.extend(name.iter().map(u8::to_ascii_uppercase));
        request.env.set(&key, value);
        request.depends.pure = false;
    }
    Ok(Matched::Yes)
}

#[cfg(test)]
mod tests {
    use super::is_prefix;

    #[test]
    fn a_location_matches_whole_segments() {
        assert!(is_prefix(b"/a", b"/a"));
        assert!(is_prefix(b"/a", b"/a/b"));
        assert!(!is_prefix(b"/a", b"/ab"));
        assert!(is_prefix(b"/a/", b"/a/b"));
        assert!(!is_prefix(b"/a/", b"/a"));
        assert!(is_prefix(b"/", b"/x"));
        assert!(is_prefix(b"", b"*") && !is_prefix(b"/", b"*"));
    }
}
