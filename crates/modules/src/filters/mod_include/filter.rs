//! The filter `INCLUDES`.
//!
//! Source: `includes_setup`, `includes_filter`

use messages::Message;
use server::body::Body;
use server::core::OptionFlags;
use server::errorlog::Verbatim;
use server::errors;
use server::etag;
use server::filter::{Beginning, OutputFilter};
use server::log::Level;
use server::request::Request;

use super::Include;
use super::compiled::{Compiled, TooLong};
use super::config::{Directory, XBitHack};
use super::page::Page;
use super::{FILTER, rest, variables};

/// The longest page, in bytes: it is in memory as a whole while its elements are executed.
const PAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Creates the filter. What it does to conditions and ETag holds before the handler runs.
pub(super) fn make(request: &mut Request) -> Option<Box<dyn OutputFilter>> {
    if request.response.filters.iter().any(|attached| attached.name.as_bytes() == FILTER) {
        request.keep(rest::IsInputOfPage);
    }
    let dir = request.dir_of::<Include>().cloned().unwrap_or_default();
    if !has_own_time(&dir, request) {
        request.response.no_local_copy = true;
    }
    if !dir.etag.or(false) {
        etag::forbid(request);
    }
    Some(Box::new(Filter))
}

/// Whether `XBitHack full` gives the page the time of its file.
fn has_own_time(dir: &Directory, request: &Request) -> bool {
    const GROUP_EXECUTE: u32 = 0o010;
    let is_full = dir.xbithack.or(XBitHack::Off) == XBitHack::Full;
    is_full && request.resource.file.mode & GROUP_EXECUTE != 0
}

struct Filter;

/// The longest response that is cached.
const CACHED_BYTES_MAX: u64 = 256 * 1024;

impl OutputFilter for Filter {
    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        Some(Box::pin(async {
            let body = std::mem::take(&mut request.response.body);
            match includes(request, body).await {
                Ok(body) => {
                    request.response.body = body;
                    true
                }
                Err(TooLong) => {
                    let file = Verbatim::new(&request.resource.filename);
                    let text = format_args!(
                        "mod_include: {file} is longer than {PAGE_BYTES_MAX} bytes: it is not \
                         parsed, and not sent"
                    );
                    request.log::<Include>(Level::Error, Message::PageTooLong.number(), text);
                    Box::pin(errors::fail_in_filter(request)).await;
                    false
                }
            }
        }))
    }

    fn apply(self: Box<Self>, _: &mut Request, body: Body) -> Body {
        body
    }

    /// Its elements note what they depend on.
    fn is_pure(&self) -> bool {
        true
    }
}

/// The page with its elements executed.
async fn includes(request: &mut Request, body: Body) -> Result<Body, TooLong> {
    if !request.plan.core.options.flags().has(OptionFlags::INCLUDES) {
        let uri = Verbatim::new(&request.resource.uri);
        let why = "Options +Includes (or IncludesNoExec) wasn't set, INCLUDES filter removed";
        let text = format_args!("mod_include: {why}: {uri}");
        request.log::<Include>(Level::Warn, 1374, text);
        return Ok(body);
    }
    let before = request.env.clone();
    let known = variables::prepare(request).await;
    set_fields(request);
    if request.head.header_only && matches!(body, Body::Stream(_)) {
        request.response.chunked = true;
        return Ok(body);
    }
    let (compiled, tail) = Compiled::of_body(request, body, PAGE_BYTES_MAX).await?;
    let mut page = Page::new(request, compiled, known);
    page.execute().await;
    if let Some(pause) = page.pause.take() {
        return Ok(rest::body(page, pause, before, tail));
    }
    let Page { mut request, out, known, .. } = page;
    variables::give_back(&mut request, known, before);
    let (mut made, has_length) = out.finish();
    if request.depends.pure {
        made = joined(made).await;
    }
    request.response.chunked |= !has_length;
    Ok(match tail {
        Body::Empty => made,
        // The error that the page ended with.
        tail => Body::Parts([made, tail].into()),
    })
}

/// The body in one piece, as it is cached, unless it is too long.
async fn joined(body: Body) -> Body {
    match (&body, body.length()) {
        (Body::Parts(_), Some(length)) if length <= CACHED_BYTES_MAX => {
            body.gathered(usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1)).await
        }
        _ => body,
    }
}

/// A page has no length, and no time that is known, unless the configuration says so.
fn set_fields(request: &mut Request) {
    let dir = request.dir_of::<Include>().cloned().unwrap_or_default();
    request.response.unset_length();
    if dir.last_modified.or(false) {
        if !request.response.headers_out.contains(b"Last-Modified") {
            set_last_modified(request);
        }
    } else if has_own_time(&dir, request) {
        set_last_modified(request);
    } else {
        request.response.headers_out.unset(b"Last-Modified");
    }
}

/// Source: `ap_update_mtime`, `ap_set_last_modified`
fn set_last_modified(request: &mut Request) {
    const SECOND_US: u64 = 1_000_000;
    let of_file = request.resource.file.mtime_us;
    let time = request.response.mtime_us.map_or(of_file, |time| time.max(of_file));
    request.response.mtime_us = Some(time);
    let seconds = time.min(request.time_us) / SECOND_US;
    let date = wire::date::format(i64::try_from(seconds).unwrap_or(i64::MAX));
    request.response.headers_out.set(b"Last-Modified", &date);
}
