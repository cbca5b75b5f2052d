//! The handler: lists a directory without an index file.
//!
//! Source: `handle_autoindex`, `index_directory`.

use messages::Message;
use rt::{PoolError, Work};
use rustix::io::Errno;
use server::body::Body;
use server::core::{EtagParts, OptionFlags};
use server::discard::discard_body;
use server::errorlog::Verbatim;
use server::etag;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::{Announced, Request};
use wire::{Method, MethodSet, escape};

use super::around::{self, Parts};
use super::entry::{self, Entry};
use super::options::Flags;
use super::query::Wanted;
use super::text::Page;
use super::{Autoindex, DirConfig, fancy, list, table};

/// Most entries that are sorted on the loop.
const SORTED_HERE_MAX: usize = 1024;

/// Microseconds in a second.
const SECOND_US: u64 = 1_000_000;

/// Lists a directory if `Options Indexes` is set.
pub(super) fn handle<'r>(bound: Bound<'r, Autoindex>, request: &'r mut Request) -> Step<'r> {
    let allowed = request.plan.core.options.flags().has(OptionFlags::INDEXES);
    respond(bound.dir, request, allowed)
}

/// Lists a directory with the handler `autoindex`, regardless of the options.
pub(super) fn handle_always<'r>(bound: Bound<'r, Autoindex>, request: &'r mut Request) -> Step<'r> {
    respond(bound.dir, request, true)
}

fn respond<'r>(config: &'r DirConfig, request: &'r mut Request, allowed: bool) -> Step<'r> {
    let get: MethodSet = [Method::GET].into_iter().collect();
    request.response.allowed = request.response.allowed.union(get);
    if request.head.method != Method::GET {
        return Step::DECLINED;
    }
    if !allowed {
        refuse(request);
        return Step::status(403);
    }
    Step::Pending(Box::pin(index(config, request)))
}

fn refuse(request: &Request) {
    let file = Verbatim::new(&request.resource.filename);
    let names = Verbatim::new(request.notes.get(b"dir-index-names").unwrap_or(b"none"));
    request.log::<Autoindex>(
        Level::Error,
        1276,
        format_args!(
            "Cannot serve directory {file}: No matching DirectoryIndex ({names}) found, and \
             server-generated directory index forbidden by Options directive"
        ),
    );
}

async fn index(config: &DirConfig, request: &mut Request) -> Verdict {
    if let Err(status) = discard_body(request).await {
        return Verdict::Status(status);
    }
    if request.resource.filename.last() != Some(&b'/') {
        request.resource.filename.push(b'/');
    }
    let directory = request.resource.filename.clone();
    let pool = request.engine.handle.blocking().clone();
    let names = match pool.run(Work::File, move || list::read(&directory)).await {
        Ok(Ok(names)) => names,
        Ok(Err(error)) => {
            let errno = Errno::from_raw_os_error(error.raw_os_error().unwrap_or(0));
            let file = Verbatim::new(&request.resource.filename);
            request.log_error::<Autoindex>(
                Level::Error,
                1275,
                errno,
                format_args!("Can't open directory for index: {file}"),
            );
            return Verdict::Status(403);
        }
        Err(why) => return unavailable(request, why),
    };
    let flags = config.options.flags();
    describe(config, request, flags);
    if request.head.header_only {
        request.response.announced = Announced::End;
        request.response.body = Body::Empty;
        return Verdict::Ok;
    }
    let order = config.order.get().copied().unwrap_or_default();
    let wanted = Wanted::read(flags, order, request.query());
    let title = title(request);
    let mut parts = Parts::default();
    around::head(config, request, wanted.flags, &title, &mut parts).await;
    let mut entries: Vec<_> = list::parent(config, request, wanted.flags).into_iter().collect();
    entries.extend(list::entries(config, request, &wanted, names).await);
    let entries = match sorted(request, entries, &wanted).await {
        Ok(entries) => entries,
        Err(why) => return unavailable(request, why),
    };
    let mut page = Page::new(config, &wanted, &entries);
    if wanted.flags.has(Flags::TABLE) {
        table::write(&mut page, &entries).await;
    } else if wanted.flags.has(Flags::FANCY) {
        fancy::write_lines(&mut page, &entries).await;
    } else {
        fancy::write_plain(&mut page, &entries).await;
    }
    parts.put(page.out);
    around::tail(config, request, wanted.flags, &mut parts).await;
    request.response.chunked |= parts.is_open();
    if let Some(passed) = parts.passed() {
        request.keep(passed);
    }
    request.print(parts.into_body());
    Verdict::Ok
}

fn unavailable(request: &Request, why: PoolError) -> Verdict {
    request.log::<Autoindex>(Level::Error, Message::PoolRefused.number(), format_args!("{why}"));
    Verdict::Status(503)
}

/// Sorts entries, on the blocking pool if there are many.
async fn sorted(
    request: &Request,
    mut entries: Vec<Entry>,
    wanted: &Wanted,
) -> Result<Vec<Entry>, PoolError> {
    let (own, are_many) = (wanted.clone(), entries.len() > SORTED_HERE_MAX);
    let sort = move || {
        entry::sort(&mut entries, &own);
        entries
    };
    if !are_many {
        return Ok(sort());
    }
    request.engine.handle.blocking().run(Work::File, sort).await
}

/// Sets the media type and, with `TrackModified`, the validators of the directory itself.
fn describe(config: &DirConfig, request: &mut Request, flags: Flags) {
    let media_type = config.options.media_type.get().map_or(&b"text/html"[..], Vec::as_slice);
    let charset = config.options.charset.get().map_or(&b"ISO-8859-1"[..], Vec::as_slice);
    request.response.content_type = Some(match charset {
        [] => media_type.to_vec(),
        _ => [media_type, b";charset=", charset].concat(),
    });
    if flags.has(Flags::TRACK_MODIFIED) {
        let info = request.resource.file;
        request.response.mtime_us = Some(info.mtime_us);
        let mtime = (info.mtime_us / SECOND_US).min(request.time_us / SECOND_US);
        let date = wire::date::format(i64::try_from(mtime).unwrap_or(i64::MAX));
        request.response.headers_out.set(b"Last-Modified", &date);
        let parts = request.plan.core.file_etag.parts();
        let mut tag = etag::of_file(&info, parts, request.time_us);
        if tag.is_empty() && parts.has(EtagParts::DIGEST) {
            // A folder has no digest: none of the parts is left.
            tag = b"\"\"".to_vec();
        }
        // It may be the document of a request that had variants.
        let tag = Some(tag).filter(|tag| !tag.is_empty()).map(|tag| etag::with_list(request, tag));
        etag::tell(request, tag);
    }
}

/// The path for display, without trailing slashes.
fn title(request: &Request) -> Vec<u8> {
    let mut title = Vec::new();
    escape::html(&mut title, &request.resource.uri);
    while title.len() > 1 && title.last() == Some(&b'/') {
        title.pop();
    }
    title
}
