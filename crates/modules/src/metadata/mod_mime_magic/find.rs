//! The type checker: reads the first bytes of a file without a media type.
//!
//! Source: `magic_find_ct`, `magic_process` (modules/metadata/mod_mime_magic.c).

use std::io::{self, Read};

use bytes::Bytes;
use messages::Message;
use rt::{PoolError, Work};
use rustix::io::Errno;
use server::errorlog::{Cause, Verbatim};
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::path;
use server::request::{FileKind, Request};
use server::subrequest;

use super::MimeMagic;
use super::magic::{Magic, Outcome, Sample};
use super::unpack::{PACKED_BYTES_MAX, Packing};

/// Bytes of a file that is not in memory which are read at first.
const FIRST_BYTES: usize = super::magic::SAMPLE_BYTES;

pub(super) fn find_type<'r>(bound: Bound<'r, MimeMagic>, request: &'r mut Request) -> Step<'r> {
    let kind = request.resource.file.kind;
    if kind == FileKind::None || request.response.content_type.is_some() {
        return Step::DECLINED;
    }
    let Some(loaded) = bound.server.loaded.get() else { return Step::DECLINED };
    let magic = &loaded.magic;
    if let Some(base) = base_of_revision(&request.resource.filename) {
        let base = base.to_vec();
        return Step::Pending(Box::pin(find_by_revision(magic, request, base)));
    }
    match known_content(request) {
        Some(content) => Step::Ready(find_in(magic, request, &content)),
        None => Step::Pending(Box::pin(read_and_find(magic, request))),
    }
}

/// The name of a file without its revision, such as `@12` (`revision_suffix`).
fn base_of_revision(name: &[u8]) -> Option<&[u8]> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = name.get(..name.len() - digits)?;
    rest.strip_suffix(b"@").filter(|_| digits > 0)
}

/// A revision has the type of the file without it.
async fn find_by_revision(magic: &Magic, request: &mut Request, base: Vec<u8>) -> Verdict {
    if let Some(base) = path::canonical(&base) {
        request.trace_path(&base);
        let sub = subrequest::lookup_file(request, &base).await;
        if let Some(media_type) = sub.response.content_type {
            request.response.content_type = Some(media_type);
            if sub.response.content_encoding.is_some() {
                request.response.content_encoding = sub.response.content_encoding;
            }
            if !sub.response.content_languages.is_empty() {
                request.response.content_languages = sub.response.content_languages;
            }
            return Verdict::Declined;
        }
    }
    match known_content(request) {
        Some(content) => find_in(magic, request, &content),
        None => read_and_find(magic, request).await,
    }
}

/// The beginning of the file if it takes no wait: from memory, or empty if nothing is to be read.
fn known_content(request: &Request) -> Option<Bytes> {
    let file = &request.resource.file;
    if file.kind != FileKind::Regular || file.size == 0 {
        return Some(Bytes::new());
    }
    Some(request.engine.content(&request.resource.filename)?.1)
}

async fn read_and_find(magic: &Magic, request: &mut Request) -> Verdict {
    let name = request.resource.filename.clone();
    let pool = request.engine.handle.blocking().clone();
    let read = pool.run(Work::File, move || read_beginning(&name)).await;
    let file = Verbatim::new(&request.resource.filename);
    match read {
        Ok(Ok(content)) => find_in(magic, request, &content),
        Ok(Err(why)) => {
            let error = Errno::from_io_error(&why).unwrap_or(Errno::IO);
            let text = format_args!("mod_mime_magic: can't read `{file}'");
            request.log_error::<MimeMagic>(Level::Error, 1512, error, text);
            Verdict::Declined
        }
        Err(why) => refused(request, &why),
    }
}

fn refused(request: &Request, why: &PoolError) -> Verdict {
    let number = Message::PoolRefused.number();
    request.log::<MimeMagic>(Level::Error, number, format_args!("{why}"));
    Verdict::Status(503)
}

/// Reads more of a compressed file.
fn read_beginning(name: &[u8]) -> io::Result<Vec<u8>> {
    let (mut file, mut content) = (regular::open(path::as_path(name))?, Vec::new());
    file.by_ref().take(FIRST_BYTES as u64).read_to_end(&mut content)?;
    if Packing::of(&content).is_some() {
        let more = PACKED_BYTES_MAX - FIRST_BYTES;
        file.take(more as u64).read_to_end(&mut content)?;
    }
    Ok(content)
}

/// Sets type and coding by the beginning of the file.
fn find_in(magic: &Magic, request: &mut Request, content: &[u8]) -> Verdict {
    let Some(pieces) = identify(magic, request, content) else { return Verdict::Declined };
    let Some(outcome) = Outcome::of(&pieces) else { return Verdict::Declined };
    request.response.content_type = Some(outcome.media_type);
    if outcome.encoding.is_some() {
        request.response.content_encoding = outcome.encoding;
    }
    Verdict::Ok
}

fn identify(magic: &Magic, request: &mut Request, content: &[u8]) -> Option<Vec<Vec<u8>>> {
    let file = &request.resource.file;
    match file.kind {
        FileKind::Directory => return Some(vec![b"httpd/unix-directory".to_vec()]),
        FileKind::Regular if file.size == 0 => return Some(vec![b"text/plain".to_vec()]),
        FileKind::Regular if content.is_empty() => return None,
        FileKind::Regular => {}
        // Pipes, sockets and devices are never read.
        _ => return Some(vec![b"application/octet-stream".to_vec()]),
    }
    if let Some(packing) = Packing::of(content) {
        let packed = content.get(..PACKED_BYTES_MAX).unwrap_or(content);
        let unpacked = packing.unpack(packed);
        if unpacked.is_empty() {
            let name = Verbatim::new(&request.resource.filename);
            let text = format_args!("mod_mime_magic: read failed from uncompress of {name}");
            request.log_error::<MimeMagic>(Level::Error, 1554, Cause::End, text);
            return None;
        }
        request.response.content_encoding = Some(packing.encoding().to_vec());
        let found = search(magic, request, &Sample::of_unpacked(&unpacked));
        if found.is_some() {
            return found;
        }
    }
    search(magic, request, &Sample::of_file(content))
}

fn search(magic: &Magic, request: &Request, sample: &Sample) -> Option<Vec<Vec<u8>>> {
    let mut remarks = Vec::new();
    let found = magic.identify(sample, &mut remarks);
    for (number, text) in remarks {
        let text = format_args!("mod_mime_magic: {text}");
        request.log::<MimeMagic>(Level::Error, number, text);
    }
    found
}
