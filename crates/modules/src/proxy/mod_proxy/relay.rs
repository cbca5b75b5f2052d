//! The body of a response, read from the backend as the client takes it.
//!
//! While the client's socket is full, more is read ([`Ahead`]). Once the backend has sent all, its
//! connection is given back: before the last bytes go to the client.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rt::Deadline;
use server::body::{Body, BodyStream, Chunk};
use server::connection_info::ConnectionInfo;
use server::engine::Engine;
use server::log::Level;
use server::request::LateTrailers;
use wire::chunked::Step;
use wire::response::{Fault, ResponseBody};

use super::ahead::Ahead;
use super::backend::Backend;
use super::busy::Busy;
use super::scheme::Exchange;
use super::shared::State;
use super::spool::Limits;

/// The most that is read before there is a body, bytes.
const AHEAD_BYTES: usize = 64 * 1024;
/// The first read, and the largest, bytes.
const READ_BYTES: (usize, usize) = (8 * 1024, 64 * 1024);

/// The rest of a response.
pub struct Relay {
    source: Option<Source>,
    /// The length of the whole body in bytes, if the head has it.
    length: Option<u64>,
    /// What was received and not given yet.
    input: Vec<u8>,
    read_bytes: usize,
    body: ResponseBody,
    ahead: VecDeque<Bytes>,
    ahead_bytes: usize,
    failure: Option<io::Error>,
    /// When the wait for the backend ends, if there is one.
    waits_until: Option<Deadline>,
    /// Something was given since the last flush.
    gave: bool,
    client: Rc<ConnectionInfo>,
    engine: Rc<Engine>,
    counts: Option<Arc<State>>,
    /// Where the trailer fields go.
    trailers: LateTrailers,
}

/// Where the rest comes from.
pub struct Source {
    /// The connection.
    pub backend: Backend,
    /// The file of the module that logs.
    pub module: &'static str,
    /// Whether the connection can be kept afterwards.
    pub keeps: bool,
    /// Counts the request as in progress.
    pub _busy: Busy,
    /// Where the bytes are counted.
    pub counts: Option<Arc<State>>,
    /// The longest wait.
    pub timeout: Duration,
    /// `ProxySpool`
    pub spool: Option<Limits>,
}

impl Source {
    /// The rest comes from the exchange's connection; `keeps` is whether that can be kept.
    pub fn new(
        exchange: &Exchange<'_>,
        (backend, busy): (Backend, Busy),
        module: &'static str,
        keeps: bool,
    ) -> Source {
        let counts = exchange.worker.is_member.then(|| exchange.worker.state.clone());
        let (timeout, spool) = (exchange.timeout(), exchange.spool_limits());
        Source { backend, module, keeps, _busy: busy, counts, timeout, spool }
    }

    /// Gives the connection back after the last byte, behind which nothing has been received.
    pub fn end(self) {
        if self.keeps {
            self.backend.give_back();
        }
    }
}

/// What the received bytes contain.
enum Decoded {
    Piece(Bytes),
    NeedMore,
    End,
}

impl Relay {
    /// A relay of a body of which `input` has been received.
    pub fn new(
        mut source: Source,
        length: Option<u64>,
        body: ResponseBody,
        input: Vec<u8>,
        (engine, client): (Rc<Engine>, Rc<ConnectionInfo>),
    ) -> Relay {
        Relay {
            counts: source.counts.take(),
            source: Some(source),
            length,
            input,
            read_bytes: READ_BYTES.0,
            body,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            failure: None,
            waits_until: None,
            gave: false,
            client,
            engine,
            trailers: LateTrailers::default(),
        }
    }

    /// The whole body, if all of it has been received. The connection has been given back then.
    pub fn take_whole(&mut self) -> Option<Bytes> {
        match self.decode() {
            Ok(Decoded::Piece(piece)) if self.source.is_none() && self.failure.is_none() => {
                Some(piece)
            }
            Ok(Decoded::End) => Some(Bytes::new()),
            Ok(Decoded::Piece(piece)) => {
                self.push_ahead(piece);
                None
            }
            Ok(Decoded::NeedMore) => None,
            Err(fault) => {
                self.failure = Some(self.fail(&fault));
                None
            }
        }
    }

    /// The body of a response that ends with the connection: bytes if the end is there already, so
    /// that the client learns the length.
    pub async fn into_body(mut self) -> Body {
        std::future::poll_fn(|cx| {
            self.read_ahead(cx);
            Poll::Ready(())
        })
        .await;
        if self.source.is_some() || self.failure.is_some() {
            return self.into_stream();
        }
        match self.ahead.len() {
            0 => Body::Empty,
            1 => self.ahead.pop_front().map_or(Body::Empty, Body::Bytes),
            _ => Body::Parts(self.ahead.drain(..).map(Body::Bytes).collect()),
        }
    }

    /// The body as it is received.
    pub fn into_stream(self) -> Body {
        let limits = self.source.as_ref().and_then(|source| source.spool);
        let engine = self.engine.clone();
        Ahead::body(self, &engine, limits)
    }

    /// Reads what there is.
    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        while self.ahead_bytes < AHEAD_BYTES && self.source.is_some() {
            match self.poll_piece(cx) {
                Poll::Ready(Some(Ok(piece))) => self.push_ahead(piece),
                Poll::Ready(Some(Err(error))) => {
                    self.failure = Some(error);
                    return;
                }
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }

    /// The trailer fields, which are complete once the body has ended.
    pub fn trailers(&self) -> &LateTrailers {
        &self.trailers
    }

    /// Whether it has failed before its first byte.
    pub fn is_broken(&self) -> bool {
        self.failure.is_some() && self.ahead.is_empty()
    }

    fn push_ahead(&mut self, piece: Bytes) {
        self.ahead_bytes += piece.len();
        self.ahead.push_back(piece);
    }

    /// The next piece from the backend.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.failure.is_some() || self.source.is_none() {
                return Poll::Ready(self.failure.take().map(Err));
            }
            match self.decode() {
                Ok(Decoded::Piece(piece)) => return Poll::Ready(Some(Ok(piece))),
                Ok(Decoded::End) => return Poll::Ready(None),
                Ok(Decoded::NeedMore) => {}
                Err(fault) => return Poll::Ready(Some(Err(self.fail(&fault)))),
            }
            match self.poll_fill(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => match self.body.end_of_input() {
                    Ok(()) => self.source = None,
                    Err(fault) => return Poll::Ready(Some(Err(self.fail(&fault)))),
                },
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => {
                    self.fail(&Fault::Incomplete);
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    /// Reads from the backend.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(source) = &mut self.source else { return Poll::Ready(Ok(0)) };
        let before = self.input.len();
        self.input.reserve(self.read_bytes);
        // The client's wake-ups do not extend the wait.
        let deadline = *self.waits_until.get_or_insert_with(|| {
            Deadline::after(source.backend.stream.handle().clock(), source.timeout)
        });
        let read = source.backend.stream.poll_read(cx, &mut self.input, deadline);
        if read.is_ready() {
            self.waits_until = None;
        }
        if let Poll::Ready(Ok(count)) = &read
            && before + count == self.input.capacity()
        {
            self.read_bytes = READ_BYTES.1;
        }
        read
    }

    /// Decodes what has been received. At the end the connection is given back.
    fn decode(&mut self) -> Result<Decoded, Fault> {
        let decoded = self.decode_next();
        if let (Ok(Decoded::Piece(piece)), Some(state)) = (&decoded, &self.counts) {
            state.count_read(piece.len() as u64);
        }
        decoded
    }

    fn decode_next(&mut self) -> Result<Decoded, Fault> {
        let mut gathered = Vec::new();
        let mut at = 0;
        loop {
            let rest = self.input.get(at..).unwrap_or_default();
            let step = match self.body.read(rest) {
                Ok(step) => step,
                // What came before goes to the client.
                Err(fault) if !gathered.is_empty() => {
                    self.failure = Some(self.fail(&fault));
                    return Ok(Decoded::Piece(gathered.into()));
                }
                Err(fault) => return Err(fault),
            };
            match step {
                Step::Data { consumed, len } => {
                    let start = at + consumed - len;
                    at += consumed;
                    if start == 0 && at == self.input.len() && gathered.is_empty() {
                        let whole = Bytes::from(std::mem::take(&mut self.input));
                        self.end_if_done();
                        return Ok(Decoded::Piece(whole));
                    }
                    let data = self.input.get(start..at).unwrap_or_default();
                    gathered.extend_from_slice(data);
                }
                Step::NeedMore { consumed } => {
                    self.input.drain(..at + consumed);
                    return Ok(match gathered.is_empty() {
                        true => Decoded::NeedMore,
                        false => Decoded::Piece(gathered.into()),
                    });
                }
                Step::Done { consumed } => {
                    self.input.drain(..at + consumed);
                    self.end();
                    return Ok(match gathered.is_empty() {
                        true => Decoded::End,
                        false => Decoded::Piece(gathered.into()),
                    });
                }
            }
        }
    }

    /// Ends a body of known length with its last byte.
    fn end_if_done(&mut self) {
        if matches!(self.body.read(&[]), Ok(Step::Done { .. })) {
            self.end();
        }
    }

    fn end(&mut self) {
        let Some(source) = self.source.take() else { return };
        if !self.body.trailers().is_empty() {
            self.trailers.borrow_mut().extend(self.body.trailers());
        }
        // Bytes behind the end belong to no request.
        if self.input.is_empty() {
            source.end();
        }
    }

    /// Logs why the response breaks off, and closes the connection to the backend.
    fn fail(&mut self, fault: &Fault) -> io::Error {
        if let Some(source) = self.source.take() {
            let text = format_args!("error reading response");
            let server = &self.engine.server;
            server.log_connection(&self.client, source.module, Level::Error, 1110, text);
        }
        io::Error::new(io::ErrorKind::UnexpectedEof, fault.to_string())
    }
}

impl BodyStream for Relay {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        if let Some(piece) = self.ahead.pop_front() {
            self.ahead_bytes -= piece.len();
            self.gave = true;
            return Poll::Ready(Some(Ok(Chunk::Bytes(piece))));
        }
        match self.poll_piece(cx) {
            Poll::Ready(next) => {
                self.gave = true;
                Poll::Ready(next.map(|piece| piece.map(Chunk::Bytes)))
            }
            // The client gets what there is while the backend makes more.
            Poll::Pending if std::mem::take(&mut self.gave) => Poll::Ready(Some(Ok(Chunk::Flush))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

/// The body of a response to HEAD: its length is unknown, unless a filter reads all of it.
pub(crate) struct Unsent(pub Vec<u8>);

impl Unsent {
    /// For a body that has been discarded: filters find that there was one.
    pub fn something() -> Unsent {
        Unsent(b"unsent".to_vec())
    }
}

impl BodyStream for Unsent {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        let output = std::mem::take(&mut self.0);
        Poll::Ready((!output.is_empty()).then(|| Ok(Chunk::Bytes(output.into()))))
    }
}

/// The body of a response without one, whose head tells the length that it would have (HEAD).
pub struct Announced(pub u64);

impl BodyStream for Announced {
    fn poll_chunk(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        Poll::Ready(None)
    }

    fn length(&self) -> Option<u64> {
        Some(self.0)
    }

    fn is_announced(&self) -> bool {
        true
    }
}
