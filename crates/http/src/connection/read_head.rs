//! Waiting for a head.

use std::io;
use std::task::Poll;
use std::time::Duration;

use rt::Deadline;
use wire::{HeadError, Progress};

use super::{Active, Connection, LINGER, LINGERING_LIMIT};

/// Most bytes of the buffer for a head that does not arrive at once; a longer head has exceeded a
/// limit before.
const INPUT_LIMIT: usize = 16 * 1024 * 1024;

/// The result of waiting for a head.
pub(super) enum Next {
    /// A head.
    Request {
        /// Its length in bytes.
        consumed: usize,
    },
    /// An invalid head.
    Refused(Box<HeadError>),
    /// Nothing arrived for a while; the connection stays open until the deadline.
    Quiet(Deadline),
    /// Nothing has arrived, and the connection may migrate to another loop.
    Migrating(Deadline),
    /// A part of a head arrived, followed by the end (400) or a timeout (408).
    Unfinished(u16),
    /// The connection is broken or closed.
    Gone,
}

/// Waits for a complete head. The bytes after it are left in `active.input`.
pub(super) async fn next(
    connection: &mut Connection,
    active: &mut Active,
    deadline: Deadline,
) -> Next {
    active.peeked = 0;
    let mut progress = if active.input.is_empty() {
        match fresh(connection, active, deadline).await {
            Ok(progress) => progress,
            Err(next) => return next,
        }
    } else {
        // Bytes received with the previous request have their own time, from the moment they are
        // parsed.
        connection.head_began_ms = connection.engine.handle.clock().now_ms();
        if connection.responses > 0 {
            active.peeked = peeked(&active.input);
        }
        parse_left(connection, active)
    };
    loop {
        match progress {
            Progress::Done { consumed } => return Next::Request { consumed },
            Progress::Error(error) => return Next::Refused(error),
            Progress::NeedMore => {}
        }
        if let Err(next) = more(connection, active).await {
            return next;
        }
        progress = parse_left(connection, active);
    }
}

/// Returns how many bytes of the next request Apache's `ap_check_pipeline` reads before the request
/// itself does: one, and one and two for each empty line in front of it. They count in `%I`.
fn peeked(input: &[u8]) -> usize {
    let mut rest = input;
    let mut count = 0;
    loop {
        let (more, line) = match rest {
            [b'\r', b'\n', line @ ..] => (3, line),
            [b'\n', line @ ..] => (1, line),
            [b'\r', _, ..] => return count + 3,
            [b'\r'] => return count + 2,
            [] => return count,
            _ => return count + 1,
        };
        count += more;
        rest = line;
    }
}

/// Waits for the first bytes, at most for [`LINGER`]; after that the connection is quiet. They are
/// received into the loop's own buffer, which stays in the processor's cache, and only the rest of
/// them is copied into the connection's.
async fn fresh(
    connection: &mut Connection,
    active: &mut Active,
    deadline: Deadline,
) -> Result<Progress, Next> {
    let engine = connection.engine.clone();
    let received = receive(connection, deadline).await?;
    if !received.is_ok_and(|count| count > 0) {
        return Err(Next::Gone);
    }
    connection.head_began_ms = engine.handle.clock().now_ms();
    let input = engine.input.borrow();
    let progress = connection.parse(active, &input);
    let left = match &progress {
        Progress::Done { consumed } => input.get(*consumed..).unwrap_or_default(),
        Progress::NeedMore => &input,
        // It may be the beginning of HTTP/2.
        Progress::Error(_) => &input,
    };
    active.input.extend_from_slice(left);
    Ok(progress)
}

/// Waits for and receives them.
async fn receive(
    connection: &mut Connection,
    deadline: Deadline,
) -> Result<io::Result<usize>, Next> {
    let engine = &connection.engine;
    let is_kept = connection.responses > 0;
    let Some(stream) = connection.stream.as_mut() else { return Err(Next::Gone) };
    let connections = &engine.connections;
    let is_crowded = connections.lingering_now() >= LINGERING_LIMIT;
    // Check the socket at least once: bytes that have arrived are processed now.
    let patience = if is_crowded { Duration::ZERO } else { LINGER };
    let until = deadline.min(engine.handle.deadline(patience));
    let lingering = connections.lingering();
    let received = std::future::poll_fn(|cx| {
        let mut input = engine.input.borrow_mut();
        input.clear();
        let received = stream.poll_read_first(cx, &mut input, until);
        let can_migrate = received.is_pending() && engine.migration_order.allows_active();
        if can_migrate && is_kept && stream.is_quiet() {
            return Poll::Ready(None);
        }
        received.map(Some)
    });
    let received = received.await;
    drop(lingering);
    match received {
        None => Err(Next::Migrating(deadline)),
        Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => Err(Next::Quiet(deadline)),
        Some(received) => Ok(received),
    }
}

/// Parses bytes received earlier.
fn parse_left(connection: &Connection, active: &mut Active) -> Progress {
    let mut input = std::mem::take(&mut active.input);
    let progress = connection.parse(active, &input);
    if let Progress::Done { consumed } = progress {
        input.drain(..consumed.min(input.len()));
    }
    active.input = input;
    progress
}

/// Waits for more of a head that has begun.
async fn more(connection: &mut Connection, active: &mut Active) -> Result<(), Next> {
    let deadline = connection.head_deadline(active);
    let Some(stream) = connection.stream.as_mut() else { return Err(Next::Gone) };
    if active.input.len() == active.input.capacity() {
        if active.input.len() >= INPUT_LIMIT {
            return Err(Next::Gone);
        }
        active.input.reserve(active.input.len().max(1024));
    }
    let _reading = connection.engine.connections.reading();
    match stream.read(&mut active.input, deadline).await {
        Ok(0) => Err(Next::Unfinished(400)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Next::Unfinished(408)),
        Err(_) => Err(Next::Gone),
    }
}

impl Connection {
    /// The deadline for the rest of a head: `Timeout` from now, `RequestReadTimeout` in total.
    fn head_deadline(&self, active: &Active) -> Deadline {
        let timeout = self.info.base_host.core.timeout();
        let next = self.engine.handle.deadline(timeout);
        next.min(self.head_running().deadline(active.input.len()))
    }
}
