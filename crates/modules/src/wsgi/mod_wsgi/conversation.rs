//! A request and its worker: the body goes out once it is wanted, frames come in.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rt::Deadline;
use server::connection_info::ConnectionInfo;
use server::engine::Engine;
use server::host::Host;
use server::log::Level;
use server::module::Module;
use server::request::Request;
use server::request_body::{BodyError, BodyIn};
use wire::wsgi::{Event, FrameDecoder, ResponseHead, WsgiFault};

use super::Wsgi;
use super::counts::Counted;
use super::link::Link;
use super::runtime::Waits;
use super::upload::Upload;

/// Lines for the log before other requests have their turn.
const LINES_MAX: usize = 64;

/// A request in progress. Dropping it tells the worker that the client has gone.
pub(super) struct Conversation {
    log: Logger,
    link: Link,
    upload: Upload,
    decoder: FrameDecoder,
    received: Vec<u8>,
    /// How many of these bytes have been used.
    used: usize,
    waits: Waits,
    deadline: Option<Deadline>,
    /// Whether a worker has the request.
    is_taken: bool,
    /// Whether the rest of the request's body is read at the end.
    discards: bool,
    counted: Counted,
}

/// What a worker has sent.
#[derive(Debug)]
pub(super) enum Next {
    /// The head of the response.
    Head(Vec<u8>),
    /// A piece of its body.
    Data(Bytes),
    /// The answer to a question.
    Answer(Vec<u8>),
    /// The application has failed.
    Failed(u16),
    /// The worker ends: another one must take the request.
    Retry,
    /// The response is complete.
    End,
}

/// Why there is no more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// No worker has taken the request in time.
    #[error("no process took the request in time")]
    Queued,
    /// The worker takes too long.
    #[error("timeout")]
    Late,
    /// The worker has died, or does not keep to the protocol.
    #[error("{0}")]
    Worker(#[from] WsgiFault),
    /// The connection to the worker fails.
    #[error("{0}")]
    Io(io::Error),
    /// The request's body is not complete.
    #[error("the body of the request can't be read")]
    Client(BodyError),
}

/// Logs lines of a request that may be over.
struct Logger {
    engine: Rc<Engine>,
    host: Arc<Host>,
    connection: Rc<ConnectionInfo>,
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.counted.is_taken |= self.is_taken || self.link.is_taken();
    }
}

impl Conversation {
    /// Begins with a request of whose head the first bytes were sent; `rest` are the others.
    pub fn new(
        request: &Request,
        (link, rest): (Link, &[u8]),
        waits: Waits,
        head_bytes_max: usize,
        counted: Counted,
    ) -> Conversation {
        Conversation {
            log: Logger {
                engine: request.engine.clone(),
                host: request.host.clone(),
                connection: request.connection.clone(),
            },
            link,
            upload: Upload::new(rest),
            decoder: FrameDecoder::new(head_bytes_max),
            received: Vec::new(),
            used: 0,
            waits,
            deadline: None,
            is_taken: false,
            discards: waits.piece.is_some(),
            counted,
        }
    }

    /// Gives it the body of the request, which is sent once it is wanted.
    pub fn give_body(&mut self, body: BodyIn) {
        self.upload.give_body(body);
    }

    /// Whether the worker reads the request's body, or may begin to.
    pub fn may_read(&self) -> bool {
        self.upload.may_go_on()
    }

    /// The body, if nothing of it was asked for. From now on it can't be.
    pub fn take_body(&mut self) -> Option<BodyIn> {
        self.upload.take_body()
    }

    /// What a daemon process's application has not read of the body, at the end of the response.
    pub fn unread_body(&mut self) -> Option<BodyIn> {
        let body = if self.discards { self.take_body() } else { None };
        // A client that still waits for 100 Continue does not send its body after the response.
        body.filter(|body| !body.expects_continue())
    }

    /// Moves what can move, up to the next event.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Next, Broken>> {
        let mut lines = 0;
        loop {
            if lines > LINES_MAX {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.poll_upload(cx)?;
            let unused = self.received.get(self.used..).unwrap_or_default();
            match self.decoder.decode(unused)? {
                Event::NeedMore { consumed } => {
                    // Only now, or many short frames would move what follows them each time.
                    self.received.drain(..self.used + consumed);
                    self.used = 0;
                    match self.poll_receive(cx) {
                        Poll::Ready(Ok(true)) => {}
                        Poll::Ready(Ok(false)) => return self.retry(),
                        Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Event::Log { consumed, len } => {
                    let line = self.taken(consumed, len);
                    self.log.line(&line);
                    lines += 1;
                }
                Event::Wanted { consumed } => {
                    self.used += consumed;
                    self.begin_upload();
                }
                Event::Head { consumed, len } => {
                    return Poll::Ready(Ok(Next::Head(self.taken(consumed, len))));
                }
                Event::Data { consumed, len } => {
                    return Poll::Ready(Ok(Next::Data(self.taken(consumed, len).into())));
                }
                Event::Answer { consumed, len } => {
                    return Poll::Ready(Ok(Next::Answer(self.taken(consumed, len))));
                }
                Event::Failed { status, .. } => return Poll::Ready(Ok(Next::Failed(status))),
                Event::Retry { .. } => return self.retry(),
                Event::End { .. } => return Poll::Ready(Ok(Next::End)),
            }
        }
    }

    /// The request is put into a queue once more, and counted then.
    fn retry(&mut self) -> Poll<Result<Next, Broken>> {
        self.counted.forget();
        Poll::Ready(Ok(Next::Retry))
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> Result<Next, Broken> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Logs why a response ends early.
    pub fn log_broken(&self, broken: &Broken) {
        let text = format!("Failed to proxy response from daemon process: {broken}.");
        self.log.write(Level::Error, text.as_bytes());
    }

    /// The content of an event, which is taken out of what was received.
    fn taken(&mut self, consumed: usize, len: usize) -> Vec<u8> {
        self.used += consumed;
        self.received.get(self.used - len..self.used).unwrap_or_default().to_vec()
    }

    /// Waits for bytes; false if no worker has had the request, and none will.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Broken>> {
        loop {
            let deadline = self.deadline();
            return match self.link.poll_read(cx, &mut self.received, deadline) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(0)) => Poll::Ready(Err(WsgiFault::Truncated.into())),
                Poll::Ready(Ok(_)) => {
                    (self.is_taken, self.deadline) = (true, None);
                    Poll::Ready(Ok(true))
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                    if !self.is_taken && !self.link.is_taken() {
                        return Poll::Ready(Err(Broken::Queued));
                    }
                    if !self.is_taken && self.waits.queue.is_some() {
                        // It was taken in time: from now on the time of its work counts.
                        (self.is_taken, self.deadline) = (true, None);
                        continue;
                    }
                    // A worker that waits for a slow client's body is not late.
                    if self.upload.waits_for_client() {
                        self.deadline = None;
                        continue;
                    }
                    Poll::Ready(Err(Broken::Late))
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    Poll::Ready(Ok(false))
                }
                Poll::Ready(Err(error)) if is_reset(&error) => {
                    Poll::Ready(Err(WsgiFault::Truncated.into()))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(Broken::Io(error))),
            };
        }
    }

    fn deadline(&mut self) -> Deadline {
        let wait = match self.is_taken {
            false => self.waits.queue.or(self.waits.piece),
            true => self.waits.piece,
        };
        let handle = self.link.handle();
        *self
            .deadline
            .get_or_insert_with(|| wait.map_or(Deadline::NEVER, |wait| handle.deadline(wait)))
    }

    fn begin_upload(&mut self) {
        if !self.upload.begin() {
            self.link.refuse_body();
        }
    }

    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        let (has_written, outcome) = self.upload.poll(&mut self.link, &self.waits, cx);
        if has_written {
            self.deadline = None;
            self.link.tell_written();
        }
        outcome
    }
}

/// The parsed head of a response.
pub(super) fn parsed(head: &[u8]) -> Result<ResponseHead<'_>, Broken> {
    Ok(ResponseHead::parse(head)?)
}

fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

impl Logger {
    /// Logs a line of a worker: a digit for the level, and the text.
    fn line(&self, line: &[u8]) {
        let Some((level, text)) = line.split_first() else { return };
        let level = match level {
            b'7' => Level::Debug,
            b'6' => Level::Info,
            b'5' => Level::Notice,
            b'4' => Level::Warn,
            b'2' => Level::Crit,
            _ => Level::Error,
        };
        self.write(level, text);
    }

    fn write(&self, level: Level, text: &[u8]) {
        let about = (&*self.host, &*self.connection, None);
        self.engine.server.log_client(about, Wsgi::FILE, level, 0, None, text);
    }
}
