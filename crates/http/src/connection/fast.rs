//! Responses made from what is kept for a path: the whole of it, its head, a part of it, or that it
//! was not modified.

use std::io;
use std::rc::Rc;

use wire::range::{ByteRange, Selection};
use wire::{Body, HeadFlags, Method};

use super::{Active, Connection};
use crate::cache::resource::{Content, IN_MEMORY_BYTES, Lookup, Resource};
use crate::respond;
use server::connection_info::KeepAlive;
use server::core::byterange;
use server::hooks::Phase;
use server::process;
use server::request::Request;

/// Fields that may change the response in a way that is not looked at here.
const NOT_SIMPLE: HeadFlags = HeadFlags::EXPECT
    .with(HeadFlags::UPGRADE)
    .with(HeadFlags::CONTENT_LENGTH)
    .with(HeadFlags::TRANSFER_ENCODING)
    .with(HeadFlags::TARGET_HOST);

/// Whether a request's response may be kept or come from what is kept: that to a GET or HEAD
/// without a body.
pub(super) fn may(active: &Active) -> bool {
    let head = &active.head;
    head.method == Method::GET
        && head.body == Body::None
        && !head.is_simple()
        && !head.flags.any(NOT_SIMPLE)
}

/// What is known of the response to a request.
pub(super) enum Found {
    /// All of it.
    Ready(Reply),
    /// Nothing, and it may be kept when the phases have made it.
    New,
    /// Nothing that helps. What is kept stays.
    Unfit,
}

/// What is sent.
pub(super) struct Reply {
    resource: Rc<Resource>,
    /// The part of the content that was asked for.
    part: Option<(ByteRange, Content)>,
}

impl Reply {
    fn content(&self) -> &Content {
        self.part.as_ref().map_or(&self.resource.content, |(_, content)| content)
    }

    fn status(&self) -> u16 {
        if self.part.is_some() { 206 } else { self.resource.status }
    }

    fn body_bytes(&self) -> u64 {
        self.part.as_ref().map_or(self.resource.body_bytes, |(range, _)| range.len())
    }
}

/// A response that has left, or what is left of it.
pub(super) struct Sent {
    reply: Reply,
    keep: bool,
    before: u64,
    /// Bytes that the socket did not take at once are in `active.output`.
    outcome: io::Result<()>,
}

/// The response, if it is known and still true.
pub(super) fn find(connection: &Connection, active: &mut Active, request: &Request) -> Found {
    let whole = match look_up(connection, active, request, false) {
        Ok(whole) => whole,
        Err(Found::New) if request.head.flags.has(HeadFlags::CONDITIONAL) => {
            return not_modified(connection, active, request);
        }
        Err(found) => return found,
    };
    if whole.status == 200 {
        if request.head.flags.has(HeadFlags::CONDITIONAL) {
            match whole.condition(request) {
                Ok(None) => {}
                Ok(Some(304)) => return not_modified(connection, active, request),
                Ok(Some(_)) | Err(_) => return Found::Unfit,
            }
        }
        if request.head.flags.has(HeadFlags::RANGE) {
            return part(active, request, whole);
        }
    }
    Found::Ready(Reply { resource: whole, part: None })
}

fn look_up(
    connection: &Connection,
    active: &Active,
    request: &Request,
    not_modified: bool,
) -> Result<Rc<Resource>, Found> {
    let (engine, path) = (&connection.engine, active.head.path());
    match engine.resources.get(request, path, not_modified) {
        Lookup::Kept(resource) if resource.is_fresh(&engine.files, engine.handle.witness()) => {
            Ok(resource)
        }
        Lookup::Kept(_) => {
            engine.resources.forget(request.host.id, path);
            Err(Found::New)
        }
        Lookup::Unfit => Err(Found::Unfit),
        Lookup::Nothing => Err(Found::New),
    }
}

/// The 304, if it is known and the request's conditions come to it.
fn not_modified(connection: &Connection, active: &Active, request: &Request) -> Found {
    match look_up(connection, active, request, true) {
        Ok(resource) => match resource.condition(request) {
            Ok(Some(304)) => Found::Ready(Reply { resource, part: None }),
            Ok(None) => Found::New,
            Ok(Some(_)) | Err(_) => Found::Unfit,
        },
        Err(found) => found,
    }
}

/// One range of the whole, or all of it where the `Range` field does not count.
fn part(active: &mut Active, request: &Request, resource: Rc<Resource>) -> Found {
    if !resource.has_ranges() {
        return Found::Unfit;
    }
    let (core, length) = (&resource.plan.core, resource.body_bytes);
    let selection = byterange::select(request, &resource.sent, core, length, &mut active.ranges);
    let part = match (selection, active.ranges.as_slice()) {
        (Selection::Whole, _) => None,
        (Selection::Parts, [only]) => match resource.content.part(*only) {
            Some(content) => Some((*only, content)),
            None => return Found::Unfit,
        },
        (Selection::Parts | Selection::Unsatisfiable, _) => return Found::Unfit,
    };
    Found::Ready(Reply { resource, part })
}

/// Sends the response, which is put together in the loop's own buffer. `None` where there is no
/// socket.
pub(super) fn send(
    connection: &mut Connection,
    active: &mut Active,
    request: &Request,
    reply: Reply,
) -> Option<Sent> {
    let engine = &connection.engine;
    let stream = connection.stream.as_mut()?;
    let before = stream.sent();
    let keep = respond::may_keep_alive(request, connection.answered, engine.draining.get());
    let mut output = engine.output.borrow_mut();
    output.clear();
    write_head(request, &reply, connection.answered, keep, &mut output);
    let body = match reply.content() {
        Content::Memory(bytes) if bytes.len() as u64 <= IN_MEMORY_BYTES => &**bytes,
        Content::Memory(_) | Content::File(_) => &[],
    };
    // A thread with one connection finds its buffer cold: a copy costs it more than a second part.
    let apart = engine.handle.works_in_place() && connection.client.tls.is_none();
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
    Some(Sent { reply, keep, before, outcome })
}

/// The head of the response.
fn write_head(request: &Request, reply: &Reply, answered: u32, keep: bool, out: &mut Vec<u8>) {
    let resource = &reply.resource;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(wire::status::line(reply.status()).as_bytes());
    out.extend_from_slice(b"\r\nDate: ");
    out.extend_from_slice(&request.engine.date());
    let length = reply.part.as_ref().map(|(range, _)| range.len());
    resource.write_before(request.time_us, length, out);
    if let Some((range, _)) = &reply.part {
        out.extend_from_slice(b"Content-Range: ");
        wire::range::write_content_range(out, *range, resource.body_bytes);
        out.extend_from_slice(b"\r\n");
    }
    respond::write_connection(request, answered, keep, out);
    out.extend_from_slice(&resource.after);
}

/// Sends what is left of it, and logs it; whether the connection stays open.
pub(super) async fn finish(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    sent: Sent,
) -> io::Result<bool> {
    let Sent { reply, keep, before, mut outcome } = sent;
    let Some(stream) = connection.stream.as_mut() else { return Ok(false) };
    let is_secure = connection.client.tls.is_some();
    if outcome.is_ok() && (is_secure || !active.output.is_empty()) {
        let timeout = request.host.core.timeout();
        outcome = match reply.content() {
            Content::Memory(_) if active.output.is_empty() => stream.flush(timeout).await,
            Content::Memory(bytes) if bytes.len() as u64 > IN_MEMORY_BYTES => {
                let mut parts = [io::IoSlice::new(&active.output), io::IoSlice::new(bytes)];
                stream.write_vectored(&mut parts, timeout).await
            }
            Content::Memory(_) => stream.write_all(&active.output, timeout).await,
            Content::File(slice) => {
                let (offset, length) = (slice.offset, slice.length);
                stream.send_file(&active.output, &slice.file, offset, length, timeout).await
            }
        };
    }
    connection.answered += 1;
    if keep {
        connection.client.keepalives.set(connection.answered);
    }
    connection.client.bytes_out.set(stream.sent() - before);
    connection.engine.count(request, reply.status(), reply.body_bytes());
    let state = if keep { KeepAlive::Open } else { KeepAlive::Close };
    connection.client.keepalive.set(state);
    if !reply.resource.plan.phase(Phase::LogTransaction).is_empty() {
        connection.client.aborted.set(outcome.is_err());
        connection.client.first_byte_us.set(connection.engine.handle.clock().wall_us());
        log(request, &reply).await;
    }
    outcome.map(|()| keep)
}

async fn log(request: &mut Request, reply: &Reply) {
    reply.resource.give_to(request);
    request.response.status = reply.status();
    request.response.bytes_sent = reply.body_bytes();
    if let Some((range, _)) = &reply.part {
        let mut value = Vec::new();
        wire::range::write_content_range(&mut value, *range, reply.resource.body_bytes);
        request.response.headers_out.set(b"Content-Range", &value);
        let mut digits = itoa::Buffer::new();
        request.response.headers_out.set(b"Content-Length", digits.format(range.len()).as_bytes());
    }
    process::run_all(request, Phase::LogTransaction).await;
}
