//! Forwards a request, and puts the head of its response into the request.
//!
//! Source: `proxy_fcgi_handler`, `fcgi_do_request`, `dispatch`.

use std::ops::ControlFlow;

use bytes::Bytes;
use server::body::Body;
use server::errorlog::Verbatim;
use server::errors::EndsConnection;
use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use server::request::Request;
use wire::Method;
use wire::fastcgi::{END_OF_STDIN, Role, begin_request, write_params};
use wire::script_head::{
    EndOfHead, HEAD_BYTES, ScriptFault, ScriptHead, ScriptHeadParser, ScriptProgress,
};

use super::ProxyFcgi;
use super::conversation::{Broken, Conversation, Said, take_records, write_stdin};
use super::rest::{Log, Rest};
use super::upload;
use super::variables;
use crate::core::handler::condition;
use crate::proxy::mod_proxy::ahead::Ahead;
use crate::proxy::mod_proxy::backend::{Backend, FailedTells, Options};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::outgoing::Outgoing;
use crate::proxy::mod_proxy::relay::{Announced, Unsent};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::spool::Limits;
use crate::proxy::mod_proxy::upload::Upload;
use crate::util_script::head::{log, put};

/// Room for the variables of most requests, bytes.
const RECORDS_BYTES: usize = 2048;

/// Most bytes of a response that are read while the request's body is still being sent.
const EARLY_BYTES: usize = 1 << 20;

const OPTIONS: Options<'static> = Options {
    name: "FCGI",
    module: <ProxyFcgi as Module>::FILE,
    failed: Some(1079),
    failed_tells: FailedTells::Host,
    unsent: 1075,
    may_reuse: false,
    keeps: false,
};

pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    let url = Verbatim::new(exchange.url);
    exchange.request.log::<ProxyFcgi>(Level::Debug, 1078, format_args!("serving URL {url}"));
    exchange.check_worker()?;
    let body = upload::prefetch(exchange.request).await?;
    let mut has_variables = false;
    // An idle connection occupies a process of PHP-FPM: none is kept unless that is configured.
    let mut options = OPTIONS.for_worker(exchange.worker, false);
    let timeout = exchange.timeout();
    loop {
        let busy = Busy::new(&exchange.worker.state);
        let backend = match Backend::connect(exchange, options).await {
            Ok(backend) => backend,
            Err(status) => {
                body.keep(exchange.request);
                return Err(status);
            }
        };
        // The log of a request without a backend does not have them.
        if !has_variables {
            if let Err(status) = variables::add(exchange.request).await {
                body.keep(exchange.request);
                return Err(status);
            }
            upload::tell_length(exchange.request, &body);
            has_variables = true;
        }
        let may_repeat = backend.is_reused && body.may_repeat(exchange.request);
        let records = begin(exchange.request, options.keeps, &body)?;
        let upload = Upload::of(&body);
        let conversation =
            Conversation::new(exchange.worker, (backend, busy), timeout, records, upload);
        let mut dialog = Dialog::new(exchange.request, conversation);
        let sent = exchange.moment_us();
        let Err(why) = dialog.read_head(exchange.request).await else {
            exchange.count_response(sent);
            return dialog.respond(exchange).await;
        };
        // The server has closed a connection that was kept.
        if may_repeat && !dialog.conversation.has_answered && !why.is_timeout() {
            options.may_reuse = false;
            exchange.count_repeat();
            continue;
        }
        dialog.log.broken(&why);
        return Err(why.status(exchange.request));
    }
}

/// The records of a request, as far as its body is known.
fn begin(request: &Request, keeps: bool, body: &Outgoing) -> Result<Vec<u8>, u16> {
    let first: usize = body.first().iter().map(Bytes::len).sum();
    let mut records = take_records();
    records.reserve(RECORDS_BYTES + first);
    records.extend_from_slice(&begin_request(Role::Responder, keeps));
    let skipped = match write_params(&mut records, request.env.iter()) {
        Ok(skipped) => skipped.0,
        Err(why) => {
            request.log::<ProxyFcgi>(Level::Error, 1074, format_args!("{why}"));
            return Err(503);
        }
    };
    if skipped > 0 {
        let text = format_args!("couldn't encode {skipped} variables, which are too long");
        request.log::<ProxyFcgi>(Level::Error, 2536, text);
    }
    for piece in body.first() {
        write_stdin(&mut records, piece);
    }
    if matches!(Upload::of(body), Upload::Complete) {
        records.extend_from_slice(&END_OF_STDIN);
    }
    Ok(records)
}

/// A conversation up to the response's head and the beginning of its body.
struct Dialog {
    conversation: Conversation,
    log: Log,
    output: Vec<u8>,
    /// Whether `output` contains a whole head.
    has_head: bool,
    output_ended: bool,
    /// Whether the response is complete.
    has_ended: bool,
}

impl Dialog {
    fn new(request: &Request, conversation: Conversation) -> Dialog {
        Dialog {
            conversation,
            log: Log::of(request),
            output: Vec::new(),
            has_head: false,
            output_ended: false,
            has_ended: false,
        }
    }

    /// Reads until it is known of what kind the response is: the head, and at least one byte of
    /// the body or its end; sends the request to its end meanwhile.
    async fn read_head(&mut self, request: &mut Request) -> Result<(), Broken> {
        let mut end_of_head = EndOfHead::default();
        let mut head_bytes = 0;
        loop {
            let before = self.output.len();
            match self.step(request).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                // What is broken behind the head is the body's concern.
                Err(_) if self.output_ended => {
                    self.has_ended = true;
                    return Ok(());
                }
                Err(why) => return Err(why),
            }
            if !self.has_head {
                let new = self.output.get(before..).unwrap_or_default();
                match end_of_head.find(new) {
                    Some(at) => (self.has_head, head_bytes) = (true, before + at),
                    None if self.output.len() > HEAD_BYTES => self.has_head = true,
                    None => continue,
                }
            }
            if !self.conversation.has_sent_all() {
                if self.output.len() < EARLY_BYTES {
                    continue;
                }
                self.conversation.stop_sending();
            }
            if self.output.len() > head_bytes {
                return Ok(());
            }
        }
    }

    /// Takes what the server says next; breaks at the end of the response.
    async fn step(&mut self, request: &mut Request) -> Result<ControlFlow<()>, Broken> {
        match self.conversation.next(&mut request.body_in).await? {
            Said::Output(range) => {
                self.output.extend_from_slice(self.conversation.bytes(range));
            }
            Said::EndOfOutput => self.output_ended = true,
            Said::Message(range) => self.log.message(self.conversation.bytes(range)),
            Said::Unknown(kind) => self.log.unknown(kind),
            Said::End => {
                self.has_ended = true;
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the rest, of which the client gets nothing; returns whether there is any.
    async fn discard(&mut self, request: &mut Request) -> bool {
        let mut has_any = false;
        while !self.has_ended {
            self.output.clear();
            match self.step(request).await {
                Ok(_) => has_any |= !self.output.is_empty(),
                Err(why) => {
                    self.log.broken(&why);
                    break;
                }
            }
        }
        has_any
    }

    async fn respond(mut self, exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
        let request = &mut *exchange.request;
        let (body_at, has_status) = match self.put_head(request) {
            Ok(found) => found,
            Err(fault) => {
                refuse(request, &fault, &self.log);
                return Ok(Verdict::Ok);
            }
        };
        let asks = self.has_head && !has_status && request.head.method == Method::GET;
        if asks && let Some(status) = condition(request) {
            request.response.status = status;
            self.discard(request).await;
            self.finish();
            return Ok(Verdict::Ok);
        }
        let status = request.response.status;
        let replaced = exchange.bound.dir.error_override.get();
        if request.is_initial() && replaced.is_some_and(|replaced| replaced.has(status)) {
            // The line goes with the page, if the page has the same status.
            request.response.status = 200;
            self.discard(request).await;
            self.finish();
            return Err(status);
        }
        let limits = exchange.spool_limits();
        self.give_body(exchange.request, body_at, limits).await;
        Ok(Verdict::Ok)
    }

    /// Puts the head into the response; returns where the body begins, and whether the head has a
    /// `Status`, which the request's conditions don't change.
    fn put_head(&self, request: &mut Request) -> Result<(usize, bool), ScriptFault> {
        if !self.has_head {
            return Ok((0, false));
        }
        let (mut parser, mut head) = (ScriptHeadParser::new(), ScriptHead::new());
        let progress = parser.parse(&mut head, &self.output);
        let is_complete = matches!(progress, ScriptProgress::Done { .. });
        put::<ProxyFcgi>(request, &head, is_complete);
        let fields = &mut request.response.headers_out;
        // The length of what the records contain counts.
        if !request.env.contains(b"ap_trust_cgilike_cl") {
            fields.unset(b"Content-Length");
        }
        fields.unset(b"Transfer-Encoding");
        keep_origin(request);
        match progress {
            ScriptProgress::Done { consumed } => Ok((consumed, head.status.is_some())),
            ScriptProgress::Refused(fault) => Err(fault),
            ScriptProgress::NeedMore => Err(parser.end_of_input()),
        }
    }

    async fn give_body(mut self, request: &mut Request, at: usize, limits: Option<Limits>) {
        // Only a length that is trusted is still there.
        let told = request.response.headers_out.get(b"Content-Length");
        let told = told.and_then(wire::chars::decimal);
        if request.head.header_only {
            let has_body = self.output.len() > at;
            let has_body = self.discard(request).await || has_body;
            self.output.clear();
            if let Some(length) = told.filter(|_| self.has_ended) {
                request.response.body = Body::Stream(Box::pin(Announced(length)));
                return self.finish();
            }
            if has_body && self.has_ended {
                request.response.body = Body::Stream(Box::pin(Unsent::something()));
                return self.finish();
            }
        }
        let mut output = std::mem::take(&mut self.output);
        output.drain(..at.min(output.len()));
        if output.is_empty() && self.has_ended {
            request.response.body = Body::Empty;
            return self.finish();
        }
        if !self.has_head && self.has_ended {
            // Without an end of the output Apache does not pass on what it took for a head.
            let is_whole = self.output_ended;
            request.response.body = if is_whole { Body::Bytes(output.into()) } else { Body::Empty };
            return self.finish();
        }
        let Dialog { conversation, log, output_ended, has_ended, .. } = self;
        let mut rest = Rest {
            first: output.into(),
            conversation: Some(conversation),
            output_ended,
            is_broken: false,
            told: told.map(|length| (length, length)),
            log,
        };
        if has_ended && let Some(conversation) = rest.conversation.take() {
            conversation.end();
        }
        request.response.body = Ahead::body(rest, &request.engine, limits);
    }

    /// Keeps the connection after a complete response.
    fn finish(self) {
        if self.has_ended {
            self.conversation.end();
        }
    }
}

/// `Date` and `Server` of the program replace this server's.
fn keep_origin(request: &mut Request) {
    let response = &mut request.response;
    for name in [&b"Date"[..], b"Server"] {
        if let Some(value) = response.err_headers_out.get(name).map(<[u8]>::to_vec) {
            response.headers_out.set(name, &value);
            response.err_headers_out.unset(name);
            response.keeps_origin = true;
        }
    }
}

/// Responds to output whose head can't be read: without a page, since Apache takes it for the
/// program's own response.
fn refuse(request: &mut Request, fault: &ScriptFault, to: &Log) {
    match fault {
        ScriptFault::Malformed(line) => {
            let details = format!("Bad header: {line}");
            log::<ProxyFcgi>(request, "malformed header from script", Some(&details));
        }
        fault => log::<ProxyFcgi>(request, &fault.to_string(), None),
    }
    request.log::<ProxyFcgi>(Level::Error, 1070, format_args!("Error parsing script headers"));
    to.dispatching("");
    request.response.status = 500;
    request.response.status_line = None;
    request.keep(EndsConnection);
}
