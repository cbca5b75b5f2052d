//! A burst: requests that follow each other closely, pipelined or not.

use std::io;

use rt::Deadline;
use wire::{HeadError, HeadLimits, HeadOptions, Progress};

use super::{Active, Connection, Ended, LINGER, fast, pipe, send};
use crate::client::KeepAlive;
use crate::hooks::{Phase, Verdict};
use crate::log::Level;
use crate::process;
use crate::request::Request;
use crate::{errors, respond};

/// The input buffer grows at most to this, bytes; a head that is longer has broken a limit before.
const INPUT_LIMIT: usize = 16 * 1024 * 1024;

/// Answers what arrives until it is quiet. `deadline` is for the first byte.
pub(super) async fn run(connection: &mut Connection, deadline: Deadline) -> Ended {
    let engine = connection.engine.clone();
    let mut active = engine.actives.take(Active::new);
    let ended = requests(connection, &mut active, deadline).await;
    active.request = None;
    active.parser.reset();
    active.head.clear();
    active.input.clear();
    // What a connection that was closed has left must not be seen by the next one.
    active.parser.reset();
    active.head.clear();
    active.output.clear();
    ended
}

async fn requests(
    connection: &mut Connection,
    active: &mut Active,
    mut deadline: Deadline,
) -> Ended {
    let engine = connection.engine.clone();
    let base = connection.client.base_host.clone();
    let limits = base.core.head_limits();
    loop {
        let options = HeadOptions {
            strict: base.core.strict_protocol(),
            registered_methods: base.core.registered_methods(),
            allow_http09: base.core.allow_http09(),
            methods: &engine.server.methods,
        };
        match progress(active, &limits, &options) {
            Progress::NeedMore => match receive(connection, active, deadline).await {
                Ok(Received::Bytes) => deadline = connection.head_deadline(active),
                Ok(Received::Nothing) => return Ended::Quiet(deadline),
                Ok(Received::End) => return unfinished(connection, active, 400).await,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return unfinished(connection, active, 408).await;
                }
                Err(_) => return Ended::Abort,
            },
            Progress::Error(error) => {
                refuse(connection, active, &error).await;
                return Ended::Close;
            }
            Progress::Done { consumed } => {
                engine.handle.drained().await;
                let _writing = engine.connections.writing();
                match answer(connection, active, consumed).await {
                    Ok(true) => {}
                    Ok(false) => return Ended::Close,
                    Err(_) => return Ended::Abort,
                }
                active.parser.reset();
                active.head.clear();
                deadline = engine.handle.deadline(base.core.keep_alive_timeout());
            }
        }
    }
}

fn progress(active: &mut Active, limits: &HeadLimits, options: &HeadOptions<'_>) -> Progress {
    if active.input.is_empty() {
        return Progress::NeedMore;
    }
    active.parser.parse(&mut active.head, &active.input, limits, options)
}

enum Received {
    /// Something.
    Bytes,
    /// Nothing for a while, between two requests.
    Nothing,
    /// The other end has closed.
    End,
}

/// Waits for more bytes. Between requests not longer than [`LINGER`]: then the buffers go back.
async fn receive(
    connection: &mut Connection,
    active: &mut Active,
    deadline: Deadline,
) -> io::Result<Received> {
    let engine = connection.engine.clone();
    let Some(stream) = connection.stream.as_mut() else { return Ok(Received::End) };
    let begun = !active.input.is_empty();
    if active.input.len() == active.input.capacity() {
        if active.input.len() >= INPUT_LIMIT {
            return Ok(Received::End);
        }
        active.input.reserve(active.input.len().max(1024));
    }
    let _reading = begun.then(|| engine.connections.reading());
    let until = if begun { deadline } else { deadline.min(engine.handle.deadline(LINGER)) };
    let count = match stream.read(&mut active.input, until).await {
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::TimedOut && !begun => {
            return Ok(Received::Nothing);
        }
        Err(error) => return Err(error),
    };
    if count == 0 {
        return Ok(Received::End);
    }
    if !begun {
        let policy = connection.client.base_host.read_policy.header;
        connection.head_began = policy.begin(engine.handle.clock());
    }
    Ok(Received::Bytes)
}

impl Connection {
    /// Notes what was received for a request's head: its bytes, or its records on TLS.
    fn count_received(&mut self, consumed: usize) {
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
        next.min(self.head_began.deadline(active.input.len()))
    }
}

/// A head that did not arrive in time (408), or ended in the middle (400); where nothing of it came
/// nothing is said.
async fn unfinished(connection: &mut Connection, active: &mut Active, status: u16) -> Ended {
    if !active.parser.has_begun() {
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
    mut request: Box<Request>,
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
async fn answer(
    connection: &mut Connection,
    active: &mut Active,
    consumed: usize,
) -> io::Result<bool> {
    let mut request = blank(connection, active);
    let found = request.find_host(&mut active.host, &mut active.head);
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
        && let Some(sent) = fast::answer(connection, active, &mut request)
    {
        let keep = fast::finish(connection, active, &mut request, sent).await?;
        active.request = Some(request);
        active.input.drain(..consumed.min(active.input.len()));
        return Ok(keep);
    }
    Box::pin(full(connection, active, request, consumed, verdict)).await
}

/// The long way, through the phases.
async fn full(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Box<Request>,
    consumed: usize,
    verdict: Verdict,
) -> io::Result<bool> {
    let caching = request.pure && fast::may(active);
    active.input.drain(..consumed.min(active.input.len()));
    let pipe = pipe::attach(connection, active, &mut request);
    let armed = if caching { fast::arm(connection, &mut request) } else { None };
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
    if let Some(armed) = armed {
        fast::remember(connection, &mut request, armed);
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
    mut request: Box<Request>,
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
    process::run_all(&mut request, Phase::LogTransaction).await;
    connection.engine.count(request.bytes_sent);
    active.request = Some(request);
    sent.map(|()| framing.keep)
}

/// The connection's request, recycled.
fn blank(connection: &Connection, active: &mut Active) -> Box<Request> {
    let engine = &connection.engine;
    let root = engine.plans.root(&connection.client.base_host);
    match active.request.take() {
        Some(mut request) => {
            if request.layer.id != root.id {
                request.plan = engine.plans.plan(&engine.server.registry, &root);
                request.layer = root;
            }
            request.renew();
            request
        }
        None => {
            let plan = engine.plans.plan(&engine.server.registry, &root);
            let (engine, client) = (engine.clone(), connection.client.clone());
            Box::new(Request::blank(engine, client, root, plan))
        }
    }
}

/// As much of a request as its head tells, even a broken one.
fn take_request(connection: &Connection, active: &mut Active) -> Box<Request> {
    let mut request = blank(connection, active);
    request.take_head(&mut active.head);
    request
}
