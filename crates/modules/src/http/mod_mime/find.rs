//! The type checker: examines a file's extensions.
//!
//! Source: `find_ct` (modules/http/mod_mime.c).

use std::borrow::Cow;

use bstr::ByteSlice;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step};
use server::log::Level;
use server::request::{FileKind, Request};

use super::parameters::{self, Mistake};
use super::{Directory, Mime, MultiviewsMatch};

/// The handler name of a directory (`DIR_MAGIC_TYPE`).
const DIRECTORY_TYPE: &[u8] = b"httpd/unix-directory";

/// Most bytes of nearly all extensions.
const SHORT_BYTES: usize = 16;

/// The base name and unknown extensions of a file, for mod_negotiation (`ap-mime-exceptions-list`).
#[derive(Clone, Debug, Default)]
pub struct Unrecognized(pub Vec<Vec<u8>>);

/// Splits a file name into base name and extensions without dots. Leading dots belong to the base.
pub fn split_extensions(name: &[u8]) -> (&[u8], impl Iterator<Item = &[u8]>) {
    let start = name.iter().position(|byte| *byte != b'.').unwrap_or(name.len());
    let end = name.get(start..).and_then(|rest| rest.find_byte(b'.')).map(|at| at + start);
    let (base, rest) = name.split_at(end.unwrap_or(name.len()));
    (base, rest.split(|byte| *byte == b'.').filter(|part| !part.is_empty()))
}

/// The properties found so far.
#[derive(Default)]
struct Found {
    charset: Option<Vec<u8>>,
    unrecognized: Vec<Vec<u8>>,
    /// An extension has a meaning. Where none has, mod_negotiation leaves the file out.
    is_recognized: bool,
}

/// Sets type, encoding, language, handler and filters of a request.
pub fn find_types<'r>(bound: Bound<'r, Mime>, request: &'r mut Request) -> Step<'r> {
    if request.resource.file.kind == FileKind::Directory {
        request.response.content_type = Some(DIRECTORY_TYPE.to_vec());
        return Step::OK;
    }
    let name = named(bound.dir, request);
    let (base, extensions) = split_extensions(&name);
    let mut found = Found::default();
    for extension in extensions {
        read(bound, request, &mut found, extension);
    }
    // Only subrequests are variants.
    if found.is_recognized && request.main.is_some() {
        found.unrecognized.insert(0, base.to_vec());
        request.keep(Unrecognized(std::mem::take(&mut found.unrecognized)));
    }
    rewrite(request, found.charset.as_deref());
    if request.response.content_languages.is_empty()
        && let Some(default) = bound.dir.default_language.get()
    {
        request.response.content_languages.push(default.clone());
    }
    match request.response.content_type.is_some() || request.given_type().is_some() {
        true => Step::OK,
        false => Step::DECLINED,
    }
}

/// Rewrites the parameters of the media type, or of the one that the request before has given.
fn rewrite(request: &mut Request, charset: Option<&[u8]>) {
    let own = request.response.content_type.as_deref();
    let Some(media_type) = own.or_else(|| request.given_type()) else { return };
    if charset.is_none() && parameters::is_plain(media_type) {
        return;
    }
    match parameters::rewritten(media_type, charset) {
        Ok(rewritten) if own.is_some() => request.response.content_type = Some(rewritten),
        Ok(rewritten) => request.give_type(rewritten),
        Err(mistake) => log_mistake(request, media_type, mistake),
    }
}

/// The name whose extensions count: the file's, with path information if configured.
fn named(directory: &Directory, request: &Request) -> Vec<u8> {
    let last = |path: &[u8]| -> Vec<u8> {
        let start = path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        path.get(start..).unwrap_or_default().to_vec()
    };
    if directory.use_path_info.or(false) {
        return last(&[&request.resource.filename[..], &request.resource.path_info].concat());
    }
    last(&request.resource.filename)
}

fn read(bound: Bound<'_, Mime>, request: &mut Request, found: &mut Found, written: &[u8]) {
    let mut room = [0; SHORT_BYTES];
    let extension = lower_case(written, &mut room);
    let mut known = false;
    let configured = bound.dir.extensions.get(&extension);
    let media_type = configured.and_then(|one| one.media_type.get());
    let removed =
        configured.is_some_and(|one| one.media_type == super::extension::Meaning::Removed);
    let from_file = || bound.server.types.0.get(&extension).filter(|_| !removed);
    if let Some(media_type) = media_type.or_else(from_file) {
        request.response.content_type = Some(media_type.to_vec());
        known = true;
    }
    if let Some(one) = configured {
        known |= apply(bound.dir, request, found, one);
    }
    let views = bound.dir.multiviews_match.or(MultiviewsMatch::default());
    if known || views.any {
        found.is_recognized = true;
    } else if request.main.is_some() {
        found.unrecognized.push(written.to_vec());
    }
}

/// The text in lower case, in `room` if it is short.
fn lower_case<'t>(text: &[u8], room: &'t mut [u8; SHORT_BYTES]) -> Cow<'t, [u8]> {
    match room.get_mut(..text.len()) {
        Some(room) => {
            room.copy_from_slice(text);
            room.make_ascii_lowercase();
            Cow::Borrowed(room)
        }
        None => Cow::Owned(text.to_ascii_lowercase()),
    }
}

/// Applies the `Add…` directives of an extension, and returns whether the extension is known.
fn apply(
    directory: &Directory,
    request: &mut Request,
    found: &mut Found,
    extension: &super::Extension,
) -> bool {
    let views = directory.multiviews_match.or(MultiviewsMatch::default());
    let mut known = false;
    if let Some(charset) = extension.charset.get() {
        found.charset = Some(charset.to_vec());
        known = true;
    }
    if let Some(language) = extension.language.get() {
        request.response.content_languages.push(language.to_vec());
        known = true;
    }
    if let Some(encoding) = extension.encoding.get() {
        match &mut request.response.content_encoding {
            Some(encodings) => {
                encodings.extend_from_slice(b", ");
                encodings.extend_from_slice(encoding);
            }
            None => request.response.content_encoding = Some(encoding.to_vec()),
        }
        known = true;
    }
    if let Some(handler) = extension.handler.get() {
        request.handler = Some(Cow::Owned(handler.to_vec()));
        known |= views.handlers || request.main.is_none();
    }
    if let Some(names) = extension.output_filters.get() {
        for name in names.split(|byte| *byte == b';').filter(|name| !name.is_empty()) {
            request.add_filter_named(name);
        }
        known |= views.filters;
    }
    if let Some(names) = extension.input_filters.get() {
        for name in names.split(|byte| *byte == b';').filter(|name| !name.is_empty()) {
            request.add_input_filter_named(name);
        }
        known |= views.filters;
    }
    known
}

fn log_mistake(request: &Request, media_type: &[u8], mistake: Mistake) {
    let Mistake { number, text, .. } = mistake;
    let shown = Verbatim::new(media_type);
    match mistake.names_type {
        true => request.log_of_host::<Mime>(Level::Warn, number, format_args!("{text} '{shown}'")),
        false => request.log_of_host::<Mime>(Level::Warn, number, format_args!("{text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::split_extensions;

    #[test]
    fn extensions_follow_the_first_dot_after_the_base() {
        let split = |name| {
            let (base, extensions) = split_extensions(name);
            (base, extensions.collect::<Vec<_>>())
        };
        assert_eq!(split(b"a.html.en"), (&b"a"[..], vec![&b"html"[..], b"en"]));
        assert_eq!(split(b".htaccess.gz"), (&b".htaccess"[..], vec![&b"gz"[..]]));
        assert_eq!(split(b"plain"), (&b"plain"[..], vec![]));
        assert_eq!(split(b"..."), (&b"..."[..], vec![]));
    }
}
