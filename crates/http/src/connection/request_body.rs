//! The request body: read from the connection when a handler asks for it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rt::{Deadline, Stream};
use wire::chunked::{Decoder, Step};
use wire::{Body, HeadFlags, Table, Version};

use super::dump::Dumper;
use super::{Active, Connection};
use server::connection_info::ConnectionInfo;
use server::errors;
use server::read_policy::Running;
use server::request::Request;
use server::request_body::{BodyError, BodyIn, BodySource};

/// Bytes of a body that are read at once.
const PIECE_BYTES: usize = 16 * 1024;

/// The same from a client that sends faster than this.
const LONG_PIECE_BYTES: usize = 64 * 1024;

/// Most bytes of an unread body that are read and discarded to keep the connection; beyond that it
/// is closed.
const DISCARD_LIMIT: u64 = 64 * 1024 * 1024;

/// The connection's stream while it serves as a body.
pub(super) struct Pipe {
    /// `None` if the whole body is in `input`, as for `tamarack explain`.
    stream: Option<Stream>,
    input: Vec<u8>,
    /// Bytes that are read at once.
    piece_bytes: usize,
    state: State,
    taken: u64,
    /// The trailer fields, once the body is done.
    trailers: Table,
    /// Bytes of the connection that were consumed, including chunk headers.
    used: u64,
    timeout: std::time::Duration,
    began: Running,
    deadline: Deadline,
    wants_continue: bool,
    continuing: Vec<u8>,
    /// Has the interim responses that are not sent yet.
    info: Rc<ConnectionInfo>,
    /// Logs what is received, if configured.
    dump: Option<Dumper>,
}

enum State {
    Length(u64),
    Chunked(Box<wire::chunked::Decoder>),
    Done,
    Failed,
}

/// The interim response that asks for a body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub(super) type Shared = Rc<RefCell<Option<Pipe>>>;

impl Pipe {
    /// The stream, unless an interim response of ours is being sent.
    pub(super) fn stream_between(&mut self) -> Option<&mut Stream> {
        self.stream.as_mut().filter(|_| self.continuing.is_empty())
    }

    /// Whether some of the body is still to be received.
    fn is_open(&self) -> bool {
        !matches!(self.state, State::Done | State::Failed)
    }
}

/// Has what is left of interim responses sent before the final one, as the request's body is read
/// on meanwhile: behind its head, `100 Continue` would be a part of the response.
pub(super) fn continue_first(shared: &Shared) {
    let mut shared = shared.borrow_mut();
    let Some(pipe) = shared.as_mut() else { return };
    let mut waiting = std::mem::take(&mut pipe.continuing);
    waiting.extend_from_slice(&pipe.info.interim.take());
    if std::mem::take(&mut pipe.wants_continue) && pipe.is_open() {
        waiting.extend_from_slice(CONTINUE);
    }
    pipe.info.interim.set(waiting.into());
}

struct Reader(Shared);

/// Lends the connection's stream to the request, if it has a body.
pub(super) fn attach(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
) -> Option<Shared> {
    let expects_continue = active.head.flags.has(HeadFlags::EXPECT_CONTINUE);
    let state = match active.head.body {
        Body::None | Body::Length(0) => {
            request.body_in.expect_continue(expects_continue);
            return None;
        }
        Body::Length(length) => State::Length(length),
        Body::Chunked => {
            let core = &request.host.core;
            let strict = core.strict_protocol();
            State::Chunked(Box::new(Decoder::new(core.head_limits(), strict)))
        }
    };
    let stream = connection.stream.take();
    let timeout = request.host.core.timeout();
    let handle = &connection.engine.handle;
    let began = request.host.read_policy.body.begin(handle.clock());
    let pipe = Pipe {
        deadline: handle.deadline(timeout).min(began.deadline(0)),
        began,
        stream,
        input: std::mem::take(&mut active.input),
        piece_bytes: PIECE_BYTES,
        state,
        taken: 0,
        trailers: Table::new(),
        used: 0,
        timeout,
        // A client of HTTP/1.0 does not know interim responses (RFC 9110 section 10.1.1).
        wants_continue: expects_continue && active.head.version >= Version::HTTP_11,
        continuing: Vec::new(),
        info: connection.info.clone(),
        dump: Dumper::of_input(connection),
    };
    let shared = Rc::new(RefCell::new(Some(pipe)));
    let announced = match active.head.body {
        Body::Length(length) => Some(length),
        Body::None | Body::Chunked => None,
    };
    request.body_in = BodyIn::new(Box::new(Reader(shared.clone())), announced);
    request.body_in.expect_continue(expects_continue);
    if active.head.flags.has(HeadFlags::CLOSE_AFTER) {
        request.body_in.leave();
    }
    Some(shared)
}

/// Takes the stream back, and reads the rest of the body; returns whether the connection can
/// continue.
pub(super) async fn detach(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    shared: Option<Shared>,
) -> bool {
    let is_continued = request.body_in.is_continued();
    request.body_in.close();
    let Some(shared) = shared else {
        // Apache does not continue after an unmet expectation either.
        let is_unmet = active.head.flags.has(HeadFlags::EXPECT_CONTINUE) && !is_continued;
        if is_unmet {
            request.keep(errors::EndsConnection);
        }
        return !is_unmet && !active.head.flags.has(HeadFlags::CLOSE_AFTER);
    };
    let Some(mut pipe) = shared.borrow_mut().take() else { return false };
    if !pipe.continuing.is_empty() {
        let mut waiting = std::mem::take(&mut pipe.continuing);
        waiting.extend_from_slice(&pipe.info.interim.take());
        pipe.info.interim.set(waiting.into());
    }
    // A client that still waits for `100 Continue` gets the response instead, and may not send the
    // body at all: the start of the next request is unknown (RFC 9110 section 10.1.1).
    let unknown = pipe.wants_continue && !matches!(pipe.state, State::Done);
    // After such a status the connection ends, without waiting for data that may never arrive
    // (`ap_die`). Nor does it continue with a client of HTTP/1.0 that had an expectation.
    let is_old = active.head.version < Version::HTTP_11;
    if unknown || is_old && active.head.flags.has(HeadFlags::EXPECT_CONTINUE) {
        request.keep(errors::EndsConnection);
    }
    // What a client that asked for a tunnel calls a body is sent through it as it is; a process to
    // which the connection is passed reads it itself.
    let is_given_away = request.response.tunnel.is_some() || request.response.passing.is_some();
    let ends = errors::ends_connection(request) || is_given_away;
    let mut keep = !unknown && !ends && !active.head.flags.has(HeadFlags::CLOSE_AFTER);
    while keep && !matches!(pipe.state, State::Done) {
        match std::future::poll_fn(|cx| pipe.poll_data(cx)).await {
            Some(Ok(_)) if pipe.taken <= DISCARD_LIMIT => {}
            None if matches!(pipe.state, State::Done) => {}
            // The start of the next request is unknown.
            _ => keep = false,
        }
    }
    request.traffic.bytes_in += pipe.used;
    take_trailers(request, pipe.trailers);
    active.input = pipe.input;
    connection.stream = pipe.stream;
    keep
}

/// Takes the stream of a body that is read on while the response is sent.
pub(super) fn take_stream(shared: &Shared) -> Option<Stream> {
    shared.borrow_mut().as_mut().and_then(|pipe| pipe.stream.take())
}

/// Lends the stream to such a body while the response's is polled.
pub(super) fn lend<T>(stream: &mut Option<Stream>, shared: &Shared, poll: impl FnOnce() -> T) -> T {
    if let Some(pipe) = shared.borrow_mut().as_mut() {
        pipe.stream = stream.take();
    }
    let polled = poll();
    *stream = take_stream(shared);
    polled
}

/// As [`detach`], after the response to a request whose body was read meanwhile. Nothing more is
/// read if it `has_failed`.
pub(super) async fn detach_late(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    shared: Shared,
    has_failed: bool,
) -> bool {
    if let Some(pipe) = shared.borrow_mut().as_mut() {
        pipe.stream = connection.stream.take();
        if has_failed {
            pipe.state = State::Failed;
        }
    }
    detach(connection, active, request, Some(shared)).await
}

/// Passes trailer fields to the request; with `MergeTrailers On` also as header fields.
fn take_trailers(request: &mut Request, trailers: Table) {
    if request.host.core.merge_trailers.or(false) {
        request.head.headers_in.extend(&trailers);
    }
    request.head.trailers_in = trailers;
}

impl BodySource for Reader {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self.0.borrow_mut().as_mut() {
            Some(pipe) => pipe.poll_data(cx),
            None => Poll::Ready(None),
        }
    }

    fn trailers(&self) -> Option<Box<Table>> {
        let pipe = self.0.borrow();
        let trailers = &pipe.as_ref()?.trailers;
        (!trailers.is_empty()).then(|| Box::new(trailers.clone()))
    }
}

impl Pipe {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if let Err(error) = self.poll_continue(cx) {
            self.state = State::Failed;
            return Poll::Ready(Some(Err(BodyError::Io(error))));
        }
        loop {
            match self.decode() {
                Ok(Some(bytes)) => {
                    self.taken += bytes.len() as u64;
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Ok(None) if matches!(self.state, State::Done | State::Failed) => {
                    return Poll::Ready(None);
                }
                Ok(None) => {}
                Err(status) => {
                    self.state = State::Failed;
                    return Poll::Ready(Some(Err(BodyError::Chunks(status))));
                }
            }
            if let Err(error) = ready!(self.poll_fill(cx)) {
                self.state = State::Failed;
                let timed_out = error.kind() == io::ErrorKind::TimedOut;
                let error = if timed_out { BodyError::Status(408) } else { BodyError::Io(error) };
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    /// Decodes the bytes that have arrived.
    fn decode(&mut self) -> Result<Option<Bytes>, u16> {
        match &mut self.state {
            State::Done | State::Failed => Ok(None),
            State::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(self.input.len());
                if count == 0 {
                    return Ok(None);
                }
                let bytes = cut(&mut self.input, count);
                if let Some(dump) = &self.dump {
                    dump.body(*left, &bytes);
                }
                *left -= count as u64;
                self.used += count as u64;
                if *left == 0 {
                    self.state = State::Done;
                }
                Ok(Some(bytes))
            }
            State::Chunked(decoder) => {
                let before = self.input.len();
                let raw = self.dump.as_ref().map(|_| self.input.clone());
                let bytes = chunks(decoder, &mut self.input)?;
                if let (Some(dump), Some(raw)) = (&self.dump, raw) {
                    let consumed = raw.get(..before - self.input.len()).unwrap_or_default();
                    dump.chunk(consumed, bytes.as_ref().map_or(0, Bytes::len));
                }
                self.used += (before - self.input.len()) as u64;
                if decoder.is_done() {
                    self.trailers = decoder.trailers().clone();
                    self.state = State::Done;
                }
                Ok(bytes)
            }
        }
    }

    /// Sends `100 Continue` before the first piece, as Apache does even if the body has arrived.
    fn poll_continue(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.wants_continue && self.is_open() {
            self.wants_continue = false;
            // One may have been sent in part: it precedes.
            self.continuing = self.info.interim.take().into_vec();
            self.continuing.extend_from_slice(CONTINUE);
        }
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while !self.continuing.is_empty() {
            match stream.try_write(&self.continuing) {
                Ok(count) => drop(self.continuing.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match stream.poll_writable(cx, self.deadline) {
                        Poll::Ready(writable) => writable?,
                        // The rest follows, or precedes the final response.
                        Poll::Pending => break,
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        };
        if self.input.capacity() - self.input.len() < 1024 {
            self.input.reserve(self.piece_bytes);
        }
        match ready!(stream.poll_read(cx, &mut self.input, self.deadline)) {
            Ok(0) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                let is_fast = self.input.len() == self.input.capacity();
                if is_fast || count < PIECE_BYTES {
                    self.piece_bytes = if is_fast { LONG_PIECE_BYTES } else { PIECE_BYTES };
                }
                let received = usize::try_from(self.taken).unwrap_or(usize::MAX);
                let next = stream.handle().deadline(self.timeout);
                self.deadline = next.min(self.began.deadline(received));
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// The first bytes of the input, which are removed. A long piece that fills at least half of its
/// buffer is not copied: the next one gets a buffer of its own.
fn cut(input: &mut Vec<u8>, count: usize) -> Bytes {
    if count == input.len() && count >= input.capacity() / 2 && count >= PIECE_BYTES / 2 {
        return std::mem::take(input).into();
    }
    let bytes = Bytes::copy_from_slice(input.get(..count).unwrap_or_default());
    input.drain(..count);
    bytes
}

/// The next piece of a chunked body; consumed bytes are removed from the input.
fn chunks(decoder: &mut Decoder, input: &mut Vec<u8>) -> Result<Option<Bytes>, u16> {
    let step = decoder.decode(input).map_err(|error| error.status())?;
    let (data, consumed) = match step {
        Step::NeedMore { consumed } => (None, consumed),
        Step::Data { consumed, len } => {
            let data = input.get(consumed.saturating_sub(len)..consumed);
            (data.map(Bytes::copy_from_slice), consumed)
        }
        Step::Done { consumed } => (None, consumed),
    };
    input.drain(..consumed.min(input.len()));
    Ok(data.filter(|bytes| !bytes.is_empty()))
}
