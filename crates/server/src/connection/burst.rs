//! A burst: requests that follow each other closely, pipelined or not.

use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use rt::{Deadline, Pooled};
use wire::{HeadError, HeadOptions, Progress};

use super::{
    Active, Connection, Ended, LINGER, LINGERING_LIMIT, again, encore, fast, learn, pipe, send,
};
use crate::client::KeepAlive;
use crate::hooks::{Phase, Verdict};
use crate::log::Level;
use crate::process;
use crate::repeat::Repeat;
use crate::request::Request;
use crate::resource::Lesson;
use crate::{errors, respond};

/// A head that does not arrive in one piece is kept in a buffer that grows at most to this, bytes;
/// a head that is longer has broken a limit before.
const INPUT_LIMIT: usize = 16 * 1024 * 1024;

/// Answers what arrives until it is quiet. `deadline` is for the first byte.
pub(super) async fn run(connection: &mut Connection, deadline: Deadline) -> Ended {
    let engine = connection.engine.clone();
    let mut active = engine.actives.take(Active::new);
    let _active = engine.connections.active();
    let ended = requests(connection, &mut active, deadline).await;
    active.reset();
    ended
}

async fn requests(
    connection: &mut Connection,
    active: &mut Active,
    mut deadline: Deadline,
) -> Ended {
    loop {
        let answered = match next_head(connection, active, deadline).await {
            Next::Request { consumed } => {
                connection.engine.handle.drained().await;
                answer(connection, active, consumed).await
            }
            Next::Repeat(repeat) => {
                connection.engine.handle.drained().await;
                again::answer(connection, active, repeat).await
            }
            Next::Refused(error) => {
                refuse(connection, active, &error).await;
                return Ended::Close;
            }
            Next::Quiet => return Ended::Quiet(deadline),
            Next::Leaving => return Ended::Leaving(deadline),
            Next::Unfinished(status) => return unfinished(connection, active, status).await,
            Next::Gone => return connection.ended(),
        };
        match answered {
            Ok(true) => {}
            Ok(false) => return Ended::Close,
            Err(_) => return Ended::Abort,
        }
        active.parser.reset_for_next();
        active.head.clear();
        active.raw.clear();
        let timeout = connection.client.base_host.core.keep_alive_timeout();
        deadline = connection.engine.handle.deadline(timeout);
    }
}

/// What came of waiting for a head.
enum Next {
    /// A head, and how many bytes it had.
    Request {
        /// Bytes of the head.
        consumed: usize,
    },
    /// A head that was answered before.
    Repeat(Rc<Repeat>),
    /// A head that can't be taken.
    Refused(Box<HeadError>),
    /// Nothing came for a while.
    Quiet,
    /// Nothing has come, and the connection may go to another loop.
    Leaving,
    /// A part of a head came, and then the end (400) or nothing more (408).
    Unfinished(u16),
    /// The connection is broken, or over.
    Gone,
}

/// Waits for a head that is complete. What follows it is left in `active.input`.
async fn next_head(connection: &mut Connection, active: &mut Active, deadline: Deadline) -> Next {
    let mut progress = if active.input.is_empty() {
        match fresh(connection, active, deadline).await {
            Ok(progress) => progress,
            Err(next) => return next,
        }
    } else {
        // What came behind the request before has its own time, from when it is looked at.
        connection.head_began_ms = connection.engine.handle.clock().now_ms();
        kept(connection, active)
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
        progress = kept(connection, active);
    }
}

/// Waits for the first bytes, not longer than [`LINGER`]: then the connection is quiet. They are
/// received into the loop's own buffer, which stays in the processor's cache, and only what is left
/// of them becomes the connection's.
async fn fresh(
    connection: &mut Connection,
    active: &mut Active,
    deadline: Deadline,
) -> Result<Progress, Next> {
    let engine = connection.engine.clone();
    let received = match encore::play(connection, active, deadline).await {
        encore::Next::Received(received) => received,
        encore::Next::Wait(deadline) => receive(connection, deadline).await?,
    };
    match received {
        Ok(0) => return Err(Next::Gone),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(Next::Quiet),
        Err(_) => return Err(Next::Gone),
    }
    connection.head_began_ms = engine.handle.clock().now_ms();
    let input = engine.input.borrow();
    let is_again = again::look(connection, &input).map_err(Next::Repeat)?;
    let progress = connection.parse(active, &input);
    if is_again && progress == (Progress::Done { consumed: input.len() }) {
        active.raw.extend_from_slice(&input);
    }
    let left = match &progress {
        Progress::Done { consumed } => input.get(*consumed..).unwrap_or_default(),
        Progress::NeedMore => &input,
        Progress::Error(_) => &[],
    };
    active.input.extend_from_slice(left);
    Ok(progress)
}

/// The wait for them.
async fn receive(
    connection: &mut Connection,
    deadline: Deadline,
) -> Result<io::Result<usize>, Next> {
    let engine = &connection.engine;
    let is_kept = connection.answered > 0;
    let Some(stream) = connection.stream.as_mut() else { return Err(Next::Gone) };
    let connections = &engine.connections;
    let is_crowded = connections.lingering_now() >= LINGERING_LIMIT;
    // A look at the socket at least: what has arrived already is answered now.
    let patience = if is_crowded { Duration::ZERO } else { LINGER };
    let until = deadline.min(engine.handle.deadline(patience));
    let lingering = connections.lingering();
    let received = std::future::poll_fn(|cx| {
        let mut input = engine.input.borrow_mut();
        input.clear();
        let received = stream.poll_read_first(cx, &mut input, until);
        let may_leave = received.is_pending() && engine.leaving.is_for_active();
        if may_leave && is_kept && stream.is_quiet() {
            return Poll::Ready(None);
        }
        received.map(Some)
    });
    let received = received.await;
    drop(lingering);
    received.ok_or(Next::Leaving)
}

/// Parses what was received before.
fn kept(connection: &Connection, active: &mut Active) -> Progress {
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
    /// What is to be done when the client is gone: over TLS its farewell is answered.
    fn ended(&self) -> Ended {
        let tls = self.stream.as_ref().and_then(|stream| stream.tls());
        if tls.is_some_and(|tls| tls.peer_closed()) { Ended::Close } else { Ended::Abort }
    }

    /// Parses as much of a head as there is, under the limits of the address's own host.
    pub(super) fn parse(&self, active: &mut Active, input: &[u8]) -> Progress {
        let core = &self.client.base_host.core;
        let options = HeadOptions {
            strict: core.strict_protocol(),
            registered_methods: core.registered_methods(),
            allow_http09: core.allow_http09(),
            methods: &self.engine.server.methods,
        };
        active.parser.parse(&mut active.head, input, &core.head_limits(), &options)
    }

    /// Notes what was received for a request's head: its bytes, or its records on TLS.
    pub(super) fn count_received(&mut self, consumed: usize) {
        let Some(stream) = &self.stream else { return };
        if self.client.tls.is_none() {
            self.client.bytes_in.set(consumed as u64);
            return;
        }
        let received = stream.received();
        self.client.bytes_in.set(received - self.received_before);
        self.received_before = received;
    }

    /// When the rest of a head must be here: `Timeout` from now, `RequestReadTimeout` in all.
    fn head_deadline(&self, active: &Active) -> Deadline {
        let timeout = self.client.base_host.core.timeout();
        let next = self.engine.handle.deadline(timeout);
        next.min(self.head_running().deadline(active.input.len()))
    }
}

/// A head that did not arrive in time (408), or ended in the middle (400); where nothing of it
/// came, or not even the whole request line, nothing is said.
async fn unfinished(connection: &mut Connection, active: &mut Active, status: u16) -> Ended {
    if status == 408 {
        connection.tell_slow(active.input.len());
    }
    if !active.parser.has_line() {
        return Ended::Abort;
    }
    let mut request = take_request(connection, active);
    errors::die(&mut request, status).await;
    let _ = finish(connection, active, request, false).await;
    Ended::Close
}

/// Answers a head that can't be taken, by the base host's configuration.
pub(super) async fn refuse(connection: &mut Connection, active: &mut Active, error: &HeadError) {
    let request = take_request(connection, active);
    refuse_with(connection, active, request, error).await;
}

async fn refuse_with(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    error: &HeadError,
) {
    let level = match error.level {
        wire::LogLevel::Error => Level::Error,
        wire::LogLevel::Info => Level::Info,
        wire::LogLevel::Debug => Level::Debug,
    };
    let message = String::from_utf8_lossy(&error.message).into_owned();
    request.log_core(level, error.log_number, &message, None);
    if !error.notes.is_empty() {
        request.notes.set(b"error-notes", error.notes.as_bytes());
    }
    errors::die(&mut request, error.status).await;
    let _ = finish(connection, active, request, false).await;
}

/// Answers the request whose head is complete; whether the connection stays open.
pub(super) async fn answer(
    connection: &mut Connection,
    active: &mut Active,
    consumed: usize,
) -> io::Result<bool> {
    let engine = connection.engine.clone();
    let _writing = engine.connections.writing();
    let mut request = blank(connection, active);
    let found = request.find_host(&mut active.host, &mut active.head, &mut active.known);
    request.take_head(&mut active.head);
    if let Err(error) = found {
        Box::pin(refuse_with(connection, active, request, &error)).await;
        return Ok(false);
    }
    connection.count_received(consumed);
    let mut verdict = Verdict::Ok;
    if !request.plan.phase(Phase::PostReadRequest).is_empty() {
        verdict = process::run_all(&mut request, Phase::PostReadRequest).await;
        // These hooks may look at anything; what counts is whether they left a trace.
        request.pure = request.is_untouched();
    }
    if verdict == Verdict::Ok
        && request.pure
        && fast::may(active)
        && let Some(resource) = fast::find(connection, active, &request)
        && let Some(sent) = fast::send(connection, active, &request, resource.clone())
    {
        let is_worth_keeping = !active.raw.is_empty() && again::may(&request, &resource);
        // Made ready for another even where the client has gone: the next may be somebody else's.
        let outcome = fast::finish(connection, active, &mut request, sent).await;
        if is_worth_keeping {
            engine.resources.repeats.keep(&active.raw, request.into_box(), resource);
        } else {
            request.renew();
        }
        return outcome;
    }
    Box::pin(full(connection, active, request, verdict)).await
}

/// The long way, through the phases.
async fn full(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    verdict: Verdict,
) -> io::Result<bool> {
    let caching = request.pure && fast::may(active);
    let pipe = pipe::attach(connection, active, &mut request);
    let lesson = if caching { learn::arm(connection, &mut request) } else { Lesson::None };
    let verdict = match verdict {
        Verdict::Ok => process::process(&mut request).await,
        decided => decided,
    };
    if let Verdict::Status(status) = verdict {
        request.pure = false;
        errors::die(&mut request, status).await;
    }
    let body_done = pipe::detach(connection, active, &mut request, pipe).await;
    filter(&mut request);
    if !matches!(lesson, Lesson::None) {
        learn::remember(connection, &mut request, lesson).await;
    }
    finish(connection, active, request, body_done).await
}

/// Applies the output filters, in stage order.
fn filter(request: &mut Request) {
    for attached in std::mem::take(&mut request.filters) {
        request.pure &= attached.filter.is_pure();
        let body = std::mem::take(&mut request.body);
        request.body = attached.filter.apply(request, body);
    }
}

/// Sends and logs an answer; whether the connection stays open.
async fn finish(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    may_keep: bool,
) -> io::Result<bool> {
    filter(&mut request);
    let may_keep = may_keep && !connection.engine.draining.get();
    let framing = respond::finish_headers(&mut request, may_keep);
    let sent = send::answer(connection, active, &mut request, framing).await;
    connection.client.aborted.set(sent.is_err());
    let state = if framing.keep { KeepAlive::Open } else { KeepAlive::Close };
    connection.client.keepalive.set(state);
    connection.answered += 1;
    connection.client.keepalives.set(connection.answered);
    if request.handler_of_type {
        request.handler = None;
    }
    process::run_all(&mut request, Phase::LogTransaction).await;
    connection.engine.count(&request, request.status, request.bytes_sent);
    request.renew();
    sent.map(|()| framing.keep)
}

/// A request for the connection, out of the loop's pool: the one that was used last is the one
/// that is still in the processor's cache.
fn blank(connection: &Connection, active: &mut Active) -> Pooled<Request> {
    let engine = &connection.engine;
    let base = active.base.get_or_insert_with(|| engine.plans.place(&connection.client.base_host));
    let new = || Request::blank(engine.clone(), connection.client.clone(), base.clone());
    let mut request = engine.requests.take(new);
    request.begin(&connection.client, base);
    request
}

/// As much of a request as its head tells, even a broken one.
fn take_request(connection: &Connection, active: &mut Active) -> Pooled<Request> {
    let mut request = blank(connection, active);
    request.forget_host();
    request.take_head(&mut active.head);
    request
}
