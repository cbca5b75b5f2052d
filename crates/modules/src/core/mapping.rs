//! Maps the URI to a file: translation, the walks, and the effects of `ForceType`, `SetHandler` and
//! the filter directives.
//!
//! Source: `ap_core_translate`, `core_map_to_storage`, `core_override_type`, `core_insert_filter`
//! (server/core.c).

use std::borrow::Cow;
use std::sync::Arc;

use rustix::io::Errno;
use server::core::HandlerName;
use server::errorlog::Verbatim;
use server::expr;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::matching::{self, Stop};
use server::merge::Setting;
use server::path;
use server::request::Request;
use server::walk;

use super::Core;

/// Joins DocumentRoot and the URI's path, without its `ServerPath`.
pub(super) fn translate_name<'r>(_: Bound<'r, Core>, request: &'r mut Request) -> Step<'r> {
    let uri = std::mem::take(&mut request.resource.uri);
    let mapped = map_to_document_root(request, &uri);
    request.resource.uri = uri;
    mapped.map_or_else(Step::status, |()| Step::OK)
}

/// Maps a URL path to the request's file name, below DocumentRoot (`ap_core_translate`).
///
/// # Errors
/// The status that ends the request.
pub fn map_to_document_root(request: &mut Request, uri: &[u8]) -> Result<(), u16> {
    let core = request.host.core.clone();
    if uri.first() != Some(&b'/') && uri != b"*" {
        let (uri, line) = (Verbatim::new(uri), Verbatim::new(&request.head.request_line));
        let message = format_args!("Invalid URI in request '{uri}' '{line}'");
        request.log_as("core.c", Level::Error, 126, message);
        return Err(400);
    }
    let below = core.server_path.0.as_deref().and_then(|path| below(uri, path));
    let relative = below.unwrap_or(uri);
    // The main server always has one, and hosts inherit it.
    let root = core.document_root.get().map_or(&b"/"[..], Vec::as_slice);
    let mut file = Vec::with_capacity(root.len() + 1 + relative.len());
    file.extend_from_slice(root);
    if file.last() == Some(&b'/') {
        file.pop();
    }
    if relative.first() != Some(&b'/') {
        file.push(b'/');
    }
    file.extend_from_slice(relative);
    let is_inside = |full: &Vec<u8>| root == b"/" || full.starts_with(root);
    let can_join = path::can_join(root, relative.strip_prefix(b"/").unwrap_or(relative));
    let inside = path::into_canonical(file).filter(is_inside).filter(|_| can_join);
    let Some(full) = inside else {
        let line = Verbatim::new(&request.head.request_line);
        let message = format_args!("Cannot map {line} to file");
        match can_join {
            true => request.log_as("core.c", Level::Error, 127, message),
            false => request.log_core_error(Level::Error, 127, Errno::NAMETOOLONG, message),
        }
        return Err(403);
    };
    request.resource.canonical_filename.clone_from(&full);
    request.resource.filename = full;
    Ok(())
}

/// The URI after `ServerPath`, if it begins with it.
fn below<'u>(uri: &'u [u8], path: &[u8]) -> Option<&'u [u8]> {
    let rest = uri.strip_prefix(path)?;
    let whole = path.last() == Some(&b'/') || matches!(rest.first(), None | Some(b'/'));
    whole.then_some(rest)
}

/// Runs the directory walk, then the file walk.
pub(super) fn map_to_storage<'r>(_: Bound<'r, Core>, request: &'r mut Request) -> Step<'r> {
    const WALKS: [fn(&mut Request) -> Result<(), Stop>; 2] = [walk::directories, walk::files];
    let mut done = 0;
    matching::settle(request, move |request| {
        while let Some(walk) = WALKS.get(done) {
            walk(request)?;
            done += 1;
        }
        Ok(Verdict::Ok)
    })
}

/// Applies `ForceType`, `SetHandler` and `AcceptPathInfo`, which override the modules' results.
pub(super) fn override_type<'r>(core: Bound<'r, Core>, request: &'r mut Request) -> Step<'r> {
    if let Some(Some(media_type)) = core.dir.force_type.get() {
        request.response.content_type = Some(media_type.clone());
    }
    match core.dir.handler.get() {
        None | Some(HandlerName::None) => {}
        Some(HandlerName::Name(name)) => request.handler = Some(Cow::Owned(name.to_vec())),
        Some(HandlerName::Expr(expr)) => match expr::string(expr, request) {
            // An empty name replaces that of AddHandler as well, and is one to FallbackResource and
            // DirectoryCheckHandler, which leave the request alone.
            Ok(name) if name.is_empty() => request.handler = Some(Cow::Borrowed(b"")),
            Ok(name) => {
                if let HandlerName::Name(name) = HandlerName::of(&name) {
                    request.handler = Some(Cow::Owned(name.to_vec()));
                }
            }
            Err(why) => {
                let why = format!("Can't evaluate handler expression: {why}");
                request.log_core(Level::Error, 3154, &why, None);
                return Step::status(500);
            }
        },
    }
    if let Some(path_info) = core.dir.accept_path_info.get() {
        request.resource.used_path_info = *path_info;
    }
    Step::OK
}

/// Whether [`override_type`] has anything to do.
pub(super) fn overrides_type(core: Bound<'_, Core>) -> bool {
    core.dir.force_type.is_set() || core.dir.handler.is_set() || core.dir.accept_path_info.is_set()
}

/// Whether the result of [`override_type`] depends on an expression.
pub(super) fn overrides_by_expression(core: Bound<'_, Core>) -> bool {
    matches!(core.dir.handler.get(), Some(HandlerName::Expr(_)))
}

/// `SetOutputFilter`, `SetInputFilter`
pub(super) fn insert_filters<'r>(core: Bound<'r, Core>, request: &'r mut Request) -> Step<'r> {
    for name in core.dir.output_filters.get().into_iter().flat_map(|names| names.iter()) {
        request.add_filter_named(name);
    }
    for name in core.dir.input_filters.get().into_iter().flat_map(|names| names.iter()) {
        request.add_input_filter_named(name);
    }
    Step::OK
}

/// Whether [`insert_filters`] has anything to do.
pub(super) fn has_filters(core: Bound<'_, Core>) -> bool {
    let any = |names: &Setting<Arc<Vec<Vec<u8>>>>| names.get().is_some_and(|all| !all.is_empty());
    any(&core.dir.output_filters) || any(&core.dir.input_filters)
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn server_path_takes_whole_segments() {
        assert_eq!(below(b"/a/b", b"/a"), Some(&b"/b"[..]));
        assert_eq!(below(b"/a", b"/a"), Some(&b""[..]));
        assert_eq!(below(b"/ab", b"/a"), None);
        assert_eq!(below(b"/a/b", b"/a/"), Some(&b"b"[..]));
    }
}
