//! Forwards a request, and puts the head of its response into the request.
//!
//! Source: `proxy_http2_handler`, `h2_proxy_session_process`.

use std::task::Poll;

use bytes::Bytes;
use server::body::Body;
use server::hooks::Verdict;
use server::module::Module;
use server::request::{LateTrailers, Request};

use super::body::RequestBody;
use super::conversation::{Broken, Conversation, Said};
use super::failed::{self, Log};
use super::request_head::RequestHead;
use super::rest::Rest;
use super::{ProxyHttp2, head};
use crate::proxy::mod_proxy::ahead::Ahead;
use crate::proxy::mod_proxy::backend::{Backend, FailedTells, Options};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::failover::OVERRIDDEN;
use crate::proxy::mod_proxy::outgoing::Outgoing;
use crate::proxy::mod_proxy::relay::{Announced, Unsent};
use crate::proxy::mod_proxy::scheme::Exchange;

/// Further connections that a request is tried on, if that does no harm.
const REPEATS: u32 = 1;

/// The most of a response that is thrown away so that its connection can be kept, bytes.
const DISCARDED_BYTES: usize = 64 * 1024;

const OPTIONS: Options<'static> = Options {
    name: "H2",
    module: <ProxyHttp2 as Module>::FILE,
    failed: Some(3352),
    failed_tells: FailedTells::AtDebug,
    unsent: 3351,
    may_reuse: true,
    keeps: true,
};

/// A response of which the head has arrived.
struct Begun {
    conversation: Conversation,
    has_ended: bool,
    length: Option<u64>,
}

pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    exchange.check_worker()?;
    let mut options = OPTIONS.for_worker(exchange.worker, true);
    options.name = if exchange.url.starts_with(b"h2c:") { "H2C" } else { "H2" };
    let head = RequestHead::of(exchange);
    let mut body = Outgoing::unread(exchange.request);
    let mut repeats = 0;
    loop {
        let busy = Busy::new(&exchange.worker.state);
        let backend = match Backend::connect(exchange, options).await {
            Ok(backend) => backend,
            Err(_) => {
                body.keep(exchange.request);
                // Whatever the reason, as in Apache.
                exchange.request.response.status_line = None;
                return Err(503);
            }
        };
        exchange.note_port(&backend.stream);
        let may_repeat = body.may_repeat(exchange.request);
        let method = exchange.request.head.method_name.clone();
        let timeout = exchange.timeout();
        let request_body = RequestBody::new(body);
        let Some(mut conversation) =
            Conversation::begin((backend, busy), timeout, (&method, &head), request_body)
        else {
            body = Outgoing::unread(exchange.request);
            options.may_reuse = false;
            continue;
        };
        conversation.waits_for_continue = exchange.request.body_in.expects_continue();
        let sent = exchange.moment_us();
        let why = match read_head(exchange, &mut conversation).await {
            Ok((has_ended, length)) => {
                exchange.count_response(sent);
                exchange.count_sent(conversation.body_bytes);
                return respond(exchange, Begun { conversation, has_ended, length }).await;
            }
            Err(why) => why,
        };
        let has_answered = conversation.has_answered;
        let unsent = conversation.body.into_unsent();
        let may_repeat = why.is_unprocessed() || may_repeat && !has_answered;
        let is_client = matches!(why, Broken::Client(_));
        match unsent {
            Some(again) if may_repeat && !is_client && repeats < REPEATS => {
                (options.may_reuse, body) = (false, again);
                repeats += 1;
                exchange.count_repeat();
                continue;
            }
            // Another member of the balancer may be asked.
            Some(unsent) => unsent.keep(exchange.request),
            None => {}
        }
        Log::of(exchange).broken(&why);
        return Err(failed::status(exchange, &why));
    }
}

/// Reads until the response can begin.
async fn read_head(
    exchange: &mut Exchange<'_>,
    conversation: &mut Conversation,
) -> Result<(bool, Option<u64>), Broken> {
    loop {
        match next(exchange.request, conversation).await? {
            Said::Interim(status, fields) => head::take_interim(exchange, status, fields),
            Said::Head(status, fields, has_ended) => {
                let length = fields.get(b"Content-Length").and_then(wire::chars::decimal);
                head::put(exchange, status, fields);
                return Ok((has_ended, length));
            }
            // Neither comes before the head.
            Said::Body(..) | Said::Trailers(_) => {}
        }
    }
}

async fn next(request: &mut Request, conversation: &mut Conversation) -> Result<Said, Broken> {
    let body_in = &mut request.body_in;
    std::future::poll_fn(|cx| conversation.poll_said(cx, Some(body_in))).await
}

async fn respond(exchange: &mut Exchange<'_>, mut begun: Begun) -> Result<Verdict, u16> {
    exchange.note_status();
    if let Some(status) = overridden(exchange) {
        begun.discard(exchange.request).await;
        begun.conversation.end();
        return Err(status);
    }
    if exchange.request.head.header_only {
        begun.discard(exchange.request).await;
        begun.conversation.end();
        exchange.request.response.body = match begun.length {
            Some(length) => Body::Stream(Box::pin(Announced(length))),
            None => Body::Stream(Box::pin(Unsent::something())),
        };
        return Ok(Verdict::Ok);
    }
    let trailers = LateTrailers::default();
    let mut first = Bytes::new();
    // An empty body whose end is there has a length.
    if !begun.has_ended {
        match begun.said_already(exchange.request).await {
            Some(Ok(Said::Body(bytes, ends))) => (first, begun.has_ended) = (bytes, ends),
            Some(Ok(Said::Trailers(fields))) => {
                trailers.borrow_mut().extend(&fields);
                begun.has_ended = true;
            }
            Some(Err(why)) => {
                Log::of(exchange).broken(&why);
                return Err(failed::status(exchange, &why));
            }
            Some(Ok(_)) | None => {}
        }
    }
    let limits = exchange.spool_limits();
    let log = Log::of(exchange);
    let request = &mut *exchange.request;
    let Begun { conversation, has_ended, length } = begun;
    request.response.late_trailers = Some(trailers.clone());
    if has_ended && first.is_empty() {
        conversation.end();
        request.response.body = Body::Empty;
        return Ok(Verdict::Ok);
    }
    request.response.chunked = length.is_none();
    let mut rest =
        Rest { first, conversation: None, client: None, length, trailers, gave: false, log };
    if has_ended {
        conversation.end();
    } else {
        if conversation.body.needs_client() {
            request.response.reads_request = true;
            rest.client = Some(Box::new(std::mem::take(&mut request.body_in)));
        }
        rest.conversation = Some(conversation);
    }
    request.response.body = Ahead::body(rest, &request.engine, limits);
    Ok(Verdict::Ok)
}

/// The status of an error document of this server that replaces the response
/// (`ProxyErrorOverride`).
fn overridden(exchange: &mut Exchange<'_>) -> Option<u16> {
    let status = exchange.request.response.status;
    if !exchange.bound.dir.error_override.get().is_some_and(|set| set.has(status)) {
        return None;
    }
    let request = &mut *exchange.request;
    request.response.status = 200;
    request.response.keeps_origin = false;
    request.notes.set(OVERRIDDEN, b"1");
    Some(status)
}

impl Begun {
    /// What has arrived behind the head.
    async fn said_already(&mut self, request: &mut Request) -> Option<Result<Said, Broken>> {
        let body_in = &mut request.body_in;
        std::future::poll_fn(|cx| {
            Poll::Ready(match self.conversation.poll_said(cx, Some(body_in)) {
                Poll::Ready(said) => Some(said),
                Poll::Pending => None,
            })
        })
        .await
    }

    /// Throws the rest of a response away: a short one, so that the connection can be kept.
    async fn discard(&mut self, request: &mut Request) {
        let mut bytes = 0;
        while !self.has_ended && bytes < DISCARDED_BYTES {
            match next(request, &mut self.conversation).await {
                Ok(Said::Body(piece, ends)) => {
                    bytes += piece.len();
                    self.has_ended = ends;
                }
                Ok(Said::Trailers(_)) => self.has_ended = true,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}
