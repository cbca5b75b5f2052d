//! Sends a response on a stream.
//!
//! Heads are written as in HTTP/1 first, and then encoded: what a head contains is decided in one
//! place for both.

use std::io;

use rt::file::{self, Probe};
use server::body::{Body, Chunk, FileSlice};
use server::request::Request;
use wire::h2::Code;

use super::push;
use super::stream::{HELD_BYTES, Stream};
use crate::cache::prepared::PreparedHead;
use crate::cache::response::Content;
use crate::connection::fast::{self, Reply};
use crate::head_text;
use crate::respond::{Framing, Length, write_head};
use crate::service::OUTPUT_BYTES;

/// Longest head of a body that is a whole response (`nph-`).
const RAW_HEAD_BYTES: usize = 64 * 1024;

/// A page of the page cache.
const PAGE_BYTES: u64 = 4096;

/// The capacity of the buffer for heads that is kept, in bytes.
const HEAD_KEPT_BYTES: usize = 16 * 1024;

fn broken() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// Sends a head in the text of HTTP/1, after what the client is promised because of it, unless the
/// configuration of its directory declines that. `ends`: nothing follows.
fn head(stream: &Stream, text: Vec<u8>, declines_pushes: bool, ends: bool) -> io::Result<()> {
    let (status, fields) = head_text::parse(&text).ok_or(io::ErrorKind::InvalidData)?;
    if stream.is_reset.get() || stream.shared.is_broken.get() {
        return Err(broken());
    }
    if wire::status::is_info(status) {
        // As in Apache: no client would take the response for the last one.
        stream.send(|protocol| protocol.reset(stream.id, Code::INTERNAL_ERROR));
        return Err(broken());
    }
    push::place(stream, fields.clone());
    send_head(stream, status, fields, declines_pushes, ends);
    if text.capacity() <= HEAD_KEPT_BYTES {
        stream.shared.service.head_text.replace(text);
    }
    Ok(())
}

/// An empty buffer for a head, which [`head`] returns.
fn empty_text(stream: &Stream) -> Vec<u8> {
    let mut text = stream.shared.service.head_text.take();
    text.clear();
    text
}

fn send_head<'f>(
    stream: &Stream,
    status: u16,
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
    declines_pushes: bool,
    ends: bool,
) {
    let policy = match declines_pushes {
        true => None,
        false => push::promise(stream, status, fields.clone()),
    };
    let policy = policy.map(|policy| (&b"push-policy"[..], policy));
    // Pushes need no 103 that is sent (`stream_do_response`).
    if status != 103 || super::has_early_hints(&stream.shared.host) {
        let fields = fields.chain(policy);
        stream.send(|protocol| protocol.respond(stream.id, status, fields, ends));
    }
}

/// Sends interim responses, each in the text of HTTP/1.
pub(super) fn interim(stream: &Stream, declines_pushes: bool, text: &[u8]) {
    for one in head_text::split(text) {
        if let Some((status, fields)) = head_text::parse(one).filter(|(status, _)| *status != 101) {
            send_head(stream, status, fields, declines_pushes, false);
        }
    }
}

/// Sends a response from the cache.
pub(super) async fn cached(
    stream: &Stream,
    request: &mut Request,
    reply: &Reply,
) -> io::Result<()> {
    if let Some(prepared) = reply.prepared().filter(|head| is_alone(stream, request, head)) {
        let body = reply.in_memory().unwrap_or_default();
        send_prepared(stream, request, prepared, body.is_empty())?;
        return if body.is_empty() { Ok(()) } else { send_bytes(stream, body, true).await };
    }
    let mut text = empty_text(stream);
    fast::write_head(request, reply, 0, false, &mut text);
    let is_accepted = request.connection.pushing.get().is_accepted;
    let declines_pushes = !is_accepted || reply.declines_pushes();
    let has_links = || head_text::parse(&text).is_some_and(|(_, all)| head_text::has_links(all));
    if !declines_pushes && (reply.early_hints().is_some() || has_links()) {
        push::keep_origin(stream, request);
    }
    if let Some(lines) = reply.early_hints() {
        let text = [b"HTTP/1.1 103 Early Hints\r\n", lines, b"\r\n"].concat();
        interim(stream, declines_pushes, &text);
    }
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    if let Content::File(slice) = reply.content() {
        let first = reply.part().map_or(0, |part| part.first);
        let length = reply.part().map_or(slice.length, wire::range::ByteRange::len);
        let file = slice.file.clone();
        head(stream, text, declines_pushes, length == 0)?;
        let slice = FileSlice { file, offset: slice.offset + first, length };
        return send_file(stream, slice, true).await;
    }
    let body = reply.in_memory().unwrap_or_default();
    let body = if reply.is_chunked() { unchunked(body) } else { body };
    head(stream, text, declines_pushes, body.is_empty())?;
    if body.is_empty() { Ok(()) } else { send_bytes(stream, body, true).await }
}

/// Whether a head neither causes pushes nor is one of a pushed response.
fn is_alone(stream: &Stream, request: &Request, head: &PreparedHead) -> bool {
    let causes_pushes = head.has_links && request.connection.pushing.get().is_accepted;
    !causes_pushes && stream.pushed.is_none() && stream.origin.get().is_none()
}

/// Sends a head that is prepared.
fn send_prepared(
    stream: &Stream,
    request: &mut Request,
    head: &PreparedHead,
    ends: bool,
) -> io::Result<()> {
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    if stream.is_reset.get() || stream.shared.is_broken.get() {
        return Err(broken());
    }
    let date = request.engine.date();
    stream.send(|protocol| {
        let first = (&b"date"[..], &date[..]);
        protocol.respond_prepared(stream.id, head.status, first, &head.fields, ends);
    });
    Ok(())
}

/// The data of a body that is one chunk, or none.
fn unchunked(body: &[u8]) -> &[u8] {
    let Some(line) = body.iter().position(|byte| *byte == b'\n') else { return &[] };
    let (size, rest) = body.split_at(line + 1);
    let size = std::str::from_utf8(size.trim_ascii()).ok();
    let size = size.and_then(|size| usize::from_str_radix(size, 16).ok()).unwrap_or(0);
    rest.get(..size).unwrap_or_default()
}

/// Sends a response that the phases have made.
pub(super) async fn made(
    stream: &Stream,
    request: &mut Request,
    framing: Framing,
) -> io::Result<()> {
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    let outcome = send(stream, request, framing).await;
    if let Err(error) = &outcome
        && error.kind() != io::ErrorKind::ConnectionReset
    {
        // The client learns that the response is not complete.
        stream.send(|protocol| protocol.reset(stream.id, Code::INTERNAL_ERROR));
    }
    outcome
}

async fn send(stream: &Stream, request: &mut Request, framing: Framing) -> io::Result<()> {
    if request.response.status == 0 {
        // A number that HTTP/1 sends as 500 ends the stream without a response.
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = std::mem::take(&mut request.response.body);
    let mut text = empty_text(stream);
    if request.response.is_raw {
        body = split_raw(body, &mut text).await?;
    } else {
        write_head(request, framing, &mut text);
    }
    let declines_pushes = request.plan.http2.declines_pushes;
    interim(stream, declines_pushes, &request.connection.interim.take());
    let has_body = !request.head.header_only && framing.length != Length::None;
    let known = body.length();
    let has_trailers =
        !request.response.trailers_out.is_empty() || request.response.late_trailers.is_some();
    if !has_body || known == Some(0) && !has_trailers {
        return head(stream, text, declines_pushes, true);
    }
    head(stream, text, declines_pushes, false)?;
    // A stream may break off: its bytes are counted as they come.
    let is_counted = known.is_none() || matches!(body, Body::Stream(_));
    request.response.bytes_sent = known.filter(|_| !is_counted).unwrap_or(0);
    // Only the last piece of a body that is whole is known to be the last one.
    let is_whole = matches!(body, Body::Bytes(_) | Body::File(_)) && !has_trailers;
    let mut sent = 0;
    loop {
        // The end needs no room, and neither does finding it.
        if !is_whole && known != Some(sent) && stream.shared.held.get() >= HELD_BYTES {
            stream.room().await?;
        }
        let Some(chunk) = std::future::poll_fn(|cx| body.poll_chunk(cx)).await else { break };
        match chunk? {
            Chunk::Bytes(bytes) => {
                sent += bytes.len() as u64;
                let _held = (!is_whole).then(|| Held::new(stream, bytes.len()));
                request.response.bytes_sent += if is_counted { bytes.len() as u64 } else { 0 };
                send_bytes(stream, &bytes, is_whole).await?;
            }
            Chunk::File(slice) => {
                sent += slice.length;
                request.response.bytes_sent += if is_counted { slice.length } else { 0 };
                send_file(stream, slice, is_whole).await?;
            }
            Chunk::Flush => {}
        }
    }
    if !is_whole {
        finish(stream, request);
    }
    Ok(())
}

/// Bytes of a body that were made before there was room for them.
struct Held<'s>(&'s Stream, usize);

impl Held<'_> {
    fn new(stream: &Stream, bytes: usize) -> Held<'_> {
        let held = &stream.shared.held;
        held.set(held.get() + bytes);
        Held(stream, bytes)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let held = &self.0.shared.held;
        held.set(held.get() - self.1);
    }
}

/// Ends a response, with its trailer fields if there are any.
fn finish(stream: &Stream, request: &mut Request) {
    request.response.take_late_trailers();
    let trailers = &request.response.trailers_out;
    if trailers.is_empty() {
        stream.add(b"", 0, true);
    } else {
        stream.send(|protocol| protocol.respond_trailers(stream.id, trailers.iter()));
    }
}

/// Moves the head of a body that is a whole response into `text`; returns the rest.
async fn split_raw(body: Body, text: &mut Vec<u8>) -> io::Result<Body> {
    let (start, rest) = body.gathered(RAW_HEAD_BYTES).await.split_head();
    let ends = [&b"\r\n\r\n"[..], b"\n\n"];
    let end = ends.iter().filter_map(|end| {
        start.windows(end.len()).position(|window| window == *end).map(|at| at + end.len())
    });
    let end = end.min().ok_or(io::ErrorKind::InvalidData)?;
    text.extend_from_slice(start.get(..end).unwrap_or_default());
    Ok(Body::Parts([Body::Bytes(start.slice(end..)), rest].into()))
}

/// Sends bytes as the client takes them.
async fn send_bytes(stream: &Stream, bytes: &[u8], ends: bool) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let room = stream.room().await?;
        let sent = stream.add(rest, room, ends);
        rest = rest.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Sends a part of a file: read into the loop's own buffer once there is room for it. What is not
/// in memory is read by the pool.
async fn send_file(stream: &Stream, mut slice: FileSlice, ends: bool) -> io::Result<()> {
    let service = &stream.shared.service;
    while slice.length > 0 {
        let room = stream.room().await?;
        let wanted = usize::try_from(slice.length).unwrap_or(room).min(room);
        let probe = {
            let mut buffer = service.output.borrow_mut();
            // At the same place in a page as in the file: this is what the kernel copies fastest.
            let lead = (slice.offset % PAGE_BYTES) as usize;
            buffer.resize(lead + wanted.min(OUTPUT_BYTES), 0);
            let room_in_page = buffer.get_mut(lead..).unwrap_or_default();
            let probe = file::read_resident(&*slice.file, room_in_page, slice.offset)?;
            if let Probe::Read(count @ 1..) = probe {
                let is_last = ends && count as u64 == slice.length;
                stream.add(room_in_page.get(..count).unwrap_or_default(), room, is_last);
            }
            probe
        };
        match probe {
            Probe::Read(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Probe::Cold => {
                let pool = service.handle.blocking().clone();
                file::warm(&pool, &*slice.file, slice.offset, OUTPUT_BYTES).await?;
            }
            Probe::Read(count) => {
                slice.offset += count as u64;
                slice.length -= count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_chunk_is_unwrapped() {
        assert_eq!(unchunked(b"3\r\nabc\r\n0\r\n\r\n"), b"abc");
        assert_eq!(unchunked(b"0\r\n\r\n"), b"");
        assert_eq!(unchunked(b""), b"");
    }
}
