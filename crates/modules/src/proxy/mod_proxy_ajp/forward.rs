//! Forwards a request, and puts the head of its response into the request.
//!
//! Source: `proxy_ajp_handler`, `ap_proxy_ajp_request`.

use server::body::Body;
use server::errorlog::Verbatim;
use server::errors::EndsConnection;
use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use server::request::Request;
use wire::ajp::SendHeaders;

use super::body::PacketBody;
use super::conversation::{Broken, Conversation, Said};
use super::failed::{self, Log};
use super::rest::Rest;
use super::{ProxyAjp, head, ping, request_packet};
use crate::proxy::mod_proxy::ahead::Ahead;
use crate::proxy::mod_proxy::backend::{Backend, FailedTells, Options};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::failover::OVERRIDDEN;
use crate::proxy::mod_proxy::outgoing::{Outgoing, spool};
use crate::proxy::mod_proxy::relay::Unsent;
use crate::proxy::mod_proxy::scheme::Exchange;

/// Most bytes of a response that are read while the request's body is still to come.
const EARLY_BYTES: usize = 1 << 20;
/// How often a connection is tried that must answer a ping.
const PINGED: u32 = 2;

const OPTIONS: Options<'static> = Options {
    name: "AJP",
    module: <ProxyAjp as Module>::FILE,
    failed: Some(896),
    failed_tells: FailedTells::Host,
    unsent: 868,
    may_reuse: true,
    keeps: true,
};

pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    let url = Verbatim::new(exchange.url);
    exchange.request.log::<ProxyAjp>(Level::Debug, 895, format_args!("serving URL {url}"));
    exchange.check_worker()?;
    let mut options = OPTIONS.for_worker(exchange.worker, true);
    check_coding(exchange.request)?;
    let mut body = Outgoing::unread(exchange.request);
    loop {
        let busy = Busy::new(&exchange.worker.state);
        let backend = match connect(exchange, options).await {
            Ok(backend) => backend,
            Err(status) => {
                body.keep(exchange.request);
                return Err(status);
            }
        };
        let is_reused = backend.is_reused;
        let may_repeat = is_reused && body.may_repeat(exchange.request);
        let mut dialog = Dialog::begin(exchange, (backend, busy), body).await?;
        let sent = exchange.moment_us();
        let Err(why) = dialog.read_head(exchange).await else {
            exchange.count_response(sent);
            return dialog.respond(exchange);
        };
        let Dialog { mut conversation, log, sent_first, .. } = dialog;
        let has_answered = conversation.has_answered;
        let unsent = conversation.body.take_unsent();
        if may_repeat
            && !has_answered
            && !why.is_timeout()
            && !why.is_of_client()
            && let Some(again) = unsent
        {
            // The container has closed a connection that was kept.
            (options.may_reuse, body) = (false, again);
            exchange.count_repeat();
            continue;
        }
        // As in Apache, a client that does not even send the first part is none of the dialog.
        if !why.is_of_client() || !sent_first || conversation.body_bytes > 0 {
            log.broken(&why, &conversation);
        }
        if let Some(unsent) = unsent {
            unsent.keep(exchange.request);
        }
        return Err(failed::status(exchange, &why, (sent_first, has_answered)));
    }
}

/// Takes a connection whose container answers a ping, if that is configured (`ping=`).
async fn connect(exchange: &mut Exchange<'_>, mut options: Options<'_>) -> Result<Backend, u16> {
    for _ in 0..PINGED {
        let mut backend = Backend::connect(exchange, options).await?;
        let Some(timeout) = exchange.worker.parameters.ping else { return Ok(backend) };
        let Err(why) = ping::ping(&mut backend.stream, timeout).await else { return Ok(backend) };
        Log::of(exchange).unanswered_ping(&why, &backend.stream);
        options.may_reuse = false;
    }
    Err(503)
}

/// Only chunks can be sent on. The container gets nothing, where Apache sends the head.
fn check_coding(request: &mut Request) -> Result<(), u16> {
    let Some(coding) = request.head.headers_in.get(b"Transfer-Encoding") else { return Ok(()) };
    if coding.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let text = format_args!("{} Transfer-Encoding is not supported", Verbatim::new(coding));
    request.log::<ProxyAjp>(Level::Error, 10396, text);
    request.keep(EndsConnection);
    Err(500)
}

/// Whether the first part of the body goes out unasked: its length is known.
fn sends_first(request: &Request) -> bool {
    !request.head.headers_in.contains(b"Transfer-Encoding")
        && request.body_in.length().is_some_and(|length| length > 0)
}

/// A conversation up to the response's head and the beginning of its body.
struct Dialog {
    conversation: Conversation,
    log: Log,
    sent_first: bool,
    has_head: bool,
    /// Whether the response is to be replaced (`ProxyErrorOverride`).
    is_replaced: bool,
    /// Whether there is a body that is not passed on, for HEAD.
    has_unsent: bool,
    output: Vec<u8>,
    flushes: bool,
    /// The response is complete; the connection can be used again, or not.
    ended: Option<bool>,
}

impl Dialog {
    async fn begin(
        exchange: &mut Exchange<'_>,
        (backend, busy): (Backend, Busy),
        body: Outgoing,
    ) -> Result<Dialog, u16> {
        let log = Log::of(exchange);
        let packet = match request_packet::write(exchange).await {
            Ok(packet) => packet,
            Err(why) => {
                log.overflow(&why, &backend.stream);
                return Err(failed::overflow_status(exchange.request, &why));
            }
        };
        let packet_bytes = request_packet::packet_bytes(exchange);
        let sent_first = sends_first(exchange.request);
        let body = (PacketBody::new(exchange.request, body, packet_bytes), sent_first);
        let timeout = exchange.timeout();
        Ok(Dialog {
            conversation: Conversation::new((backend, busy), timeout, packet, body, packet_bytes),
            log,
            sent_first,
            has_head: false,
            is_replaced: false,
            has_unsent: false,
            output: Vec::new(),
            flushes: false,
            ended: None,
        })
    }

    /// Reads until the response can begin: the head, and a part of the body or the end; and until
    /// all of the request's body is there.
    async fn read_head(&mut self, exchange: &mut Exchange<'_>) -> Result<(), Broken> {
        loop {
            match self.next(exchange).await? {
                Said::Head => {
                    self.has_head = true;
                    let status = exchange.request.response.status;
                    let replaced = exchange.bound.dir.error_override.get();
                    self.is_replaced = replaced.is_some_and(|replaced| replaced.has(status));
                }
                // What asks to flush before the head asks for nothing.
                Said::Body(range) if !self.has_head && range.is_empty() => {}
                Said::Body(_) if self.is_replaced => {}
                Said::Body(range) if exchange.request.head.header_only => {
                    self.has_unsent |= !range.is_empty();
                }
                Said::Body(range) => {
                    self.flushes |= range.is_empty();
                    self.output.extend_from_slice(self.conversation.bytes(range));
                    if !self.conversation.body.needs_client() {
                        return Ok(());
                    }
                    if self.output.len() >= EARLY_BYTES {
                        return self.spool(exchange).await;
                    }
                }
                Said::End { reuse } => {
                    self.ended = Some(reuse);
                    return Ok(());
                }
            }
        }
    }

    async fn next(&mut self, exchange: &mut Exchange<'_>) -> Result<Said, Broken> {
        let bound = exchange.bound;
        let request = &mut *exchange.request;
        // The body is apart while the head is put.
        let mut body_in = std::mem::take(&mut request.body_in);
        let said = std::future::poll_fn(|cx| {
            let mut on_head = |found: &SendHeaders<'_>| head::put(request, bound, found);
            self.conversation.poll_said(cx, Some(&mut body_in), &mut on_head)
        })
        .await;
        exchange.request.body_in = body_in;
        said
    }

    /// Reads the rest of the request's body, so that the response can go on without the client.
    async fn spool(&mut self, exchange: &mut Exchange<'_>) -> Result<(), Broken> {
        let spooled = spool(exchange.request).await;
        let (file, length) = spooled.map_err(Broken::Unread)?;
        self.conversation.body.set_spooled(file, length);
        Ok(())
    }

    fn respond(self, exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
        exchange.count_sent(self.conversation.body_bytes);
        let limits = exchange.spool_limits();
        let request = &mut *exchange.request;
        let status = request.response.status;
        if self.is_replaced && self.ended == Some(true) {
            request.response.status = 200;
            request.response.keeps_origin = false;
            if status == 401 {
                keep_challenge(request);
            }
            request.notes.set(OVERRIDDEN, b"1");
            self.conversation.end(true);
            return Err(status);
        }
        let Dialog { conversation, log, output, flushes, ended, has_unsent, .. } = self;
        if let Some(reuse) = ended {
            conversation.end(reuse);
            if output.is_empty() {
                request.response.body = match has_unsent {
                    true => Body::Stream(Box::pin(Unsent::something())),
                    false => Body::Empty,
                };
                return Ok(Verdict::Ok);
            }
            let rest =
                Rest { first: output.into(), conversation: None, flushes, is_broken: false, log };
            request.response.body = Body::Stream(Box::pin(rest));
            return Ok(Verdict::Ok);
        }
        let conversation = Some(conversation);
        let rest = Rest { first: output.into(), conversation, flushes, is_broken: false, log };
        request.response.body = Ahead::body(rest, &request.engine, limits);
        Ok(Verdict::Ok)
    }
}

/// The container's challenge goes with the page that replaces its own.
fn keep_challenge(request: &mut Request) {
    let response = &mut request.response;
    match response.headers_out.get(b"WWW-Authenticate").map(<[u8]>::to_vec) {
        Some(challenge) => response.err_headers_out.set(b"WWW-Authenticate", &challenge),
        None => {
            let text = format_args!(
                "ap_proxy_ajp_request: origin server sent 401 without WWW-Authenticate header"
            );
            request.log::<ProxyAjp>(Level::Debug, 885, text);
        }
    }
}
