//! MultiViews: the files whose names begin with the requested one.
//!
//! Source: `read_types_multi`, `handle_multi` (modules/mappers/mod_negotiation.c).

use std::os::unix::ffi::OsStringExt;

use messages::Message;
use rt::Work;
use server::core::EtagParts;
use server::errorlog::Verbatim;
use server::etag::{self, VariantsTag};
use server::hooks::{Bound, Verdict};
use server::log::Level;
use server::path;
use server::request::{FileKind, Request};
use server::subrequest;
use wire::{Method, accept};

use super::accept::PROGRAM_TYPE;
use super::outcome::{Variants, negotiate};
use super::variant::Variant;
use super::{MAP_TYPE, Negotiation, map_file};
use crate::http::mod_mime::Unrecognized;

/// Most files examined for one resource.
const VARIANT_LIMIT: usize = 1000;

/// Finds the variants of a path that does not exist, and serves the best one.
pub(super) async fn handle(negotiation: Bound<'_, Negotiation>, request: &mut Request) -> Verdict {
    let mut variants = match find(request).await {
        Ok(Some(variants)) if !variants.all.is_empty() => variants,
        Ok(_) => return Verdict::Declined,
        Err(status) => return Verdict::Status(status),
    };
    let programs = request.head.method != Method::GET
        || request.query().is_some()
        || !request.resource.path_info.is_empty();
    let best = match negotiate(negotiation, request, &mut variants, programs).await {
        Ok(best) => best,
        Err(status) => return Verdict::Status(status),
    };
    let Some(variant) = variants.all.get_mut(best) else { return Verdict::Declined };
    let mut sub = match variant.sub.take() {
        Some(sub) => sub,
        None => {
            let sub = subrequest::lookup_file(request, &variant.file_name).await;
            if sub.response.status != 200 {
                return Verdict::Status(sub.response.status);
            }
            sub
        }
    };
    if !request.resource.path_info.is_empty() {
        sub.resource.path_info.clone_from(&request.resource.path_info);
    }
    sub.inherit_query(request);
    subrequest::fast_redirect(request, sub);
    Verdict::Ok
}

/// The variants on disk, or those of a type map among them; `None` if no name matches.
async fn find(request: &mut Request) -> Result<Option<Variants>, u16> {
    let Some(slash) = request.resource.filename.iter().rposition(|byte| *byte == b'/') else {
        return Ok(None);
    };
    let (directory, base) = request.resource.filename.split_at(slash + 1);
    let (directory, base) = (directory.to_vec(), base.to_vec());
    let names = read_names(request, &directory, &base).await?;
    let mut all = Vec::new();
    for name in &names {
        let sub = subrequest::lookup_entry(request, name).await;
        match variant(sub, name, &base) {
            Found::Nothing => {}
            Found::Variant(variant) => all.push(*variant),
            Found::Map(map) => {
                let all = map_file::read(request, &map).await?;
                return Ok(Some(Variants { all, on_disk: 0 }));
            }
        }
    }
    if all.is_empty() && !names.is_empty() {
        let file = Verbatim::new(&request.resource.filename);
        request.log::<Negotiation>(
            Level::Error,
            687,
            format_args!(
                "Negotiation: discovered file(s) matching request: {file} (None could be \
                 negotiated)."
            ),
        );
        return Err(404);
    }
    if let Ok(info) = path::stat(&directory) {
        let parts = match request.plan.core.file_etag.parts() {
            EtagParts::NONE => EtagParts::NONE,
            _ => EtagParts::MTIME,
        };
        let directory = etag::of_file(&info, parts, request.time_us);
        request.keep(VariantsTag::of(&directory, request.kept()));
    }
    // `variantsortf`
    all.sort_by(|a, b| {
        let by_quality = b.source_quality.total_cmp(&a.source_quality);
        by_quality.then_with(|| a.file_name.cmp(&b.file_name))
    });
    let on_disk = all.len();
    Ok(Some(Variants { all, on_disk }))
}

/// The names in a directory that begin with `base` and a dot. They stay in the directory's order,
/// in which Apache looks them up too: what the first look-up loads, such as a session, is not
/// loaded again by the others.
async fn read_names(request: &Request, directory: &[u8], base: &[u8]) -> Result<Vec<Vec<u8>>, u16> {
    let prefix = [base, b"."].concat();
    let place = directory.to_vec();
    let read = move || -> std::io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path::as_path(&place))? {
            let entry = entry?;
            let name = entry.file_name().into_vec();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if name.starts_with(&prefix) && !is_directory && names.len() < VARIANT_LIMIT {
                names.push(name);
            }
        }
        Ok(names)
    };
    let pool = request.engine.handle.blocking().clone();
    match pool.run(Work::File, read).await {
        Ok(Ok(names)) => Ok(names),
        Ok(Err(error)) => {
            let shown = Verbatim::new(directory);
            request.log::<Negotiation>(
                Level::Error,
                686,
                format_args!("cannot read directory for multi: {shown}: {error}"),
            );
            Err(403)
        }
        Err(why) => {
            request.log::<Negotiation>(
                Level::Error,
                Message::PoolRefused.number(),
                format_args!("{why}"),
            );
            Err(503)
        }
    }
}

/// The result for a file with a matching name.
enum Found {
    /// Not servable under this name.
    Nothing,
    /// A variant.
    Variant(Box<Variant>),
    /// A type map, which replaces all other variants.
    Map(Box<Request>),
}

fn variant(mut sub: Request, name: &[u8], base: &[u8]) -> Found {
    if sub.resource.file.kind != FileKind::Regular {
        return Found::Nothing;
    }
    // A file with a handler but no type counts as a program.
    if sub.handler.is_some() && sub.response.content_type.is_none() {
        sub.response.content_type = Some(PROGRAM_TYPE.to_vec());
    }
    let known = sub.kept::<Unrecognized>().is_some_and(|list| is_part_of(&list.0, base));
    if !known || sub.response.status != 200 {
        return Found::Nothing;
    }
    let Some(media_type) = sub.response.content_type.clone() else { return Found::Nothing };
    let is_map_handler = sub.handler.as_deref() == Some(b"type-map");
    if media_type == MAP_TYPE.as_bytes() || is_map_handler {
        return Found::Map(Box::new(sub));
    }
    let mut variant = Variant {
        file_name: name.to_vec(),
        encoding: sub.response.content_encoding.clone(),
        languages: sub.response.content_languages.clone(),
        bytes: Some(sub.resource.file.size),
        ..Variant::default()
    };
    variant.set_type(accept::parse_one(&media_type).0);
    variant.sub = Some(sub);
    Found::Variant(Box::new(variant))
}

/// Whether the unknown extensions occur in the requested name, in the same order.
fn is_part_of(unrecognized: &[Vec<u8>], base: &[u8]) -> bool {
    let mut left = unrecognized.iter().map(Vec::as_slice).peekable();
    for segment in base.split(|byte| *byte == b'.') {
        if left.peek() == Some(&segment) {
            left.next();
        }
    }
    left.peek().is_none()
}

#[cfg(test)]
mod tests {
    use super::is_part_of;

    #[test]
    fn parts_without_meaning_must_be_asked_for() {
        let parts =
            |names: &[&str]| names.iter().map(|n| n.as_bytes().to_vec()).collect::<Vec<_>>();
        assert!(is_part_of(&parts(&["index"]), b"index"));
        assert!(is_part_of(&parts(&["index", "foo"]), b"index.foo"));
        assert!(is_part_of(&parts(&["index", "foo"]), b"index.html.foo"));
        assert!(!is_part_of(&parts(&["index", "foo"]), b"index"));
        assert!(!is_part_of(&parts(&["index", "foo"]), b"foo.index"));
    }
}
