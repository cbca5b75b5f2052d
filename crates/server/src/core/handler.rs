//! The handler that answers where no other does: files.
//!
//! Source: `default_handler` (server/core.c).

use std::fs::File;
use std::rc::Rc;

use base64::Engine as _;
use wire::MethodSet;
use wire::conditional::{Validators, meets_conditions};
use wire::method::Method;

use crate::body::{Body, FileSlice};
use crate::core::Core;
use crate::core::byterange::RangeFilter;
use crate::core::dir_config::RangeLimit;
use crate::core::etag::{self, EtagParts, VariantsTag};
use crate::errors;
use crate::filter::Stage;
use crate::hooks::{Answer, Bound, Verdict};
use crate::inlet::BodyError;
use crate::log::Level;
use crate::path;
use crate::request::{FileKind, PathInfoUse, Request};

/// Microseconds in a second.
const SECOND_US: u64 = 1_000_000;

/// Answers with the file.
pub(super) fn default_handler<'r>(core: Bound<'r, Core>, request: &'r mut Request) -> Answer<'r> {
    let standard = [Method::GET, Method::OPTIONS, Method::POST];
    request.allowed = request.allowed.union(standard.into_iter().collect::<MethodSet>());
    if request.body_in.is_empty() {
        return Answer::Now(serve(core, request));
    }
    Answer::Wait(Box::pin(async move {
        match discard_body(request).await {
            Ok(()) => serve(core, request),
            Err(status) => Verdict::Status(status),
        }
    }))
}

/// Reads and forgets the request's body (`ap_discard_request_body`).
pub(crate) async fn discard_body(request: &mut Request) -> Result<(), u16> {
    while let Some(piece) = request.body_in.next().await {
        match piece {
            Ok(_) => {}
            Err(BodyError::Status(status)) => {
                request.keep(errors::BodyFailed);
                return Err(status);
            }
            Err(BodyError::Io(_)) => return Err(400),
        }
    }
    Ok(())
}

fn serve(core: Bound<'_, Core>, request: &mut Request) -> Verdict {
    match request.method {
        Method::GET | Method::POST => serve_file(core, request),
        Method::OPTIONS => {
            let allow = super::methods::allow(request);
            request.headers_out.set(b"Allow", &allow);
            request.body = Body::Empty;
            Verdict::Ok
        }
        Method::INVALID => {
            let line = request.request_line.clone();
            let line = String::from_utf8_lossy(&line);
            request.log_core(Level::Error, 135, &format!("Invalid method in request {line}"), None);
            Verdict::Status(501)
        }
        _ => Verdict::Status(405),
    }
}

fn serve_file(core: Bound<'_, Core>, request: &mut Request) -> Verdict {
    match request.file.kind {
        FileKind::None => return missing(request, 128, "File does not exist"),
        FileKind::Directory => {
            let file = request.filename.clone();
            request.log_core(Level::Info, 129, "Attempt to serve directory", Some(&file));
            return Verdict::Status(404);
        }
        FileKind::Regular | FileKind::Other => {}
    }
    if request.used_path_info != PathInfoUse::Accept && !request.path_info.is_empty() {
        return missing(request, 130, "File does not exist");
    }
    let file = match open(request) {
        Ok(file) => file,
        Err(verdict) => return verdict,
    };
    let length = request.file.size;
    describe(core, request, &file);
    if core.dir.content_digest.or(false)
        && let Some(digest) = content_md5(&file, length)
    {
        request.headers_out.set(b"Content-MD5", digest.as_bytes());
    }
    if let Some(status) = condition(request) {
        request.status = status;
        request.body = Body::Empty;
        if status == 412 {
            request.headers_out.set(b"Content-Length", b"0");
        }
        return Verdict::Ok;
    }
    if request.headers_in.contains(b"Range") {
        request.add_filter("BYTERANGE", Stage::PROTOCOL, Box::new(RangeFilter));
    }
    request.body = Body::File(FileSlice { file: Rc::new(file), offset: 0, length });
    Verdict::Ok
}

fn missing(request: &mut Request, number: u32, why: &str) -> Verdict {
    let file = [request.filename.as_slice(), &request.path_info].concat();
    request.log_core(Level::Info, number, why, Some(&file));
    Verdict::Status(404)
}

/// Opens the file and looks at what was opened, so that length and time are those of what is sent.
fn open(request: &mut Request) -> Result<File, Verdict> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = path::as_path(&request.filename);
    // A FIFO without a writer would block the loop.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => {
            if let Ok(stat) = rustix::fs::fstat(&file) {
                request.file = path::info(&stat);
            }
            Ok(file)
        }
        Err(error) => {
            let name = String::from_utf8_lossy(&request.filename).into_owned();
            let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
            let why = "file permissions deny server access";
            request.log_error::<Core>(
                Level::Error,
                132,
                errno.unwrap_or(rustix::io::Errno::IO),
                format_args!("{why}: {name}"),
            );
            Err(Verdict::Status(403))
        }
    }
}

/// Last-Modified, ETag, Accept-Ranges and Content-Length, in Apache's order.
fn describe(core: Bound<'_, Core>, request: &mut Request, file: &File) {
    let info = request.file;
    request.mtime_us = Some(info.mtime_us);
    let mtime = (info.mtime_us / SECOND_US).min(request.time_us / SECOND_US);
    let date = wire::date::format(i64::try_from(mtime).unwrap_or(i64::MAX));
    request.headers_out.set(b"Last-Modified", &date);
    let parts = core.dir.file_etag.parts();
    let tag = if parts.has(EtagParts::DIGEST) {
        content_sha1(file, info.size).map(|digest| wire::etag::from_digest(digest.as_bytes()))
    } else {
        Some(etag::of_file(&info, parts, request.time_us)).filter(|tag| !tag.is_empty())
    };
    if let Some(tag) = tag {
        // A weak tag becomes a strong one with time alone: an answer with it is not to be reused.
        request.pure &= !tag.starts_with(b"W/");
        let tag = match request.kept::<VariantsTag>() {
            Some(list) => etag::with_variants(&tag, list),
            None => tag,
        };
        request.headers_out.set(b"ETag", &tag);
    }
    let ranges: &[u8] = match core.dir.max_ranges.get() {
        Some(RangeLimit::Most(0)) => b"none",
        _ => b"bytes",
    };
    request.headers_out.set(b"Accept-Ranges", ranges);
    let mut digits = itoa::Buffer::new();
    request.headers_out.set(b"Content-Length", digits.format(info.size).as_bytes());
}

/// The status that the request's conditions come to (`ap_meets_conditions`).
fn condition(request: &Request) -> Option<u16> {
    if !wire::status::is_success(request.status) || request.no_local_copy {
        return None;
    }
    let now = i64::try_from(request.time_us / SECOND_US).unwrap_or(i64::MAX);
    let modified = request.headers_out.get(b"Last-Modified").and_then(wire::date::parse);
    let known = Validators {
        method: request.method,
        etag: request.headers_out.get(b"ETag"),
        last_modified: modified,
        now,
    };
    meets_conditions(&request.headers_in, &known).status()
}

/// How much of a file is read at a time for a digest, bytes.
const DIGEST_STEP_BYTES: usize = 64 * 1024;

fn each_piece(file: &File, length: u64, mut take: impl FnMut(&[u8])) -> Option<()> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0; DIGEST_STEP_BYTES];
    let mut at = 0;
    while at < length {
        let count = file.read_at(&mut buffer, at).ok().filter(|count| *count > 0)?;
        take(buffer.get(..count)?);
        at += count as u64;
    }
    Some(())
}

fn content_md5(file: &File, length: u64) -> Option<String> {
    use md5::Digest;
    let mut digest = md5::Md5::new();
    each_piece(file, length, |piece| digest.update(piece))?;
    Some(base64::engine::general_purpose::STANDARD.encode(digest.finalize()))
}

fn content_sha1(file: &File, length: u64) -> Option<String> {
    use sha1::Digest;
    let mut digest = sha1::Sha1::new();
    each_piece(file, length, |piece| digest.update(piece))?;
    Some(base64::engine::general_purpose::STANDARD.encode(digest.finalize()))
}
