//! A request is forwarded to an HTTP server. Source: `proxy_http_handler`.

use std::cell::Cell;
use std::io;

use rt::Pooled;
use rustix::io::Errno;
use server::errorlog::Verbatim;
use server::errors;
use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use server::request::{Proxied, Request};
use wire::response::{
    FieldName, Framing, ResponseHead, ResponseParser, ResponseProgress, ResponseRules,
};

use super::asks::Asks;
use super::failed::{Failed, not_taken, refuse, timed_out, unanswered};
use super::request_head::{self, Shape};
use super::{ProxyHttp, answer, body, interim, upgrade};
use crate::proxy::mod_proxy::backend::{Backend, FailedTells, Options};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::failover;
use crate::proxy::mod_proxy::outgoing::{Outgoing, SendError, Wishes};
use crate::proxy::mod_proxy::relay::Source;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::tls::is_tls;
use crate::proxy::mod_proxy::{BadHeader, fault};

/// Bytes of a head that are read at once.
const READ_BYTES: usize = 8 * 1024;
/// The longest buffers that a loop keeps, bytes.
const KEPT_BYTES: usize = 64 * 1024;
/// How many buffers a loop keeps.
const KEPT: usize = 256;

thread_local! {
    /// This loop's buffers that no exchange makes use of. An exchange has some only while it sends
    /// or receives: the same ones serve all exchanges of a turn, and stay in the processor's cache.
    static BUFFERS: rt::Pool<Buffers> = rt::Pool::new("proxied requests", KEPT);
    /// The head of the request that is being sent.
    static OUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What an exchange needs from the first byte of the response until its head is there.
#[derive(Default)]
struct Buffers {
    input: Vec<u8>,
    head: ResponseHead,
    parser: ResponseParser,
}

impl Buffers {
    /// Empty ones.
    fn take() -> Pooled<Buffers> {
        let mut buffers = BUFFERS.with(|pool| pool.take(Buffers::default));
        buffers.input.clear();
        buffers.input.shrink_to(KEPT_BYTES);
        buffers.head.clear();
        buffers.parser.reset();
        buffers
    }
}

/// A response whose head has been read.
struct Begun {
    buffers: Pooled<Buffers>,
    /// Bytes of the head.
    consumed: usize,
    framing: Framing,
    /// The backend has responded without having got the whole body: instead of saying `100
    /// Continue`, or while it was being sent. What follows it would be taken for the rest.
    is_unsent: bool,
}

/// Forwards the request and begins the response.
pub(in crate::proxy) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    exchange.check_worker()?;
    check_coding(exchange.request)?;
    let busy = Busy::new(&exchange.worker.state);
    let is_http10 = has_variable(exchange.request, b"force-proxy-request-1.0");
    let mut wishes = Wishes::of_variables(exchange.request);
    wishes.length |= is_http10;
    let asks = Asks::of(exchange, is_http10);
    let postponed = asks.any().then(|| Outgoing::postponed(exchange.request, wishes)).flatten();
    let waits = postponed.is_some();
    let body = match postponed {
        Some(body) => body,
        None => Outgoing::prefetch(exchange.request, wishes).await?,
    };
    let options = options(exchange, is_http10);
    let shape = Shape {
        framing: body.framing(),
        is_http10,
        keeps: options.keeps,
        // Of a request without a body, too, whose client waits for the backend's word.
        expects_continue: waits || asks.client,
        waits: if waits { asks.wait(exchange) } else { None },
        upgrade: if is_http10 { None } else { upgrade::asked(exchange) },
    };
    let (backend, begun) = ask(exchange, options, body, &shape).await?;
    let Buffers { head, input, .. } = &*begun.buffers;
    answer::check_names(exchange, head, input)?;
    if head.has(FieldName::TransferEncoding) && head.has(FieldName::ContentLength) {
        let place = exchange.shown_place();
        let text = format_args!("server {place} returned Transfer-Encoding and Content-Length");
        exchange.request.log::<ProxyHttp>(Level::Debug, 1107, text);
    }
    let original = answer::take(exchange, head, input);
    exchange.note_status();
    if let Some(error) = answer::overridden(exchange) {
        return Err(error);
    }
    if let (101, Some(asked)) = (exchange.request.response.status, &shape.upgrade) {
        // The backend's own spelling of the protocol, which is the one that was asked for.
        let told = head.first(FieldName::Upgrade).map(|field| field.value(input).into_owned());
        let protocol = told.as_ref().unwrap_or(asked);
        let mut received = head.preread(input).to_vec();
        received.extend_from_slice(input.get(begun.consumed..).unwrap_or_default());
        upgrade::switch(exchange, protocol, backend, received, busy);
        return Ok(Verdict::Ok);
    }
    original.restore(exchange);
    let keeps = shape.keeps && !begun.is_unsent && head.is_persistent(begun.framing);
    let source = Source::new(exchange, (backend, busy), ProxyHttp::FILE, keeps);
    body::set(exchange.request, (head, input, begun.consumed), source, begun.framing)?;
    Ok(Verdict::Ok)
}

/// Sends the request and reads the head of the response: once more on a new connection if a kept
/// one has ended.
async fn ask(
    exchange: &mut Exchange<'_>,
    mut options: Options<'_>,
    mut body: Outgoing,
    shape: &Shape,
) -> Result<(Backend, Begun), u16> {
    loop {
        let mut backend = match Backend::connect(exchange, options).await {
            Ok(backend) => backend,
            Err(status) => {
                body.keep(exchange.request);
                return Err(status);
            }
        };
        let errno = match attempt(exchange, &mut backend, &mut body, shape).await {
            Ok(begun) => return Ok((backend, begun)),
            Err(Failed::Status(status)) => {
                if status == 503 {
                    // Nothing of the body was sent before `100 Continue`.
                    body.keep(exchange.request);
                }
                return Err(status);
            }
            Err(Failed::Unanswered(errno)) => errno,
        };
        let may_repeat = body.may_repeat(exchange.request);
        if backend.is_reused && may_repeat {
            // Its server closed it just as the request was sent.
            options.may_reuse = false;
            exchange.count_repeat();
            continue;
        }
        let status = unanswered(exchange, errno);
        if may_repeat && exchange.worker.is_member {
            failover::allow(exchange.request, body);
        }
        return Err(status);
    }
}

/// Only chunks can be sent on.
fn check_coding(request: &mut Request) -> Result<(), u16> {
    let Some(coding) = request.head.headers_in.get(b"Transfer-Encoding") else { return Ok(()) };
    if coding.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let shown = Verbatim::new(coding);
    let text = format_args!("{shown} Transfer-Encoding is not supported");
    request.log::<ProxyHttp>(Level::Error, 1093, text);
    request.keep(errors::EndsConnection);
    Err(500)
}

fn has_variable(request: &Request, name: &[u8]) -> bool {
    !request.env.is_empty() && request.env.contains(name)
}

fn options(exchange: &Exchange<'_>, is_http10: bool) -> Options<'static> {
    let options = Options {
        name: "HTTP",
        module: ProxyHttp::FILE,
        failed: Some(1114),
        failed_tells: FailedTells::Scheme,
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
    body: &mut Outgoing,
    shape: &Shape,
) -> Result<Begun, Failed> {
    let timeout = exchange.timeout();
    exchange.note_port(&backend.stream);
    let mut out = OUT.take();
    out.clear();
    let sent = match request_head::write(exchange, shape, &mut out) {
        Ok(()) => {
            body.write_first(exchange.request, &mut out);
            backend.stream.write_all(&out, timeout).await
        }
        Err(why) => {
            OUT.set(out);
            let status = fault::answer(exchange.request, 400, format!("{why}"));
            return Err(Failed::Status(status));
        }
    };
    exchange.count_sent(out.len() as u64);
    out.shrink_to(KEPT_BYTES);
    OUT.set(out);
    let sent = match sent {
        Ok(()) if shape.waits.is_some() => Ok(0),
        Ok(()) => body.send_rest(exchange.request, &mut backend.stream, timeout).await,
        Err(error) => Err(SendError::Backend(error)),
    };
    let broken = is_broken(exchange, sent)?;
    let outcome = read_head(exchange, backend, body, shape).await;
    match (outcome, broken) {
        (Err(Failed::Unanswered(_)), Some(errno)) => Err(Failed::Unanswered(Some(errno))),
        (Ok(begun), Some(_)) => Ok(Begun { is_unsent: true, ..begun }),
        (outcome, _) => outcome,
    }
}

/// What a failure to send the body means: the client's ends the request, but the backend may have
/// responded before it stopped reading.
fn is_broken(
    exchange: &Exchange<'_>,
    sent: Result<u64, SendError>,
) -> Result<Option<Errno>, Failed> {
    match sent {
        Ok(bytes) => {
            exchange.count_sent(bytes);
            Ok(None)
        }
        Err(SendError::Backend(error)) if error.kind() == io::ErrorKind::TimedOut => {
            Err(Failed::Status(not_taken(exchange)))
        }
        Err(SendError::Backend(error)) => match Errno::from_io_error(&error) {
            Some(errno @ (Errno::PIPE | Errno::CONNRESET)) => Ok(Some(errno)),
            errno => Err(Failed::Unanswered(errno.or(Some(Errno::IO)))),
        },
        Err(SendError::Client(status)) => {
            let place = exchange.shown_place();
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
    body: &mut Outgoing,
    shape: &Shape,
) -> Result<Begun, Failed> {
    let timeout = exchange.timeout();
    let rules = rules(exchange, shape);
    let mut waits = shape.waits;
    let mut is_cut = false;
    let handle = backend.stream.handle();
    let mut deadline = handle.deadline(waits.unwrap_or(timeout));
    let sent = exchange.moment_us();
    // Without buffers. What it finds, the read finds again.
    let is_there = backend.stream.readable(deadline).await.is_ok();
    exchange.count_response(sent.filter(|_| is_there));
    let mut buffers = Buffers::take();
    loop {
        buffers.input.reserve(READ_BYTES);
        let read = backend.stream.read(&mut buffers.input, deadline).await;
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
            return Err(ended(exchange, &buffers, &rules, errno));
        }
        loop {
            let Buffers { input, head, parser } = &mut *buffers;
            match parser.parse(head, input, &rules) {
                ResponseProgress::NeedMore => break,
                ResponseProgress::Interim { consumed } => {
                    count_status_line(exchange, input);
                    interim::forward(exchange, head, input);
                    if head.status == 100 && waits.take().is_some() {
                        // Reading it tells the client to continue, if that waits.
                        let stream = &mut backend.stream;
                        let sent = body.send_rest(exchange.request, stream, timeout).await;
                        is_cut = is_broken(exchange, sent)?.is_some();
                    }
                    input.drain(..consumed);
                    head.clear();
                    parser.next();
                }
                ResponseProgress::Done { consumed } => {
                    count_status_line(exchange, input);
                    let framing = head
                        .framing(input, exchange.request.head.header_only)
                        .map_err(|found| Failed::Status(refuse(exchange, &found)))?;
                    let is_unsent = is_cut || waits.is_some();
                    return Ok(Begun { buffers, consumed, framing, is_unsent });
                }
                ResponseProgress::Refused(found) => {
                    if matches!(*found, wire::response::Fault::TooManyInterims(_)) {
                        // The client has got it by then.
                        interim::forward(exchange, head, input);
                    }
                    return Err(Failed::Status(refuse(exchange, &found)));
                }
            }
        }
        deadline = handle.deadline(waits.unwrap_or(timeout));
    }
}

/// What the end of the connection means before that of the head.
fn ended(
    exchange: &mut Exchange<'_>,
    buffers: &Buffers,
    rules: &ResponseRules<'_>,
    errno: Option<Errno>,
) -> Failed {
    if !buffers.parser.has_begun() && buffers.input.is_empty() {
        return Failed::Unanswered(errno);
    }
    let found = buffers.parser.end_of_input(rules.dialect);
    Failed::Status(refuse(exchange, &found))
}

/// Apache counts status lines as bytes received, but no fields.
fn count_status_line(exchange: &Exchange<'_>, input: &[u8]) {
    if exchange.worker.is_member {
        let line = input.split(|byte| *byte == b'\n').next().unwrap_or_default();
        exchange.worker.state.count_read(line.trim_ascii_end().len() as u64);
    }
}

/// Whether a remote proxy responds to the client of a forward proxy. What comes through a tunnel is
/// the response of the server itself.
fn is_of_proxy(exchange: &Exchange<'_>) -> bool {
    let is_forward = exchange.request.resource.proxied == Proxied::Forward;
    exchange.remote.is_some() && is_forward && !is_tls(exchange.url)
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
        is_of_proxy: is_of_proxy(exchange),
        upgrade: shape.upgrade.as_deref(),
        ..default
    }
}
