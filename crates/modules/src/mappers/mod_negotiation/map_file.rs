//! The handler of type maps.
//!
//! Source: `handle_map_file` (modules/mappers/mod_negotiation.c).

use std::rc::Rc;

use messages::Message;
use rt::Work;
use server::body::{Body, FileSlice};
use server::errorlog::Verbatim;
use server::etag::{self, VariantsTag};
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::module::Module;
use server::path;
use server::redirect;
use server::request::{FileKind, Request};
use wire::Method;
use wire::conditional::{Validators, meets_conditions};

use super::Negotiation;
use super::outcome::{Variants, negotiate};
use super::type_map::{self, MAP_LIMIT_BYTES};
use super::variant::Variant;

/// Responds with the best variant of a map.
pub(super) fn handle<'r>(
    negotiation: Bound<'r, Negotiation>,
    request: &'r mut Request,
) -> Step<'r> {
    request.depends.pure = false;
    Step::Pending(Box::pin(async move {
        match answer(negotiation, request).await {
            Ok(verdict) => verdict,
            Err(status) => Verdict::Status(status),
        }
    }))
}

async fn answer(
    negotiation: Bound<'_, Negotiation>,
    request: &mut Request,
) -> Result<Verdict, u16> {
    let map = Place { filename: request.resource.filename.clone(), file: request.resource.file };
    let all = read_at(request, &map).await?;
    let mut variants = Variants { all, on_disk: 0 };
    let best = negotiate(negotiation, request, &mut variants, false).await?;
    let Some(best) = variants.all.into_iter().nth(best) else { return Err(500) };
    if let Some(start) = best.body_at {
        return send_body(request, best, start);
    }
    let target = redirect_target(request, &best.file_name);
    Ok(redirect::internal_redirect(request, &target).await)
}

/// The URL of a variant, with the request's own path information and query.
fn redirect_target(request: &Request, file_name: &[u8]) -> Vec<u8> {
    let uri = request
        .resource
        .uri
        .strip_suffix(request.resource.path_info.as_slice())
        .unwrap_or(&request.resource.uri);
    let end = uri.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let mut target = Vec::new();
    wire::escape::path(&mut target, uri.get(..end).unwrap_or_default());
    target.extend_from_slice(file_name);
    target.extend_from_slice(&request.resource.path_info);
    if let Some(args) = request.query() {
        target.push(b'?');
        target.extend_from_slice(args);
    }
    target
}

/// The location of a map.
struct Place {
    filename: Vec<u8>,
    file: server::request::FileInfo,
}

/// Reads the variants of a map that a subrequest has found.
pub(super) async fn read(request: &mut Request, map: &Request) -> Result<Vec<Variant>, u16> {
    let place = Place { filename: map.resource.filename.clone(), file: map.resource.file };
    read_at(request, &place).await
}

/// Reads a map. Missing lengths are taken from the files.
async fn read_at(request: &mut Request, map: &Place) -> Result<Vec<Variant>, u16> {
    // A folder can be opened but has no lines, which Apache treats as a map without variants.
    let text = match map.file.kind {
        FileKind::Directory => Vec::new(),
        _ => load(request, &map.filename).await?,
    };
    let slash = map.filename.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (directory, name) = map.filename.split_at(slash);
    let (mut variants, problem) = type_map::parse(&text, name);
    if let Some(problem) = problem {
        let [before, after] = &problem.message;
        let file = Verbatim::new(&map.filename);
        let message = format_args!("{before}{file}{after}");
        request.log::<Negotiation>(Level::Error, problem.number, message);
        if !problem.usable {
            return Err(500);
        }
    }
    for variant in variants.iter_mut().filter(|variant| variant.bytes.is_none()) {
        let file = [directory, &variant.file_name].concat();
        variant.bytes = path::stat(&file).ok().map(|info| info.size);
    }
    let parts = request.plan.core.file_etag.parts();
    let tag = etag::of_file(&map.file, parts, request.time_us);
    request.keep(VariantsTag::of(&tag, request.kept()));
    Ok(variants)
}

async fn load(request: &Request, file: &[u8]) -> Result<Vec<u8>, u16> {
    let place = file.to_vec();
    let read = move || -> std::io::Result<Vec<u8>> {
        use std::io::Read;
        let mut text = Vec::new();
        let map = regular::open(path::as_path(&place))?;
        map.take(MAP_LIMIT_BYTES).read_to_end(&mut text)?;
        Ok(text)
    };
    let pool = request.engine.handle.blocking().clone();
    let error = match pool.run(Work::File, read).await {
        Ok(Ok(text)) => return Ok(text),
        Ok(Err(error)) => error,
        Err(why) => {
            request.log::<Negotiation>(
                Level::Error,
                Message::PoolRefused.number(),
                format_args!("{why}"),
            );
            return Err(503);
        }
    };
    let shown = Verbatim::new(file);
    let message = format_args!("cannot access type map file: {shown}");
    request.log_error_as(Negotiation::FILE, Level::Error, 683, &error, message);
    let missing = [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory];
    Err(if missing.contains(&error.kind()) { 404 } else { 403 })
}

/// Sends a body that is inside the map.
fn send_body(request: &mut Request, variant: Variant, start: u64) -> Result<Verdict, u16> {
    let standard = [Method::GET, Method::OPTIONS, Method::POST];
    request.response.allowed = standard.into_iter().collect();
    if request.head.method != Method::GET && request.head.method != Method::POST {
        return Err(405);
    }
    let length = variant.bytes.unwrap_or(0);
    let accepted = request.core_of(&request.layer).accept_ranges();
    request.response.headers_out.set(b"Accept-Ranges", accepted);
    request.response.headers_out.set(b"Content-Length", length.to_string().as_bytes());
    if !variant.media_type.is_empty() {
        let mut media_type = variant.media_type;
        if !variant.charset.is_empty() {
            media_type.extend_from_slice(b"; charset=");
            media_type.extend_from_slice(&variant.charset);
        }
        request.response.content_type = Some(media_type);
    }
    if !variant.languages.is_empty() {
        request.response.content_languages = variant.languages;
    }
    if variant.encoding.as_ref().is_some_and(|encoding| !encoding.is_empty()) {
        request.response.content_encoding = variant.encoding;
    }
    let now = i64::try_from(request.time_us / 1_000_000).unwrap_or(i64::MAX);
    let known = Validators { method: request.head.method, etag: None, last_modified: None, now };
    if let Some(status) = meets_conditions(&request.head.headers_in, &known).status() {
        return Err(status);
    }
    let file = regular::open(path::as_path(&request.resource.filename)).map_err(|_| 403u16)?;
    request.response.body = Body::File(FileSlice { file: Rc::new(file), offset: start, length });
    Ok(Verdict::Ok)
}
