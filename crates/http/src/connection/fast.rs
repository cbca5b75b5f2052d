//! The short way: an answer that is known already.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use wire::{Body, HeadFlags, Method};

use super::{Active, Connection};
use crate::cache::resource::{Content, IN_MEMORY_BYTES, Resource};
use crate::respond;
use server::connection_info::KeepAlive;
use server::hooks::Phase;
use server::process;
use server::request::Request;

/// Fields that may change the answer of a file.
const NOT_SIMPLE: HeadFlags = HeadFlags::CONDITIONAL
    .with(HeadFlags::RANGE)
    .with(HeadFlags::EXPECT)
    .with(HeadFlags::UPGRADE)
    .with(HeadFlags::CONTENT_LENGTH)
    .with(HeadFlags::TRANSFER_ENCODING)
    .with(HeadFlags::TARGET_HOST);

const BEFORE_DATE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: ";

/// Where the date stands in a head.
pub(super) const DATE: Range<usize> = BEFORE_DATE.len()..BEFORE_DATE.len() + 29;

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

/// The answer, if it is known and still true.
pub(super) fn find(
    connection: &Connection,
    active: &Active,
    request: &Request,
) -> Option<Rc<Resource>> {
    let engine = &connection.engine;
    let resource = engine.resources.get(request, active.head.target())?;
    if !resource.is_fresh(engine.handle.witness()) {
        engine.resources.forget(request.host.id, active.head.target());
        return None;
    }
    Some(resource)
}

/// Sends the answer, which is put together in the loop's own buffer. `None` where there is no
/// socket.
pub(super) fn send(
    connection: &mut Connection,
    active: &mut Active,
    request: &Request,
    resource: Rc<Resource>,
) -> Option<Sent> {
    let engine = &connection.engine;
    let stream = connection.stream.as_mut()?;
    let before = stream.sent();
    let keep = respond::may_keep_alive(request, connection.answered, engine.draining.get());
    let mut output = engine.output.borrow_mut();
    output.clear();
    write_head(request, &resource, connection.answered, keep, &mut output);
    let body = match &resource.content {
        Content::Memory(bytes) if bytes.len() as u64 <= IN_MEMORY_BYTES => &**bytes,
        Content::Memory(_) | Content::File(_) => &[],
    };
    // A thread with one connection finds its buffer cold: a copy costs it more than a second part.
    let apart = engine.handle.works_in_place() && connection.client.tls.is_none();
    let outcome = if body.is_empty() {
        Ok(0)
    } else if apart {
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
    Some(Sent { resource, keep, before, outcome })
}

/// The head of the answer, [`DATE`] included.
pub(super) fn write_head(
    request: &Request,
    resource: &Resource,
    answered: u32,
    keep: bool,
    output: &mut Vec<u8>,
) {
    output.extend_from_slice(BEFORE_DATE);
    output.extend_from_slice(&request.engine.date());
    output.extend_from_slice(&resource.before);
    respond::write_connection(request, answered, keep, output);
    output.extend_from_slice(&resource.after);
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
    connection.engine.count(request, 200, resource.body_bytes);
    let state = if keep { KeepAlive::Open } else { KeepAlive::Close };
    connection.client.keepalive.set(state);
    if !resource.plan.phase(Phase::LogTransaction).is_empty() {
        connection.client.aborted.set(outcome.is_err());
        connection.client.first_byte_us.set(connection.engine.handle.clock().wall_us());
        resource.give_to(request);
        process::run_all(request, Phase::LogTransaction).await;
    }
    outcome.map(|()| keep)
}
