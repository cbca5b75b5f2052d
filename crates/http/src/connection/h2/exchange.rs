//! A request on a stream: host, phases, filters, response, log.

use std::cell::{Cell, OnceCell};
use std::io;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use rt::Pooled;
use server::connection_info::{ConnectionInfo, KeepAlive};
use server::engine::Doing;
use server::errors;
use server::filter;
use server::hooks::{Phase, Verdict};
use server::process;
use server::request::{Request, Unhosted};
use wire::priority::Priority;
use wire::{HeadError, HeadFlags, RequestHead};

use super::stream::Stream;
use super::{push, request_body, respond, tunnel};
use crate::cache::response::Fill;
use crate::connection::fast::{self, FastPath};
use crate::connection::{Active, Connection, fill, requests};
use crate::respond::finish_headers;

/// Releases a stream once its request has been served, even if that panics.
struct Serving {
    stream: Rc<Stream>,
    _counted: Doing,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let Stream { id, shared, .. } = &*self.stream;
        shared.remove(*id);
        shared.protocol.borrow_mut().release(*id);
        shared.responses.set(shared.responses.get() + 1);
        shared.wake();
    }
}

/// The parts of a connection that the phases of HTTP/1 use, without a socket.
struct Exchange {
    stream: Rc<Stream>,
    connection: Connection,
    active: Pooled<Active>,
    _serving: Serving,
}

impl Exchange {
    fn new(stream: Rc<Stream>, mut head: Box<RequestHead>) -> Exchange {
        let service = stream.shared.service.clone();
        let mut active = service.stream_actives.take(Active::new);
        // A later request has the memory of this one's predecessor.
        std::mem::swap(&mut active.head, &mut *head);
        stream.shared.protocol.borrow_mut().spare.give(head);
        let connection = Connection::without_stream(service, info(&stream));
        let _counted = stream.shared.service.connections.stream();
        let _serving = Serving { stream: stream.clone(), _counted };
        Exchange { _serving, stream, connection, active }
    }
}

/// The connection as one of its requests sees it (Apache's secondary connection).
fn info(stream: &Stream) -> ConnectionInfo {
    let of = &stream.shared.info;
    ConnectionInfo {
        id: of.id,
        peer: of.peer,
        local: of.local,
        base_host: of.base_host.clone(),
        tls: of.tls.clone(),
        keepalives: Cell::new(0),
        bytes_sent: Cell::new(0),
        aborted: Cell::new(false),
        keepalive: Cell::new(KeepAlive::Close),
        names: of.names.get().map_or_else(OnceCell::new, |names| OnceCell::from(names.clone())),
        logname: of.logname.clone(),
        log_id: Cell::new(of.log_id.get()),
        stream: NonZeroU32::new(stream.id),
        proxied: of.proxied.clone(),
        interim: Cell::default(),
        pushing: Cell::default(),
    }
}

/// Serves a request.
pub(super) async fn serve(
    stream: Rc<Stream>,
    head: Box<RequestHead>,
    refusal: Option<Box<HeadError>>,
) {
    let mut exchange = Exchange::new(stream, head);
    exchange.serve(refusal).await;
    exchange.active.reset();
}

impl Exchange {
    async fn serve(&mut self, refusal: Option<Box<HeadError>>) {
        let Exchange { stream, connection, active, .. } = self;
        let active: &mut Active = active;
        stream.shared.places.borrow_mut().give(active);
        let mut request = requests::blank(connection, active);
        let found = request.find_host(&mut active.host, &mut active.head, &mut active.known);
        stream.shared.places.borrow_mut().take(active);
        request.take_head(&mut active.head);
        if request.head.flags.has(HeadFlags::PRIORITY)
            && let Some(value) = request.head.headers_in.get(b"Priority")
        {
            stream.priority.set(Priority::parse(value));
        }
        push::begin(stream, &request);
        let unhosted = match refusal {
            Some(error) => Some(Unhosted::Invalid(error)),
            None => found.err(),
        };
        if let Some(unhosted) = unhosted {
            return Box::pin(self.refuse(request, unhosted)).await;
        }
        let mut verdict = Verdict::Ok;
        if !request.plan.phase(Phase::PostReadRequest).is_empty() {
            verdict = process::run_all(&mut request, Phase::PostReadRequest).await;
            request.depends.pure = request.is_untouched();
        }
        let mut fill = Fill::None;
        let may_be_cached = fast::is_cacheable(active);
        if verdict == Verdict::Ok && request.depends.pure && may_be_cached {
            match fast::find(connection, active, &request) {
                FastPath::Ready(reply) => {
                    let outcome = respond::cached(stream, &mut request, &reply).await;
                    let has_log = fast::note(&mut request, &reply);
                    self.log(&mut request, &outcome, has_log).await;
                    request.renew();
                    return;
                }
                FastPath::Miss => fill = fill::begin(connection, active, &mut request),
                FastPath::Unsuitable => {}
            }
        }
        Box::pin(self.full(request, verdict, fill)).await;
    }

    /// Refuses a request, unless a hook responds to it earlier.
    async fn refuse(&mut self, mut request: Pooled<Request>, unhosted: Unhosted) {
        let error = match unhosted {
            Unhosted::Invalid(error) => error,
            Unhosted::Misdirected(error) => match process::run_before_tls(&mut request).await {
                Verdict::Ok | Verdict::Declined => error,
                decided => return self.full(request, decided, Fill::None).await,
            },
        };
        let Exchange { connection, active, .. } = self;
        requests::make_refusal(connection, active, &mut request, &error).await;
        self.finish(request).await;
    }

    /// Runs all phases.
    async fn full(&mut self, mut request: Pooled<Request>, verdict: Verdict, fill: Fill) {
        let Exchange { stream, connection, active, .. } = self;
        request_body::attach(stream, &active.head, &mut request);
        push::keep_origin(stream, &request);
        let verdict = match verdict {
            Verdict::Ok => {
                let info = connection.info.clone();
                let mut work = std::pin::pin!(process::process(&mut request));
                std::future::poll_fn(|cx| poll_with_interim(work.as_mut(), cx, stream, &info)).await
            }
            decided => decided,
        };
        if let Verdict::Status(status) = verdict {
            request.depends.pure &= errors::is_reusable(&request, status);
            errors::die(&mut request, status).await;
        }
        let is_websocket = request.head.flags.has(HeadFlags::UPGRADE);
        if is_websocket && let Some(tunnel) = request.response.tunnel.take() {
            let outcome = tunnel::run(stream, &mut request, *tunnel).await;
            let has_log = !request.plan.phase(Phase::LogTransaction).is_empty();
            self.log(&mut request, &outcome, has_log).await;
            request.renew();
            return;
        }
        if is_websocket && (200..300).contains(&request.response.status) && verdict == Verdict::Ok {
            // The handler has not become one (`h2_ws`).
            errors::die(&mut request, 502).await;
        }
        if request.response.tunnel.take().is_some() || request.response.passing.take().is_some() {
            // The socket is that of all streams.
            errors::die(&mut request, 501).await;
        }
        if request.response.reads_request && !matches!(verdict, Verdict::Status(_)) {
            request_body::continue_first(stream);
        } else {
            request_body::detach(stream, &mut request);
        }
        fill::conclude(connection, active, &mut request, fill).await;
        self.finish(request).await;
    }

    /// Sends and logs a response.
    async fn finish(&mut self, mut request: Pooled<Request>) {
        filter::apply_all(&mut request).await;
        let framing = finish_headers(&mut request, true).await;
        let outcome = respond::made(&self.stream, &mut request, framing).await;
        request_body::detach(&self.stream, &mut request);
        if request.handler_of_type {
            request.handler = None;
        }
        errors::restore_methods(&mut request);
        request.take_late_variables();
        let has_log = !request.plan.phase(Phase::LogTransaction).is_empty();
        self.log(&mut request, &outcome, has_log).await;
        request.renew();
    }

    /// Counts a response, and runs the hooks of the log if the plan has any.
    async fn log(&mut self, request: &mut Request, outcome: &io::Result<()>, has_log: bool) {
        let stream = &self.stream;
        request.traffic.bytes_in += stream.received.get();
        request.traffic.bytes_out = stream.sent.get();
        request.connection.bytes_sent.set(stream.sent.get());
        request.connection.aborted.set(outcome.is_err());
        request.connection.keepalive.set(KeepAlive::Close);
        // As in Apache, `%k` is 1.
        request.connection.keepalives.set(2);
        request.response.take_late_trailers();
        if has_log {
            process::run_all(request, Phase::LogTransaction).await;
        }
        if let Some(names) = request.connection.names.get() {
            let _ = stream.shared.info.names.set(names.clone());
        }
        let engine = &self.connection.engine;
        engine.count(request);
    }
}

/// Polls the phases of a request, and sends the interim responses that they leave.
fn poll_with_interim<F: Future>(
    work: Pin<&mut F>,
    cx: &mut Context<'_>,
    stream: &Stream,
    info: &ConnectionInfo,
) -> Poll<F::Output> {
    let polled = work.poll(cx);
    let waiting = info.interim.take();
    if !waiting.is_empty() {
        respond::interim(stream, info.pushing.get().is_declined, &waiting);
    }
    polled
}
