//! The fast path: responses from the cache, complete, as a head, as a range, or as a 304.

use std::io;
use std::rc::Rc;

use server::hooks::Phase;
use server::request::Request;
use wire::range::{ByteRange, Selection};
use wire::{Body, HeadFlags, Method};

use super::finish::Sent;
use super::{Active, Connection};
use crate::byterange;
use crate::cache::prepared::PreparedHead;
use crate::cache::response::{CachedResponse, Content, IN_MEMORY_BYTES, Lookup};
use crate::persistence;

/// Fields that may change the response in a way that the fast path does not consider.
const NOT_SIMPLE: HeadFlags = HeadFlags::EXPECT
    .with(HeadFlags::UPGRADE)
    .with(HeadFlags::CONTENT_LENGTH)
    .with(HeadFlags::TRANSFER_ENCODING)
    .with(HeadFlags::TARGET_HOST);

/// Whether the response may be cached or come from the cache: that to a GET or HEAD without a body.
pub(super) fn is_cacheable(active: &Active) -> bool {
    let head = &active.head;
    head.method == Method::GET
        && head.body == Body::None
        && !head.is_simple()
        && !head.flags.any(NOT_SIMPLE)
}

/// The result of looking for a response in the cache.
pub(super) enum FastPath {
    /// A response to send.
    Ready(Reply),
    /// None: the phases make it, and it may be cached.
    Miss,
    /// None that suits the request: the phases make it, and the cache stays as it is.
    Unsuitable,
}

/// A response from the cache.
pub(super) struct Reply {
    cached: Rc<CachedResponse>,
    /// The requested range of the content.
    part: Option<ByteRange>,
}

impl Reply {
    pub(super) fn content(&self) -> &Content {
        &self.cached.content
    }

    pub(super) fn part(&self) -> Option<ByteRange> {
        self.part
    }

    /// Whether its configuration declines pushes because of it.
    pub(super) fn declines_pushes(&self) -> bool {
        self.cached.plan.http2.declines_pushes
    }

    /// The lines of the response 103 that precedes it over HTTP/2.
    pub(super) fn early_hints(&self) -> Option<&[u8]> {
        let hints = self.cached.plan.http2.hints.as_deref();
        hints.filter(|_| self.cached.has_early_hints)
    }

    /// Whether the content has the heads of chunks.
    pub(super) fn is_chunked(&self) -> bool {
        self.cached.chunked
    }

    /// Its head as HTTP/2 sends it, if it is the same each time, and its content is in memory and
    /// whole.
    pub(super) fn prepared(&self) -> Option<&PreparedHead> {
        if self.part.is_some() || self.cached.chunked || self.early_hints().is_some() {
            return None;
        }
        self.cached.in_memory()?;
        self.cached.prepared()
    }

    /// The content, if it is in memory.
    pub(super) fn in_memory(&self) -> Option<&[u8]> {
        let all = self.cached.in_memory()?;
        self.part.map_or(Some(all), |part| cut(all, part))
    }

    fn status(&self) -> u16 {
        if self.part.is_some() { 206 } else { self.cached.status }
    }

    fn body_bytes(&self) -> u64 {
        self.part.map_or(self.cached.body_bytes, ByteRange::len)
    }
}

/// A response that was sent as far as the socket took it.
pub(super) struct Begun {
    reply: Reply,
    /// The rest is in `active.output`.
    sent: Sent,
}

/// Finds the response, if it is cached and fresh.
pub(super) fn find(connection: &Connection, active: &mut Active, request: &Request) -> FastPath {
    let whole = match look_up(connection, active, request, false) {
        Ok(whole) => whole,
        Err(FastPath::Miss) if request.head.flags.has(HeadFlags::CONDITIONAL) => {
            return not_modified(connection, active, request, None);
        }
        Err(found) => return found,
    };
    if whole.status == 200 {
        if request.head.flags.has(HeadFlags::CONDITIONAL) {
            match whole.condition(request) {
                Ok(None) => {}
                Ok(Some(304)) => return not_modified(connection, active, request, Some(&whole)),
                Ok(Some(_)) | Err(_) => return FastPath::Unsuitable,
            }
        }
        if request.head.flags.has(HeadFlags::RANGE) {
            return part(active, request, whole);
        }
    }
    FastPath::Ready(Reply { cached: whole, part: None })
}

fn look_up(
    connection: &Connection,
    active: &Active,
    request: &Request,
    not_modified: bool,
) -> Result<Rc<CachedResponse>, FastPath> {
    let (engine, path) = (&connection.engine, active.head.path());
    match engine.responses.get(request, path, not_modified) {
        Lookup::Hit(cached) => Ok(cached),
        Lookup::Unsuitable => Err(FastPath::Unsuitable),
        Lookup::Miss => Err(FastPath::Miss),
    }
}

/// Finds the 304, if the request's conditions result in one, as they do with the validators of
/// `whole`.
fn not_modified(
    connection: &Connection,
    active: &Active,
    request: &Request,
    whole: Option<&CachedResponse>,
) -> FastPath {
    match look_up(connection, active, request, true) {
        Ok(cached) if whole.is_some_and(|whole| whole.has_validators_of(&cached)) => {
            FastPath::Ready(Reply { cached, part: None })
        }
        Ok(cached) => match cached.condition(request) {
            Ok(Some(304)) => FastPath::Ready(Reply { cached, part: None }),
            Ok(None) => FastPath::Miss,
            Ok(Some(_)) | Err(_) => FastPath::Unsuitable,
        },
        Err(found) => found,
    }
}

/// One range of the response, or all of it if the `Range` field is ignored.
fn part(active: &mut Active, request: &Request, cached: Rc<CachedResponse>) -> FastPath {
    if !cached.has_ranges() {
        return FastPath::Unsuitable;
    }
    let (core, length) = (&cached.plan.core, cached.body_bytes);
    let sent = cached.sent_validators(request);
    let selection = byterange::select(request, &sent, core, length, &mut active.ranges);
    let is_within = |part| cached.in_memory().is_none_or(|all| cut(all, part).is_some());
    let part = match (selection, active.ranges.as_slice()) {
        (Selection::Whole, _) => None,
        (Selection::Parts, [only]) if is_within(*only) => Some(*only),
        (Selection::Parts, [_]) => return FastPath::Unsuitable,
        (Selection::Parts | Selection::Unsatisfiable, _) => return FastPath::Unsuitable,
    };
    FastPath::Ready(Reply { cached, part })
}

fn cut(bytes: &[u8], part: ByteRange) -> Option<&[u8]> {
    let first = usize::try_from(part.first).ok()?;
    bytes.get(first..first.checked_add(usize::try_from(part.len()).ok()?)?)
}

/// Sends the response, assembled in the loop's own buffer. `None` if there is no socket.
pub(super) fn send(
    connection: &mut Connection,
    active: &mut Active,
    request: &Request,
    reply: Reply,
) -> Option<Begun> {
    let engine = &connection.engine;
    let stream = connection.stream.as_mut()?;
    let began = stream.sent();
    let keep = persistence::may_keep_alive(request, connection.responses, engine.draining.get());
    let mut output = engine.output.borrow_mut();
    output.clear();
    write_head(request, &reply, connection.responses, keep, &mut output);
    let is_short = |body: &&[u8]| body.len() as u64 <= IN_MEMORY_BYTES;
    let body = reply.in_memory().filter(is_short).unwrap_or_default();
    // A thread with one connection finds its buffer cold: a copy costs more than a second slice.
    let apart = engine.handle.works_in_place() && connection.info.tls.is_none();
    let has_more = body.is_empty() && reply.body_bytes() > 0;
    let outcome = if has_more {
        Ok(0)
    } else if apart && !body.is_empty() {
        stream.try_write_vectored(&[io::IoSlice::new(&output), io::IoSlice::new(body)])
    } else {
        output.extend_from_slice(body);
        stream.try_write(&output)
    };
    active.output.clear();
    let outcome = match outcome {
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error),
    };
    let outcome = outcome.map(|count| {
        active.output.extend_from_slice(output.get(count..).unwrap_or_default());
        if apart {
            let sent = count.saturating_sub(output.len());
            active.output.extend_from_slice(body.get(sent..).unwrap_or_default());
        }
    });
    drop(output);
    Some(Begun { reply, sent: Sent { began, says_keep: keep, outcome } })
}

/// Writes the head of the response.
pub(super) fn write_head(
    request: &Request,
    reply: &Reply,
    responses: u32,
    keep: bool,
    out: &mut Vec<u8>,
) {
    let cached = &reply.cached;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(wire::status::line(reply.status()).as_bytes());
    out.extend_from_slice(b"\r\nDate: ");
    out.extend_from_slice(&request.engine.date());
    let length = reply.part.map(ByteRange::len);
    let server = out.len();
    cached.write_before(request.time_us, length, out);
    if let Some(range) = reply.part {
        out.extend_from_slice(b"Content-Range: ");
        wire::range::write_content_range(out, range, cached.body_bytes);
        out.extend_from_slice(b"\r\n");
    }
    let by = (reply.status(), cached.made_by);
    persistence::write_connection(request, by, responses, keep, server, out);
    out.extend_from_slice(cached.after());
}

/// Sends the rest and logs the request. Returns whether the connection stays open.
pub(super) async fn finish(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    begun: Begun,
) -> io::Result<bool> {
    let Begun { reply, mut sent } = begun;
    if sent.outcome.is_ok() {
        sent.outcome = send_rest(connection, active, request, &reply).await;
    }
    let has_log = note(request, &reply);
    connection.finish(request, &sent, has_log).await;
    sent.outcome.map(|()| sent.says_keep)
}

/// Notes in the request what was sent for it; returns whether that is logged.
#[inline]
pub(super) fn note(request: &mut Request, reply: &Reply) -> bool {
    let has_log = !reply.cached.plan.phase(Phase::LogTransaction).is_empty();
    if has_log {
        if request.traffic.first_byte_us == 0 {
            request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
        }
        match reply.cached.is_logged_by_head() {
            true => reply.cached.give_place_to(request),
            false => give(request, reply),
        }
    }
    request.response.status = reply.status();
    request.response.bytes_sent = reply.body_bytes();
    has_log
}

async fn send_rest(
    connection: &mut Connection,
    active: &mut Active,
    request: &Request,
    reply: &Reply,
) -> io::Result<()> {
    let is_secure = connection.info.tls.is_some();
    let Some(stream) = connection.stream.as_mut() else { return Ok(()) };
    if active.output.is_empty() && !is_secure {
        return Ok(());
    }
    let timeout = request.host.core.timeout();
    if let Content::File(slice) = &reply.cached.content {
        let first = reply.part.map_or(0, |part| part.first);
        let (offset, length) =
            (slice.offset + first, reply.part.map_or(slice.length, ByteRange::len));
        return stream.send_file(&active.output, &slice.file, offset, length, timeout).await;
    }
    match reply.in_memory().unwrap_or_default() {
        _ if active.output.is_empty() => stream.flush(timeout).await,
        body if body.len() as u64 > IN_MEMORY_BYTES => {
            let mut parts = [io::IoSlice::new(&active.output), io::IoSlice::new(body)];
            stream.write_vectored(&mut parts, timeout).await
        }
        _ => stream.write_all(&active.output, timeout).await,
    }
}

/// Fills in the response's properties, for the log.
fn give(request: &mut Request, reply: &Reply) {
    reply.cached.give_to(request);
    if let Some(range) = reply.part {
        let mut value = Vec::new();
        wire::range::write_content_range(&mut value, range, reply.cached.body_bytes);
        request.response.headers_out.set(b"Content-Range", &value);
        let mut digits = itoa::Buffer::new();
        request.response.headers_out.set(b"Content-Length", digits.format(range.len()).as_bytes());
    }
}
