//! The default handler, which serves files.
//!
//! Source: `default_handler` (server/core.c).

use std::fs::File;
use std::rc::Rc;

use messages::Message;
use rt::PoolError;
use rustix::io::Errno;
use server::body::{Body, FileSlice};
use server::core::EtagParts;
use server::digest::{self, Digests, Wanted};
use server::discard::discard_body;
use server::errorlog::Verbatim;
use server::etag::{self, CodedTag};
use server::filter::Stage;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::path;
use server::request::{Announced, FileKind, OwnValidators, PathInfoUse, Request};
use server::unprovided;
use wire::MethodSet;
use wire::conditional::{Validators, meets_conditions};
use wire::method::Method;

use super::Core;

/// Microseconds in a second.
const SECOND_US: u64 = 1_000_000;

/// Responds with the file.
pub(super) fn default_handler<'r>(core: Bound<'r, Core>, request: &'r mut Request) -> Step<'r> {
    let standard = [Method::GET, Method::OPTIONS, Method::POST];
    request.response.allowed =
        request.response.allowed.union(standard.into_iter().collect::<MethodSet>());
    let wanted = digests(core, request);
    if request.body_in.is_empty() && !wanted.is_any() {
        return Step::Ready(serve(core, request));
    }
    Step::Pending(Box::pin(async move {
        match discard_body(request).await {
            Ok(()) if wanted.is_any() => serve_hashed(core, request, wanted).await,
            Ok(()) => serve(core, request),
            Err(status) => Verdict::Status(status),
        }
    }))
}

/// The digests that the configuration requires. A filter that changes the resource makes that of
/// the file useless.
fn digests(core: Bound<'_, Core>, request: &Request) -> Wanted {
    let is_changed = || {
        let first = request.response.filters.first();
        first.is_some_and(|filter| filter.stage == Stage::RESOURCE)
    };
    Wanted {
        sha1: core.dir.file_etag.parts().has(EtagParts::DIGEST),
        md5: core.dir.content_digest.or(false) && !is_changed(),
    }
}

fn serve(core: Bound<'_, Core>, request: &mut Request) -> Verdict {
    match request.head.method {
        Method::GET | Method::POST => serve_file(core, request),
        // Without a head, there is nothing to send (`ap_send_http_options`).
        Method::OPTIONS if request.head.simple => Verdict::Declined,
        Method::OPTIONS => {
            let allow = request.allow();
            request.response.headers_out.set(b"Allow", &allow);
            request.response.body = Body::Empty;
            request.response.announced = Announced::End;
            // Nothing is sent before the handler is over: filters see no name that the type gave.
            if request.handler_of_type {
                request.handler = None;
            }
            Verdict::Ok
        }
        Method::INVALID => {
            let line = request.head.request_line.clone();
            let line = String::from_utf8_lossy(&line);
            request.log_core(Level::Error, 135, &format!("Invalid method in request {line}"), None);
            Verdict::Status(501)
        }
        _ => Verdict::Status(405),
    }
}

/// The same with digests of the file, which the blocking pool computes.
async fn serve_hashed(core: Bound<'_, Core>, request: &mut Request, wanted: Wanted) -> Verdict {
    if !matches!(request.head.method, Method::GET | Method::POST) {
        return serve(core, request);
    }
    let file = match check_servable(request).and_then(|()| open(request)) {
        Ok(file) => file,
        Err(verdict) => return verdict,
    };
    let engine = request.engine.clone();
    let hashed = match file.try_clone() {
        Ok(own) => {
            digest::of_file(&engine, own, &request.resource.file, request.time_us, wanted).await
        }
        Err(_) => Err(PoolError::Full),
    };
    match hashed {
        Ok(digests) => {
            describe(core, request, &digests);
            deliver_file(request, file)
        }
        Err(why) => {
            let file = request.resource.filename.clone();
            let why = format!("cannot hash the file's content: {why}");
            request.log_core(Level::Error, Message::DigestFailed.number(), &why, Some(&file));
            Verdict::Status(503)
        }
    }
}

/// Logs why there is no file to send, if there is none.
fn check_servable(request: &mut Request) -> Result<(), Verdict> {
    match request.resource.file.kind {
        FileKind::None => return Err(missing(request, 128, "File does not exist")),
        FileKind::Directory => {
            let file = request.resource.filename.clone();
            request.log_core(Level::Info, 129, "Attempt to serve directory", Some(&file));
            return Err(Verdict::Status(404));
        }
        FileKind::Regular | FileKind::Other => {}
    }
    if request.resource.used_path_info != PathInfoUse::Accept
        && !request.resource.path_info.is_empty()
    {
        return Err(missing(request, 130, "File does not exist"));
    }
    if unprovided::withholds(request) {
        return Err(Verdict::Status(500));
    }
    Ok(())
}

fn serve_file(core: Bound<'_, Core>, request: &mut Request) -> Verdict {
    if let Err(verdict) = check_servable(request) {
        return verdict;
    }
    if let Some((info, content)) = request.engine.content(&request.resource.filename) {
        request.resource.file = info;
        describe(core, request, &Digests::default());
        return deliver(request, Body::Bytes(content));
    }
    let file = match open(request) {
        Ok(file) => file,
        Err(verdict) => return verdict,
    };
    describe(core, request, &Digests::default());
    deliver_file(request, file)
}

fn deliver_file(request: &mut Request, file: File) -> Verdict {
    let length = request.resource.file.size;
    deliver(request, Body::File(FileSlice { file: Rc::new(file), offset: 0, length }))
}

/// Sets the body, unless the request's conditions give another status.
fn deliver(request: &mut Request, body: Body) -> Verdict {
    request.response.body = body;
    request.response.announced = Announced::Length;
    if let Some(status) = condition(request) {
        request.response.status = status;
        request.response.body = Body::Empty;
    }
    Verdict::Ok
}

fn missing(request: &mut Request, number: u32, why: &str) -> Verdict {
    let file = [request.resource.filename.as_slice(), &request.resource.path_info].concat();
    request.log_core(Level::Info, number, why, Some(&file));
    Verdict::Status(404)
}

/// Opens the file and stats the descriptor, so that length and time are those of the file being
/// sent.
fn open(request: &mut Request) -> Result<File, Verdict> {
    match regular::open_with_stat(path::as_path(&request.resource.filename)) {
        Ok((file, stat)) => {
            request.resource.file = path::info(&stat);
            Ok(file)
        }
        Err(error) => {
            let name = Verbatim::new(&request.resource.filename);
            let errno = error.raw_os_error().map(Errno::from_raw_os_error);
            if errno == Some(regular::NOT_REGULAR) {
                let why = format_args!("not a regular file: {name}");
                request.log::<Core>(Level::Error, 132, why);
                return Err(Verdict::Status(403));
            }
            request.log_error::<Core>(
                Level::Error,
                132,
                errno.unwrap_or(Errno::IO),
                format_args!("file permissions deny server access: {name}"),
            );
            Err(Verdict::Status(403))
        }
    }
}

/// Sets Last-Modified, ETag, Accept-Ranges, Content-Length and Content-MD5, in Apache's order.
fn describe(core: Bound<'_, Core>, request: &mut Request, digests: &Digests) {
    let info = request.resource.file;
    request.response.mtime_us = Some(info.mtime_us);
    let (mtime, now) = (info.mtime_us / SECOND_US, request.time_us / SECOND_US);
    // A time in the future is replaced by the present one, which changes: the response is not
    // cached.
    request.depends.pure &= mtime <= now;
    let mtime = mtime.min(now);
    let date = wire::date::format(i64::try_from(mtime).unwrap_or(i64::MAX));
    request.response.headers_out.set(b"Last-Modified", &date);
    let parts = core.dir.file_etag.parts();
    let tag = if parts.has(EtagParts::DIGEST) {
        digests.sha1.as_ref().map(|digest| wire::etag::from_digest(digest.as_bytes()))
    } else {
        Some(etag::of_file(&info, parts, request.time_us)).filter(|tag| !tag.is_empty())
    };
    let tag = tag.map(|tag| etag::with_list(request, tag));
    let tag = match (tag, request.kept::<CodedTag>()) {
        (Some(tag), Some(coding)) => Some(coding.of(&tag)),
        (tag, _) => tag,
    };
    // A weak tag becomes strong with time: the response is not cached.
    request.depends.pure &= !tag.as_ref().is_some_and(|tag| tag.starts_with(b"W/"));
    etag::tell(request, tag);
    request.response.headers_out.set(b"Accept-Ranges", core.dir.accept_ranges());
    let mut digits = itoa::Buffer::new();
    request.response.headers_out.set(b"Content-Length", digits.format(info.size).as_bytes());
    if let Some(digest) = &digests.md5 {
        request.response.headers_out.set(b"Content-MD5", digest.as_bytes());
    }
}

/// The fields of conditions (RFC 9110 section 13.1).
const CONDITIONS: [&[u8]; 5] =
    [b"If-Match", b"If-Unmodified-Since", b"If-None-Match", b"If-Modified-Since", b"If-Range"];

/// The status from the request's conditions (`ap_meets_conditions`).
pub(crate) fn condition(request: &mut Request) -> Option<u16> {
    if !wire::status::is_success(request.response.status) || request.response.no_local_copy {
        return None;
    }
    let has_conditions = CONDITIONS.iter().any(|name| request.head.headers_in.contains(name));
    if !has_conditions && request.depends.trace.is_none() {
        return None;
    }
    let now = i64::try_from(request.time_us / SECOND_US).unwrap_or(i64::MAX);
    let modified = request.response.headers_out.get(b"Last-Modified").and_then(wire::date::parse);
    let known = Validators {
        method: request.head.method,
        etag: request.response.headers_out.get(b"ETag"),
        last_modified: modified,
        now,
    };
    let status = meets_conditions(&request.head.headers_in, &known).status();
    if request.depends.trace.is_some() {
        request.depends.validators =
            Some(OwnValidators { etag: known.etag.map(Into::into), modified });
    }
    status
}
