//! Forwards a request, and puts the head of its response into the request.
//!
//! Source: `scgi_handler`, `send_headers`, `pass_response`.

use std::io;

use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use server::request::Request;
use wire::script_head::{ScriptHead, ScriptHeadParser, ScriptProgress};

use super::ProxyScgi;
use super::instead::Instead;
use crate::proxy::mod_proxy::backend::{FailedTells, Options};
use crate::proxy::mod_proxy::outgoing::{Framing, Outgoing};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::single::Single;
use crate::util_script::head::{finish, log, put, refuse};
use crate::util_script::variables::{add_cgi, add_common};

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;

/// The number of the message that the request's body can't be read.
const UNREAD: u32 = 859;

const OPTIONS: Options<'static> = Options {
    name: "SCGI",
    module: <ProxyScgi as Module>::FILE,
    failed: Some(866),
    failed_tells: FailedTells::Port,
    unsent: 858,
    may_reuse: false,
    keeps: false,
};

pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    let mut single = Single::connect(exchange, OPTIONS).await?;
    let body = single.body(exchange.request, UNREAD).await?;
    let head = request_head(exchange.request, &body).await?;
    single.send(exchange, head, body, UNREAD).await?;
    let received = match read_head(exchange, &mut single).await {
        Ok(received) => received,
        Err(status) => {
            let place = exchange.shown_place();
            let text = format_args!("error reading response headers from {place}");
            exchange.request.log::<ProxyScgi>(Level::Error, 860, text);
            exchange.request.response.status_line = None;
            return Err(status);
        }
    };
    if let Some(instead) = Instead::take(exchange.request) {
        // The rest of the response is not read.
        drop(single);
        return Ok(instead.respond(exchange.request).await);
    }
    exchange.request.response.body = single.into_body(exchange, received).await;
    Ok(Verdict::Ok)
}

/// The variables, as a netstring.
async fn request_head(request: &mut Request, body: &Outgoing) -> Result<Vec<u8>, u16> {
    add_common::<ProxyScgi>(request).await;
    add_cgi(request).await;
    request.env.unset(b"GATEWAY_INTERFACE");
    let length = match body.framing() {
        Framing::Length(length) => length,
        Framing::None | Framing::Chunked => 0,
    };
    let first: usize = body.first().iter().map(|piece| piece.len()).sum();
    let mut head = Vec::with_capacity(2048 + first);
    let pairs: Vec<(&[u8], &[u8])> = request.env.iter().collect();
    match wire::scgi::write_request(&mut head, length, pairs.iter().copied()) {
        Ok(()) => Ok(head),
        Err(why) => {
            request.log::<ProxyScgi>(Level::Error, 0, format_args!("{why}"));
            Err(500)
        }
    }
}

/// Reads the head into the request's response; returns what has been received of the body.
async fn read_head(exchange: &mut Exchange<'_>, single: &mut Single) -> Result<Vec<u8>, u16> {
    let timeout = exchange.timeout();
    let (mut parser, mut head) = (ScriptHeadParser::new(), ScriptHead::new());
    let mut received = Vec::new();
    let mut ended = None;
    loop {
        let progress = parser.parse(&mut head, &received);
        let is_complete = matches!(progress, ScriptProgress::Done { .. });
        if is_complete || ended.is_some() || matches!(progress, ScriptProgress::Refused(_)) {
            put::<ProxyScgi>(exchange.request, &head, is_complete);
        }
        let fault = match (progress, ended) {
            (ScriptProgress::Done { consumed }, _) => {
                received.drain(..consumed);
                return finish(exchange.request, &head).map(|()| received);
            }
            (ScriptProgress::Refused(fault), _) => fault,
            (ScriptProgress::NeedMore, Some(true)) => {
                log::<ProxyScgi>(exchange.request, "Timeout waiting for output from script", None);
                return Err(504);
            }
            (ScriptProgress::NeedMore, Some(false)) => parser.end_of_input(),
            (ScriptProgress::NeedMore, None) => {
                received.reserve(READ_BYTES);
                let stream = &mut single.backend.stream;
                let deadline = stream.handle().deadline(timeout);
                ended = match stream.read(&mut received, deadline).await {
                    Ok(0) => Some(false),
                    Ok(_) => None,
                    Err(error) => Some(error.kind() == io::ErrorKind::TimedOut),
                };
                continue;
            }
        };
        return Err(refuse::<ProxyScgi>(exchange.request, &fault));
    }
}
