//! A request is forwarded to an HTTP server. Source: `proxy_http_handler`.

use std::io;
use std::time::Duration;

use bstr::BStr;
use rustix::io::Errno;
use server::body::Body;
use server::errors;
use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use server::request::{Proxied, Request};
use wire::response::{
    Framing, ResponseBody, ResponseHead, ResponseParser, ResponseProgress, ResponseRules,
};

use super::failed::{Failed, refuse, timed_out, unanswered};
use super::relay::{Announced, Relay, Source};
use super::request_head::{self, Shape};
use super::{ProxyHttp, answer, interim, upgrade};
use crate::proxy::mod_proxy::backend::{Backend, Options, Place};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::outgoing::{Outgoing, SendError, Wishes};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{BadHeader, fault};

/// Bytes of a head that are read at once.
const READ_BYTES: usize = 8 * 1024;
/// The longest buffers that a loop keeps, bytes.
const KEPT_BYTES: usize = 64 * 1024;
/// How many buffers a loop keeps.
const KEPT: usize = 256;

thread_local! {
    /// This loop's buffers that no exchange makes use of.
    static BUFFERS: rt::Pool<Buffers> = rt::Pool::new("proxied requests", KEPT);
}

/// What an exchange needs until the head of the response is there.
#[derive(Default)]
struct Buffers {
    out: Vec<u8>,
    input: Vec<u8>,
    head: ResponseHead,
    parser: ResponseParser,
}

impl Buffers {
    fn clear(&mut self) {
        self.out.clear();
        self.input.clear();
        self.out.shrink_to(KEPT_BYTES);
        self.input.shrink_to(KEPT_BYTES);
        self.head.clear();
        self.parser.reset();
    }
}

/// What a response's head says of its body.
struct Begun {
    /// Bytes of the head.
    consumed: usize,
    framing: Framing,
    /// The backend has responded instead of saying `100 Continue`.
    is_unsent: bool,
}

/// Who asks the backend for `100 Continue` before the body is sent.
struct Asks {
    /// The client, end to end (`Proxy100Continue`).
    client: bool,
    /// This server (`ping=`).
    ping: Option<Duration>,
}

impl Asks {
    fn of(exchange: &Exchange<'_>, is_http10: bool) -> Asks {
        let forwards = exchange.bound.dir.forwards_continue.or(true);
        let is_reverse = exchange.request.resource.proxied == Proxied::Reverse;
        Asks {
            client: !is_http10 && forwards && exchange.request.body_in.expects_continue(),
            ping: exchange.worker.parameters.ping.filter(|_| !is_http10 && is_reverse),
        }
    }

    fn any(&self) -> bool {
        self.client || self.ping.is_some()
    }

    /// How long the backend may take.
    fn wait(&self, exchange: &Exchange<'_>) -> Option<Duration> {
        Some(self.ping.unwrap_or_else(|| exchange.timeout()))
    }
}

/// Forwards the request and begins the response.
pub(super) async fn serve(mut exchange: Exchange<'_>) -> Verdict {
    match forward(&mut exchange).await {
        Ok(verdict) => verdict,
        Err(status) => Verdict::Status(status),
    }
}

async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    exchange.check_worker()?;
    check_coding(exchange.request)?;
    let busy = Busy::new(&exchange.worker.state);
    let is_http10 = has_variable(exchange.request, b"force-proxy-request-1.0");
    let mut wishes = Wishes::of_variables(exchange.request);
    wishes.length |= is_http10;
    let asks = Asks::of(exchange, is_http10);
    let postponed = asks.any().then(|| Outgoing::postponed(exchange.request, wishes)).flatten();
    let waits = postponed.is_some();
    let mut body = match postponed {
        Some(body) => body,
        None => Outgoing::prefetch(exchange.request, wishes).await?,
    };
    let mut options = options(exchange, is_http10);
    let shape = Shape {
        framing: body.framing(),
        is_http10,
        keeps: options.keeps,
        expects_continue: waits && asks.ping.is_some(),
        waits: if waits { asks.wait(exchange) } else { None },
        upgrade: if is_http10 { None } else { upgrade::asked(exchange) },
    };
    let mut buffers = BUFFERS.with(|pool| pool.take(Buffers::default));
    let (backend, begun) = loop {
        buffers.clear();
        let mut backend = Backend::connect(exchange, options).await?;
        match attempt(exchange, &mut backend, &mut buffers, &mut body, &shape).await {
            Ok(begun) => break (backend, begun),
            Err(Failed::Status(status)) => return Err(status),
            Err(Failed::Unanswered(_))
                if backend.is_reused && body.may_repeat(exchange.request) =>
            {
                // Its server closed it just as the request was sent.
                options.may_reuse = false;
            }
            Err(Failed::Unanswered(errno)) => return Err(unanswered(exchange, errno)),
        }
    };
    check_names(exchange, &buffers)?;
    answer::take(exchange, &buffers.head, &buffers.input);
    if let Some(error) = overridden(exchange) {
        return Err(error);
    }
    if let (101, Some(protocol)) = (exchange.request.response.status, &shape.upgrade) {
        let mut received = buffers.head.preread(&buffers.input).to_vec();
        received.extend_from_slice(buffers.input.get(begun.consumed..).unwrap_or_default());
        buffers.clear();
        upgrade::switch(exchange, protocol, backend, received, busy);
        return Ok(Verdict::Ok);
    }
    let keeps = shape.keeps && !begun.is_unsent && buffers.head.is_persistent(begun.framing);
    let source = Source { backend, keeps, _busy: busy, timeout: exchange.timeout() };
    set_body(exchange.request, &mut buffers, source, &begun);
    buffers.clear();
    Ok(Verdict::Ok)
}

/// Only chunks can be sent on.
fn check_coding(request: &mut Request) -> Result<(), u16> {
    let Some(coding) = request.head.headers_in.get(b"Transfer-Encoding") else { return Ok(()) };
    if coding.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let shown = BStr::new(coding);
    let text = format_args!("{shown} Transfer-Encoding is not supported");
    request.log::<ProxyHttp>(Level::Error, 1093, text);
    request.keep(errors::EndsConnection);
    Err(500)
}

/// Whether all names of fields are tokens (`check_headers`).
fn check_names(exchange: &mut Exchange<'_>, buffers: &Buffers) -> Result<(), u16> {
    let Err(found) = buffers.head.check(&buffers.input) else { return Ok(()) };
    let request = &mut *exchange.request;
    request.log_core(Level::Error, found.log_number(), &found.to_string(), None);
    request.keep(errors::EndsConnection);
    Err(found.status())
}

/// The status of an error document of this server that replaces the response
/// (`ProxyErrorOverride`). The connection is closed, since the rest of the response is not read.
fn overridden(exchange: &mut Exchange<'_>) -> Option<u16> {
    let response = &mut exchange.request.response;
    let status = response.status;
    if !exchange.bound.dir.error_override.get().is_some_and(|set| set.applies(status)) {
        return None;
    }
    if status == 401 {
        let challenges: Vec<Vec<u8>> =
            response.headers_out.get_all(b"WWW-Authenticate").map(<[u8]>::to_vec).collect();
        for challenge in challenges {
            response.err_headers_out.add(b"WWW-Authenticate", &challenge);
        }
    }
    (response.status, response.status_line) = (200, None);
    response.keeps_origin = false;
    Some(status)
}

fn has_variable(request: &Request, name: &[u8]) -> bool {
    !request.env.is_empty() && request.env.contains(name)
}

fn options(exchange: &Exchange<'_>, is_http10: bool) -> Options<'static> {
    let options = Options {
        name: "HTTP",
        module: ProxyHttp::FILE,
        failed: 1114,
        unsent: 1097,
        may_reuse: true,
        keeps: true,
    };
    let mut options = options.for_worker(exchange.worker, true);
    let request = &*exchange.request;
    if is_http10 || has_variable(request, b"proxy-nokeepalive") {
        (options.keeps, options.may_reuse) = (false, false);
    }
    if request.connection.keepalives.get() == 0
        && has_variable(request, b"proxy-initial-not-pooled")
    {
        options.may_reuse = false;
    }
    options
}

/// Sends the request and reads the head of the response.
async fn attempt(
    exchange: &mut Exchange<'_>,
    backend: &mut Backend,
    buffers: &mut Buffers,
    body: &mut Outgoing,
    shape: &Shape,
) -> Result<Begun, Failed> {
    let timeout = exchange.timeout();
    request_head::write(exchange, shape, &mut buffers.out).map_err(|why| {
        let text = format!("{why}");
        Failed::Status(fault::answer::<ProxyHttp>(exchange.request, 400, &text))
    })?;
    body.write_first(&mut buffers.out);
    let sent = match backend.stream.write_all(&buffers.out, timeout).await {
        Ok(()) if shape.waits.is_some() => Ok(()),
        Ok(()) => body.send_rest(exchange.request, &mut backend.stream, timeout).await,
        Err(error) => Err(SendError::Backend(error)),
    };
    let broken = is_broken(exchange, sent)?;
    let outcome = read_head(exchange, backend, buffers, body, shape).await;
    match (outcome, broken) {
        (Err(Failed::Unanswered(_)), Some(errno)) => Err(Failed::Unanswered(Some(errno))),
        (outcome, _) => outcome,
    }
}

/// What a failure to send the body means: the client's ends the request, but the backend may have
/// responded before it stopped reading.
fn is_broken(
    exchange: &Exchange<'_>,
    sent: Result<(), SendError>,
) -> Result<Option<Errno>, Failed> {
    match sent {
        Ok(()) => Ok(None),
        Err(SendError::Backend(error)) => Ok(Errno::from_io_error(&error).or(Some(Errno::IO))),
        Err(SendError::Client(status)) => {
            let place = Place::of(exchange.worker);
            let text = format_args!("pass request body failed to {place}");
            exchange.request.log::<ProxyHttp>(Level::Error, 1097, text);
            Err(Failed::Status(status))
        }
    }
}

/// Reads the head of the final response.
async fn read_head(
    exchange: &mut Exchange<'_>,
    backend: &mut Backend,
    buffers: &mut Buffers,
    body: &mut Outgoing,
    shape: &Shape,
) -> Result<Begun, Failed> {
    let timeout = exchange.timeout();
    let rules = rules(exchange, shape);
    let mut waits = shape.waits;
    let handle = backend.stream.handle();
    loop {
        buffers.input.reserve(READ_BYTES);
        let read = backend
            .stream
            .read(&mut buffers.input, handle.deadline(waits.unwrap_or(timeout)))
            .await;
        let (count, errno) = match read {
            Ok(count) => (count, None),
            // Among the fields it counts as the end of the connection.
            Err(error)
                if error.kind() == io::ErrorKind::TimedOut && !buffers.parser.has_status() =>
            {
                return Err(Failed::Status(timed_out(exchange, waits.is_some())));
            }
            Err(error) => (0, Errno::from_io_error(&error)),
        };
        if count == 0 {
            if !buffers.parser.has_begun() && buffers.input.is_empty() {
                return Err(Failed::Unanswered(errno));
            }
            let found = buffers.parser.end_of_input(rules.dialect);
            return Err(Failed::Status(refuse(exchange, &found)));
        }
        loop {
            let Buffers { input, head, parser, .. } = buffers;
            match parser.parse(head, input, &rules) {
                ResponseProgress::NeedMore => break,
                ResponseProgress::Interim { consumed } => {
                    let says_continue = head.status == 100;
                    interim::forward(exchange.request, head, input);
                    input.drain(..consumed);
                    head.clear();
                    parser.next();
                    if says_continue && waits.take().is_some() {
                        // Reading it tells the client to continue, if that waits.
                        let stream = &mut backend.stream;
                        let sent = body.send_rest(exchange.request, stream, timeout).await;
                        is_broken(exchange, sent)?;
                    }
                }
                ResponseProgress::Done { consumed } => {
                    let framing = head.framing(input, exchange.request.head.header_only);
                    let framing =
                        framing.map_err(|found| Failed::Status(refuse(exchange, &found)))?;
                    return Ok(Begun { consumed, framing, is_unsent: waits.is_some() });
                }
                ResponseProgress::Refused(found) => {
                    if matches!(*found, wire::response::Fault::TooManyInterims(_)) {
                        // The client has got it by then.
                        interim::forward(exchange.request, head, input);
                    }
                    return Err(Failed::Status(refuse(exchange, &found)));
                }
            }
        }
    }
}

fn rules<'s>(exchange: &Exchange<'_>, shape: &'s Shape) -> ResponseRules<'s> {
    let default = ResponseRules::default();
    ResponseRules {
        line_bytes: exchange.worker.parameters.response_field.unwrap_or(default.line_bytes),
        bad_header: match exchange.bound.server.bad_header.or(BadHeader::IsError) {
            BadHeader::IsError => wire::response::BadHeader::IsError,
            BadHeader::Ignore => wire::response::BadHeader::Ignore,
            BadHeader::StartBody => wire::response::BadHeader::StartBody,
        },
        is_forward: exchange.request.resource.proxied == Proxied::Forward,
        upgrade: shape.upgrade.as_deref(),
        ..default
    }
}

/// Sets the body: nothing, what has been received, or a relay of the rest.
fn set_body(request: &mut Request, buffers: &mut Buffers, source: Source, begun: &Begun) {
    let Buffers { head, input, .. } = buffers;
    let length = match begun.framing {
        Framing::Length(length) => Some(length),
        _ => None,
    };
    let core = &request.host.core;
    let mut body = ResponseBody::new(core.head_limits(), core.strict_protocol());
    body.start(begun.framing);
    let mut rest = head.preread(input).to_vec();
    rest.extend_from_slice(input.get(begun.consumed..).unwrap_or_default());
    let about = (request.engine.clone(), request.connection.clone());
    let announced = announced(request, begun.framing);
    let mut relay = Relay::new(source, length, body, rest, about);
    let response = &mut request.response;
    response.chunked = matches!(begun.framing, Framing::Chunked | Framing::UntilClose);
    response.body = match (relay.take_whole(), announced) {
        (Some(_), Some(length)) => Body::Stream(Box::pin(Announced(length))),
        (Some(whole), None) if whole.is_empty() => Body::Empty,
        (Some(whole), None) => Body::Bytes(whole),
        (None, _) => Body::Stream(Box::pin(relay)),
    };
}

/// The length that the head of a response to HEAD tells.
fn announced(request: &Request, framing: Framing) -> Option<u64> {
    let value = request.response.headers_out.get(b"Content-Length")?;
    (framing == Framing::None).then(|| wire::chars::decimal(value)).flatten()
}
