//! Connections that carry one request and its response, up to their end: those of SCGI and uwsgi.
//! Chunks of a request's body are not read for them (`REQUEST_CHUNKED_ERROR`).

use server::body::Body;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::response::{Framing, ResponseBody};

use super::backend::{Backend, Options};
use super::busy::Busy;
use super::outgoing::{Outgoing, Wishes};
use super::relay::{Announced, Relay, Source};
use super::scheme::Exchange;

/// A connection with its request in progress.
pub struct Single {
    /// The connection.
    pub backend: Backend,
    busy: Busy,
    options: Options<'static>,
    /// When the request was sent, if that is measured.
    sent_us: Option<u64>,
}

impl Single {
    /// Connects to the exchange's worker. If that fails, another member can have the body.
    ///
    /// # Errors
    /// The status of the response.
    pub async fn connect(
        exchange: &mut Exchange<'_>,
        options: Options<'static>,
    ) -> Result<Single, u16> {
        exchange.check_worker()?;
        let busy = Busy::new(&exchange.worker.state);
        match Backend::connect(exchange, options).await {
            Ok(backend) => Ok(Single { backend, busy, options, sent_us: None }),
            Err(status) => {
                if !Outgoing::is_kept(exchange.request)
                    && let Some(body) = Outgoing::postponed(exchange.request, Wishes::default())
                {
                    body.keep(exchange.request);
                }
                Err(status)
            }
        }
    }

    /// Reads the beginning of the body; `number` is that of the message that it can't be read.
    ///
    /// # Errors
    /// 411 for chunks; 413 above LimitRequestBody; 500, whatever else is wrong.
    pub async fn body(&self, request: &mut Request, number: u32) -> Result<Outgoing, u16> {
        check_coding(request)?;
        check_length(request)?;
        let body = Outgoing::prefetch(request, Wishes::default()).await;
        body.map_err(|_| self.unread(request, number))
    }

    fn unread(&self, request: &Request, number: u32) -> u16 {
        let text = format_args!("receiving request body failed");
        request.log_as(self.options.module, Level::Error, number, text);
        500
    }

    /// Sends `head` and the body, as it is; `number` is that of the message that the body can't be
    /// read.
    ///
    /// # Errors
    /// The status of the response.
    pub async fn send(
        &mut self,
        exchange: &mut Exchange<'_>,
        mut head: Vec<u8>,
        mut body: Outgoing,
        number: u32,
    ) -> Result<(), u16> {
        let timeout = exchange.timeout();
        for piece in body.first() {
            head.extend_from_slice(piece);
        }
        let stream = &mut self.backend.stream;
        let mut sent = stream.write_all(&head, timeout).await;
        exchange.count_sent(head.len() as u64);
        while sent.is_ok() {
            let piece = body.next(exchange.request).await;
            let piece = piece.map_err(|_| self.unread(exchange.request, number))?;
            let Some(piece) = piece else {
                self.sent_us = exchange.moment_us();
                return Ok(());
            };
            sent = self.backend.stream.write_all(&piece, timeout).await;
            exchange.count_sent(piece.len() as u64);
        }
        let place = exchange.shown_place();
        let text = format_args!("sending data to {place} failed");
        let Options { module, unsent, .. } = self.options;
        exchange.request.log_as(module, Level::Error, unsent, text);
        Err(503)
    }

    /// The rest of the response, of which `received` has been read, as its body: up to the length
    /// that the response's fields tell, if they do, else up to the end of the connection.
    ///
    /// Apache sends what follows the length, too: the client would take it for another response.
    pub async fn into_body(self, exchange: &Exchange<'_>, received: Vec<u8>) -> Body {
        let Single { backend, busy, options, sent_us } = self;
        exchange.count_response(sent_us);
        let request = &*exchange.request;
        let told = request.response.headers_out.get(b"Content-Length");
        let told = told.and_then(wire::chars::decimal);
        if let Some(length) = told.filter(|_| request.head.header_only) {
            return Body::Stream(Box::pin(Announced(length)));
        }
        let core = &request.host.core;
        let mut body = ResponseBody::new(core.head_limits(), core.strict_protocol());
        body.start(told.map_or(Framing::UntilClose, Framing::Length));
        let source = Source::new(exchange, (backend, busy), options.module, false);
        let about = (request.engine.clone(), request.connection.clone());
        Relay::new(source, told, body, received, about).into_body().await
    }
}

/// The length of the body has to be known: chunks are not read for it.
fn check_coding(request: &Request) -> Result<(), u16> {
    if !request.head.headers_in.contains(b"Transfer-Encoding") {
        return Ok(());
    }
    let uri = Verbatim::new(&request.resource.uri);
    let text = format_args!("chunked Transfer-Encoding forbidden: {uri}");
    request.log_as("http_core.c", Level::Info, 1593, text);
    Err(411)
}

/// LimitRequestBody, which other schemes do not have (`ap_setup_client_block`).
fn check_length(request: &Request) -> Result<(), u16> {
    let Some(limit) = request.plan.core.limit_request_body() else { return Ok(()) };
    let length = request.head.headers_in.get(b"Content-Length").and_then(wire::chars::decimal);
    if length.is_some_and(|length| length > limit) { Err(413) } else { Ok(()) }
}
