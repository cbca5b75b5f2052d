//! The short way: an answer that is known already.

use std::io;
use std::rc::Rc;

use wire::{Body, HeadFlags, Method};

use super::{Active, Connection, send};
use crate::body::{Body as Answer, FileSlice};
use crate::client::KeepAlive;
use crate::freshness::Trace;
use crate::hooks::Phase;
use crate::process;
use crate::request::Request;
use crate::resource::{Armed, Content, IN_MEMORY_BYTES, Resource};
use crate::respond;

/// Fields that may change the answer of a file.
const NOT_SIMPLE: HeadFlags = HeadFlags::CONDITIONAL
    .with(HeadFlags::RANGE)
    .with(HeadFlags::EXPECT)
    .with(HeadFlags::UPGRADE)
    .with(HeadFlags::CONTENT_LENGTH)
    .with(HeadFlags::TRANSFER_ENCODING)
    .with(HeadFlags::TARGET_HOST);

/// Whether a head may be answered the short way at all: a GET without a body, a condition, a range
/// or a query.
pub(super) fn may(active: &Active) -> bool {
    let head = &active.head;
    head.method == Method::GET
        && !head.header_only
        && head.body == Body::None
        && !head.is_simple()
        && head.query().is_none()
        && !head.flags.any(NOT_SIMPLE)
}

/// An answer that has left, or what is left of it.
pub(super) struct Sent {
    resource: Rc<Resource>,
    keep: bool,
    before: u64,
    /// Bytes that the socket did not take at once are in `active.output`.
    outcome: io::Result<()>,
}

/// Sends the answer, if it is known and still true. It is put together in the loop's own buffer.
pub(super) fn answer(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
) -> Option<Sent> {
    let engine = &connection.engine;
    let watcher = engine.handle.watcher().map(|watcher| &**watcher);
    let resource = engine.resources.get(request.host.id, active.head.target())?;
    if !resource.is_fresh(watcher) {
        engine.resources.forget(request.host.id, active.head.target());
        return None;
    }
    let stream = connection.stream.as_mut()?;
    let before = stream.sent();
    let keep = respond::may_keep_alive(request, connection.answered, engine.draining.get());
    let mut output = engine.output.borrow_mut();
    output.clear();
    output.extend_from_slice(b"HTTP/1.1 200 OK\r\nDate: ");
    output.extend_from_slice(&engine.date());
    output.extend_from_slice(&resource.before);
    respond::write_connection(request, connection.answered, keep, &mut output);
    output.extend_from_slice(&resource.after);
    let outcome = match &resource.content {
        Content::Memory(bytes) => {
            output.extend_from_slice(bytes);
            stream.try_write(&output)
        }
        Content::File(_) => Ok(0),
    };
    active.output.clear();
    let outcome = match outcome {
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error),
    };
    let outcome = outcome.map(|count| {
        active.output.extend_from_slice(output.get(count..).unwrap_or_default());
    });
    drop(output);
    Some(Sent { resource, keep, before, outcome })
}

/// Sends what is left of it, and logs it; whether the connection stays open.
pub(super) async fn finish(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    sent: Sent,
) -> io::Result<bool> {
    let Sent { resource, keep, before, mut outcome } = sent;
    let Some(stream) = connection.stream.as_mut() else { return Ok(false) };
    let is_secure = connection.client.tls.is_some();
    if outcome.is_ok() && (is_secure || !active.output.is_empty()) {
        let timeout = request.host.core.timeout();
        outcome = match &resource.content {
            Content::Memory(_) if active.output.is_empty() => stream.flush(timeout).await,
            Content::Memory(_) => stream.write_all(&active.output, timeout).await,
            Content::File(slice) => {
                let (offset, length) = (slice.offset, slice.length);
                stream.send_file(&active.output, &slice.file, offset, length, timeout).await
            }
        };
    }
    connection.answered += 1;
    connection.client.keepalives.set(connection.answered);
    connection.engine.count(request, 200, resource.file.size);
    let state = if keep { KeepAlive::Open } else { KeepAlive::Close };
    connection.client.keepalive.set(state);
    if !resource.plan.phase(Phase::LogTransaction).is_empty() {
        connection.client.aborted.set(outcome.is_err());
        connection.client.bytes_out.set(stream.sent() - before);
        connection.client.first_byte_us.set(connection.engine.handle.clock().wall_us());
        request.take_over(&resource);
        process::run_all(request, Phase::LogTransaction).await;
    }
    outcome.map(|()| keep)
}

/// Before the long way: watches what this target looked at last time, and notes what it looks at.
pub(super) fn arm(connection: &Connection, request: &mut Request) -> Option<Armed> {
    let engine = &connection.engine;
    let watcher = engine.handle.watcher().map(|watcher| &**watcher);
    request.trace = Some(Trace::default());
    engine.resources.arm(watcher, request.host.id, &request.unparsed_uri)
}

/// After the long way: keeps the answer, or notes what to watch next time.
pub(super) fn remember(connection: &Connection, request: &mut Request, armed: Option<Armed>) {
    let engine = &connection.engine;
    let watcher = engine.handle.watcher().map(|watcher| &**watcher);
    if !is_reusable(request, watcher.is_some()) {
        return;
    }
    let target = request.original_target().to_vec();
    let Some(armed) = armed else {
        let looked_at = request.trace.take().unwrap_or_default();
        engine.resources.note(request.host.id, &target, looked_at.paths);
        return;
    };
    let Answer::File(slice) = &request.body else { return };
    let slice: FileSlice = slice.clone();
    let content = if slice.length <= IN_MEMORY_BYTES {
        match send::read(&slice) {
            Ok(bytes) => Content::Memory(bytes),
            Err(_) => return,
        }
    } else {
        Content::File(slice)
    };
    let Some((before, after)) = respond::reusable_head(request) else { return };
    let resource = Resource::new(request, before, after, content);
    engine.resources.keep(watcher, armed, request, resource);
}

/// A whole file, by nobody's decision but the configuration's.
fn is_reusable(request: &Request, is_watched: bool) -> bool {
    request.pure
        && request.status == 200
        && request.has_plain_env()
        && request.trailers_out.is_empty()
        && !request.no_cache
        && request.user.is_none()
        // A watch does not see a write by another of its names.
        && (request.file.links <= 1 || !is_watched)
        && matches!(request.body, Answer::File(_))
}
