//! Requests that follow each other closely on a connection, pipelined or not.

use std::io;

use rt::{Deadline, Pooled};
use server::connection_info::KeepAlive;
use server::errors;
use server::filter;
use server::hooks::{Phase, Verdict};
use server::log::Level;
use server::process;
use server::request::{CLOSES_SILENTLY, Request, SNI_ALONE, Switching, Unhosted};
use wire::{HeadError, HeadFlags, Progress};

use super::fast::{self, FastPath};
use super::read_head::{self, Next};
use super::{Active, Connection, Ended, dump, fill, h2, interim, pass, request_body, send, tunnel};
use crate::cache::response::Fill;
use crate::persistence::MadeBy;
use crate::respond;

/// Serves requests until the connection is quiet. `deadline` is for the first byte.
pub(super) async fn serve(connection: &mut Connection, deadline: Deadline) -> Ended {
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
        let outcome = match read_head::next(connection, active, deadline).await {
            Next::Request { consumed } => {
                connection.engine.handle.drained().await;
                respond_to(connection, active, consumed).await
            }
            Next::Refused(_) if h2::is_preface(connection, active) => {
                return Ended::Http2(std::mem::take(&mut active.input), None);
            }
            Next::Refused(error) => {
                let consumed = active.parser.consumed();
                connection.engine.handle.drained().await;
                refuse(connection, active, &error, consumed).await;
                return Ended::Close;
            }
            Next::Quiet(deadline) => return Ended::Quiet(deadline),
            Next::Migrating(deadline) => return Ended::Migrating(deadline),
            Next::Unfinished(status) => return unfinished(connection, active, status).await,
            Next::Gone => return connection.ended(),
        };
        if let Some(tunnel) = active.tunnel.take() {
            return Ended::Tunnel(tunnel);
        }
        match outcome {
            Ok(true) => {}
            Ok(false) => return h2::after_last(active),
            Err(_) => return Ended::Abort,
        }
        active.parser.reset_for_next();
        active.head.clear();
        let timeout = connection.info.base_host.core.keep_alive_timeout();
        deadline = connection.engine.handle.deadline(timeout);
    }
}

impl Connection {
    /// How to end after the client has closed: over TLS a close_notify is sent.
    fn ended(&self) -> Ended {
        let tls = self.stream.as_ref().and_then(|stream| stream.tls());
        if tls.is_some_and(|tls| tls.peer_closed()) { Ended::Close } else { Ended::Abort }
    }

    /// Parses as much of a head as has arrived, under the limits of the address's own host.
    pub(super) fn parse(&self, active: &mut Active, input: &[u8]) -> Progress {
        let options = super::head_options(&self.engine, &self.info);
        let limits = self.info.base_host.core.head_limits();
        let progress = active.parser.parse(&mut active.head, input, &limits, &options);
        if self.info.base_host.dump.input && !matches!(progress, Progress::NeedMore) {
            let consumed = active.parser.consumed();
            dump::head(self, input.get(..consumed).unwrap_or(input));
        }
        progress
    }

    /// Returns the bytes received for a request's head: its own, or those of its records on TLS. A
    /// header of the PROXY protocol belongs to the first one. Apache reads `peeked` of them twice.
    pub(super) fn count_received(&mut self, consumed: usize, peeked: usize) -> u64 {
        let tls = self.stream.as_ref().filter(|_| self.info.tls.is_some());
        let Some(stream) = tls else {
            let proxied = self.info.proxied.as_ref();
            let of_proxy = proxied.map_or(0, |proxied| proxied.header_bytes.take());
            return (consumed + peeked) as u64 + of_proxy;
        };
        let received = stream.received();
        received - std::mem::replace(&mut self.received_before, received)
    }
}

/// Refuses a head that did not arrive in time (408) or ended in the middle (400). If not even the
/// request line is complete, nothing is sent.
async fn unfinished(connection: &mut Connection, active: &mut Active, status: u16) -> Ended {
    if status == 408 {
        connection.log_slow_head(active.input.len());
    }
    let received = active.input.len();
    if !active.parser.has_line() {
        if status == 408 && connection.responses == 0 {
            log_unread(connection, active, received).await;
        }
        return Ended::Abort;
    }
    connection.engine.handle.drained().await;
    let mut request = take_request(connection, active, received);
    errors::die(&mut request, status).await;
    let _ = finish(connection, active, request, false).await;
    Ended::Close
}

/// Logs a client that did not complete its first request line in time.
pub(super) async fn log_unread(connection: &mut Connection, active: &mut Active, received: usize) {
    let mut request = take_request(connection, active, received);
    request.resource.uri.clear();
    request.response.status = 408;
    connection.info.keepalive.set(KeepAlive::Close);
    process::run_all(&mut request, Phase::LogTransaction).await;
    request.renew();
}

/// Responds to an invalid head of `consumed` bytes, by the base host's configuration.
pub(super) async fn refuse(
    connection: &mut Connection,
    active: &mut Active,
    error: &HeadError,
    consumed: usize,
) {
    let request = take_request(connection, active, consumed);
    refuse_with(connection, active, request, error).await;
}

/// The same for plain HTTP to a port of TLS: there Apache has the request's address by then.
pub(super) async fn refuse_plain(
    connection: &mut Connection,
    active: &mut Active,
    error: &HeadError,
    consumed: usize,
) {
    let mut request = take_request(connection, active, consumed);
    if let Some(proxied) = &connection.info.proxied {
        request.useragent_addr = proxied.client;
    }
    let _ = process::run_before_tls(&mut request).await;
    refuse_with(connection, active, request, error).await;
}

/// Refuses a request without a host, unless a hook responds to it earlier.
async fn refuse_unhosted(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    unhosted: Unhosted,
) -> io::Result<bool> {
    let error = match unhosted {
        Unhosted::Invalid(error) => error,
        Unhosted::Misdirected(error) => match process::run_before_tls(&mut request).await {
            Verdict::Ok | Verdict::Declined => error,
            decided => return full(connection, active, request, decided, Fill::None).await,
        },
    };
    refuse_with(connection, active, request, &error).await;
    Ok(false)
}

async fn refuse_with(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    error: &HeadError,
) {
    make_refusal(connection, active, &mut request, error).await;
    let _ = finish(connection, active, request, false).await;
}

/// Makes the response to an invalid head.
pub(super) async fn make_refusal(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    error: &HeadError,
) {
    let level = match error.level {
        wire::LogLevel::Error => Level::Error,
        wire::LogLevel::Info => Level::Info,
        wire::LogLevel::Debug => Level::Debug,
    };
    let message = String::from_utf8_lossy(&error.message).into_owned();
    let module = if error.log_number == SNI_ALONE { "mod_ssl.c" } else { "core.c" };
    request.log_as(module, level, error.log_number, format_args!("{message}"));
    if !error.notes.is_empty() {
        request.notes.set(b"error-notes", error.notes.as_bytes());
    }
    // A stream's body does not precede the next request.
    let takes_body = matches!(error.status, 417 | 421) && request.connection.stream.is_none();
    let pipe = match takes_body {
        true => request_body::attach(connection, active, request),
        false => None,
    };
    errors::die(request, error.status).await;
    if takes_body {
        request_body::detach(connection, active, request, pipe).await;
    }
    // If the status itself does not end the connection (417, 421), Apache closes it although it has
    // written the lines of one that stays open; the error document does not matter.
    request.notes.set(CLOSES_SILENTLY, b"1");
}

/// Responds to a request whose head is complete. Returns whether the connection stays open.
pub(super) async fn respond_to(
    connection: &mut Connection,
    active: &mut Active,
    consumed: usize,
) -> io::Result<bool> {
    let engine = connection.engine.clone();
    let _writing = engine.connections.writing();
    let mut request = blank(connection, active);
    let found = request.find_host(&mut active.host, &mut active.head, &mut active.known);
    request.take_head(&mut active.head);
    request.traffic.bytes_in = connection.count_received(consumed, active.peeked);
    if let Err(unhosted) = found {
        return Box::pin(refuse_unhosted(connection, active, request, unhosted)).await;
    }
    let mut verdict = Verdict::Ok;
    if !request.plan.phase(Phase::PostReadRequest).is_empty() {
        verdict = process::run_all(&mut request, Phase::PostReadRequest).await;
        // These hooks may depend on anything; what counts is whether they changed the request.
        request.depends.pure = request.is_untouched();
    }
    let mut fill = Fill::None;
    let may_be_cached = fast::is_cacheable(active) && !connection.info.base_host.dump.output;
    if verdict == Verdict::Ok && request.depends.pure && may_be_cached {
        match fast::find(connection, active, &request) {
            FastPath::Ready(reply) => {
                let sent = fast::send(connection, active, &request, reply);
                let Some(sent) = sent else { return Ok(false) };
                // The request's memory is reused even if the client is gone.
                let outcome = fast::finish(connection, active, &mut request, sent).await;
                request.renew();
                return outcome;
            }
            FastPath::Miss => fill = fill::begin(connection, active, &mut request),
            FastPath::Unsuitable => {}
        }
    }
    Box::pin(full(connection, active, request, verdict, fill)).await
}

/// Runs all phases.
async fn full(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    verdict: Verdict,
    fill: Fill,
) -> io::Result<bool> {
    if verdict == Verdict::Ok && h2::is_asked_for(active, &request) {
        request.response.switching = Switching::Asked;
    }
    let body_done = make(connection, active, &mut request, verdict, fill).await;
    if request.response.switching == Switching::Granted {
        return Box::pin(h2::begin_upgrade(connection, active, request)).await;
    }
    if let Some(tunnel) = request.response.tunnel.take() {
        Box::pin(tunnel::begin(connection, active, request, tunnel)).await;
        return Ok(false);
    }
    finish(connection, active, request, body_done).await
}

/// Makes the response. Returns whether the request's body allows the connection to stay open.
#[inline]
pub(super) async fn make(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    verdict: Verdict,
    fill: Fill,
) -> bool {
    active.began = connection.stream.as_ref().map(rt::Stream::sent);
    let pipe = request_body::attach(connection, active, request);
    let verdict = match verdict {
        Verdict::Ok => {
            let Connection { stream, info, .. } = connection;
            let mut work = std::pin::pin!(process::process(request));
            std::future::poll_fn(|cx| {
                interim::poll(work.as_mut(), cx, stream.as_mut(), pipe.as_ref(), info)
            })
            .await
        }
        decided => decided,
    };
    if let Verdict::Status(status) = verdict {
        request.depends.pure &= errors::is_reusable(request, status);
        errors::die(request, status).await;
    }
    if request.host.upgrades.is_some() {
        let ended_by = if let Verdict::Status(status) = verdict { Some(status) } else { None };
        if let Some(made_by) = MadeBy::of(request, ended_by) {
            request.keep(made_by);
        }
    }
    let body_done = match pipe {
        Some(pipe) if request.response.reads_request && !matches!(verdict, Verdict::Status(_)) => {
            request_body::continue_first(&pipe);
            active.upload = Some(pipe);
            !active.head.flags.has(HeadFlags::CLOSE_AFTER)
        }
        pipe => request_body::detach(connection, active, request, pipe).await,
    };
    fill::conclude(connection, active, request, fill).await;
    body_done
}

/// Sends and logs a response. Returns whether the connection stays open.
async fn finish(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    may_keep: bool,
) -> io::Result<bool> {
    filter::apply_all(&mut request).await;
    let is_passed = request.response.passing.is_some();
    let may_keep = may_keep && !is_passed && !connection.engine.draining.get();
    let framing = respond::finish_headers(&mut request, may_keep).await;
    let passing = request.response.passing.take();
    let upload = active.upload.take();
    let sent = send::response(connection, active, &mut request, framing, upload.as_ref()).await;
    if let Some(passing) = passing {
        pass::pass(connection, &mut request, &passing, &sent);
    }
    let mut keeps = framing.keep;
    if let Some(upload) = upload {
        let has_failed = sent.outcome.is_err();
        let detached =
            request_body::detach_late(connection, active, &mut request, upload, has_failed);
        keeps &= Box::pin(detached).await;
    }
    if request.handler_of_type {
        request.handler = None;
    }
    errors::restore_methods(&mut request);
    request.take_late_variables();
    let has_log = !request.plan.phase(Phase::LogTransaction).is_empty();
    connection.finish(&mut request, &sent, has_log).await;
    request.renew();
    if is_passed {
        // It is the other process that ends the connection.
        connection.stream = None;
    }
    sent.outcome.map(|()| keeps)
}

/// Takes a request from the loop's pool: the one that was used last, which is still in the
/// processor's cache.
pub(super) fn blank(connection: &Connection, active: &mut Active) -> Pooled<Request> {
    let engine = &connection.engine;
    let base = active.base.get_or_insert_with(|| engine.plans.place(&connection.info.base_host));
    let new = || Request::blank(engine.engine.clone(), connection.info.clone(), base.clone());
    let mut request = engine.requests.take(new);
    request.begin(&connection.info, base);
    request
}

/// Takes a request with as much as its head of `consumed` bytes contains, even an invalid one.
pub(super) fn take_request(
    connection: &mut Connection,
    active: &mut Active,
    consumed: usize,
) -> Pooled<Request> {
    let mut request = blank(connection, active);
    request.traffic.bytes_in = connection.count_received(consumed, active.peeked);
    request.forget_host();
    request.take_head(&mut active.head);
    request
}
