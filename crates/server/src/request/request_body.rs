//! The request body, as handlers read it.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use rustix::io::Errno;
use wire::Table;

use crate::errorlog::Cause;
use crate::log::Level;
use crate::request::Request;

/// A request body, or the rest of it.
#[derive(Default)]
pub struct BodyIn {
    source: Option<Box<dyn BodySource>>,
    /// The length in the head, in bytes.
    announced: Option<u64>,
    /// `LimitRequestBody`, bytes.
    limit: Option<u64>,
    /// The limit of a filter in front of it.
    outer: Option<Limit>,
    /// Bytes read so far.
    taken: u64,
    /// Whether the client waits for `100 Continue` before it sends anything.
    expects_continue: bool,
    /// Whether a client that waited without a body has got `100 Continue`.
    is_continued: bool,
    /// Whether a limit that was set after it had been read refuses it.
    is_refused: bool,
    /// Whether what nothing needs of it is not read.
    is_left: bool,
    /// Whether an input filter may change its length.
    is_filtered: bool,
    kept: Kept,
    /// What followed it.
    trailers: Option<Box<Table>>,
}

/// What is read of a body, for the subrequests of its request (`kept_body`).
#[derive(Default)]
enum Kept {
    /// Nothing is kept.
    #[default]
    No,
    /// Not all of it is read yet.
    Reads(Vec<u8>),
    /// All of it.
    Whole(Bytes),
}

/// A body that was kept.
struct Again(Option<Bytes>);

impl BodySource for Again {
    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        Poll::Ready(self.0.take().filter(|bytes| !bytes.is_empty()).map(Ok))
    }
}

/// The source of a request body: the connection, or an input filter on it.
pub trait BodySource {
    /// The next piece; `None` at the end.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>>;

    /// The trailer fields, once the body has ended, for a handler that forwards them.
    fn trailers(&self) -> Option<Box<Table>> {
        None
    }
}

/// Why a body could not be read.
#[derive(Debug)]
pub enum BodyError {
    /// The client sent something wrong or too much: respond with this status.
    Status(u16),
    /// The body is longer than a limit: 413.
    TooLong(Excess),
    /// Its chunks are malformed (400), or longer than a length can be (413).
    Chunks(u16),
    /// The connection is broken.
    Io(io::Error),
}

/// A limit in bytes, and what logs that a body exceeds it.
#[derive(Debug, Clone, Copy)]
struct Limit {
    bytes: u64,
    log: LogExcess,
}

/// Writes a line to the error log about a body that is too long.
pub type LogExcess = fn(&Request, Length, u64);

/// What exceeds a limit, in bytes.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// The length in the head.
    Announced(u64),
    /// What was read, the last piece of it.
    Read(u64, u64),
}

/// A limit and what exceeds it.
#[derive(Debug)]
pub struct Excess {
    limit: Limit,
    length: Length,
}

impl BodyError {
    /// The status of the response; a body that is too long or malformed is a line in the error log.
    pub fn status(&self, request: &Request) -> u16 {
        match self {
            BodyError::Status(status) => *status,
            BodyError::TooLong(Excess { limit, length }) => {
                (limit.log)(request, *length, limit.bytes);
                413
            }
            BodyError::Chunks(status) => {
                log_chunks(request, *status);
                *status
            }
            BodyError::Io(_) => 400,
        }
    }
}

impl BodyError {
    /// The cause as lines of the error log name it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            BodyError::Status(408) => Some(Cause::TimedOut),
            BodyError::Status(_) | BodyError::TooLong(_) | BodyError::Chunks(_) => {
                Some(Cause::Filter)
            }
            BodyError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Some(Cause::Incomplete)
            }
            BodyError::Io(error) => Errno::from_io_error(error).map(Cause::from),
        }
    }
}

/// Source: `ap_http_filter`
fn log_excess(request: &Request, length: Length, limit: u64) {
    let (number, what, length) = match length {
        Length::Announced(length) => (1588, "Requested content-length", length),
        Length::Read(length, _) => (1591, "Read content length", length),
    };
    let what = format_args!("{what} of {length} is larger than the configured limit of {limit}");
    request.log_as("http_core.c", Level::Info, number, what);
}

/// Source: `ap_http_filter`
fn log_chunks(request: &Request, status: u16) {
    let (error, overflow) = match status {
        413 => (Errno::NOSPC, "(overflow)"),
        _ => (Errno::INVAL, ""),
    };
    let text = format_args!("Error reading/parsing chunk {overflow} ");
    request.log_error_as("http_core.c", Level::Info, 1590, &error.into(), text);
}

impl BodyIn {
    /// Returns a body from `source`; `announced` is its length in bytes, if the head has it.
    pub fn new(source: Box<dyn BodySource>, announced: Option<u64>) -> BodyIn {
        BodyIn { source: Some(source), announced, ..BodyIn::default() }
    }

    /// Sets whether the client waits for `100 Continue`, which the first read sends.
    pub fn expect_continue(&mut self, expects: bool) {
        self.expects_continue = expects;
    }

    /// Whether the client still waits for `100 Continue`, even if there is no body.
    pub fn awaits_continue(&self) -> bool {
        self.expects_continue
    }

    /// Notes that a client that waits without a body has got a backend's `100 Continue`.
    pub fn has_continued(&mut self) {
        self.is_continued = std::mem::take(&mut self.expects_continue);
    }

    /// Whether a client that waited without a body has got `100 Continue`.
    pub fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// The connection ends after the request: only what is needed of the body is read.
    pub fn leave(&mut self) {
        self.is_left = true;
    }

    /// Whether the rest is not read to keep the connection.
    pub fn is_left(&self) -> bool {
        self.is_left
    }

    /// Whether the client still waits for `100 Continue`.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue && self.source.is_some()
    }

    /// Whether the announced length exceeds a limit.
    pub fn is_over_limit(&self) -> bool {
        self.announced_excess().is_some()
    }

    fn announced_excess(&self) -> Option<Excess> {
        let length = self.announced?;
        let limit = self.limits().find(|limit| length > limit.bytes)?;
        Some(Excess { limit, length: Length::Announced(length) })
    }

    /// What the outer filter reads has passed the inner limit.
    fn excess(&self, piece: u64) -> Option<Excess> {
        let limit = self.limits().filter(|limit| self.taken > limit.bytes).last()?;
        Some(Excess { limit, length: Length::Read(self.taken, piece) })
    }

    /// From the outer to the inner one.
    fn limits(&self) -> impl Iterator<Item = Limit> {
        let limit = self.limit.map(|bytes| Limit { bytes, log: log_excess });
        self.outer.into_iter().chain(limit)
    }

    /// Sets `LimitRequestBody`, once the configuration in force is known; filters come later. A
    /// body that was kept has no limit any more.
    pub fn set_limit(&mut self, limit: Option<u64>) {
        if self.kept().is_none() {
            (self.limit, self.outer, self.kept) = (limit, None, Kept::No);
            self.is_refused = false;
        }
    }

    /// Lifts `LimitRequestBody`: the request is forwarded.
    pub fn lift_limit(&mut self) {
        self.limit = None;
    }

    /// Keeps what is read for the subrequests of this request, up to as many bytes: a filter in
    /// front of `LimitRequestBody`.
    pub fn keep(&mut self, bytes: u64, log: LogExcess) {
        // The filter looks at the head before it reads, although others have read the body.
        self.is_refused = self.source.is_none() && self.announced > Some(bytes);
        if self.kept().is_some() && !self.is_refused {
            return;
        }
        self.outer = Some(Limit { bytes, log });
        self.kept = match self.source {
            Some(_) => Kept::Reads(Vec::new()),
            None if self.is_refused => Kept::No,
            None => Kept::Whole(Bytes::new()),
        };
    }

    /// Takes over the limit that [`BodyIn::keep`] has set for another body.
    pub fn limit_as_kept(&mut self, other: &BodyIn) {
        self.outer = self.outer.or(other.outer);
    }

    /// The body, if it was kept and all of it has been read.
    pub fn kept(&self) -> Option<&Bytes> {
        match &self.kept {
            Kept::Whole(bytes) => Some(bytes),
            Kept::No | Kept::Reads(_) => None,
        }
    }

    /// The same body for a subrequest, if it was kept.
    pub fn again(&self) -> Option<BodyIn> {
        Some(BodyIn::of_bytes(self.kept()?.clone()))
    }

    /// A body that has been read before: it counts as kept.
    pub fn of_bytes(bytes: Bytes) -> BodyIn {
        let announced = Some(bytes.len() as u64);
        let source = Again(Some(bytes.clone()));
        let kept = Kept::Whole(bytes);
        BodyIn { kept, ..BodyIn::new(Box::new(source), announced) }
    }

    /// Ends it: nothing more is read by way of the request.
    pub fn close(&mut self) {
        *self = BodyIn { kept: std::mem::take(&mut self.kept), ..BodyIn::default() };
    }

    /// Sets `LimitRequestBody` unless a lower one is set.
    pub fn lower_limit(&mut self, limit: u64) {
        self.limit = Some(self.limit.map_or(limit, |set| set.min(limit)));
    }

    /// The trailer fields, once all of the body has been read by this.
    pub fn trailers(&self) -> Option<&Table> {
        self.trailers.as_deref()
    }

    /// Whether some of it was read.
    pub fn has_begun(&self) -> bool {
        self.taken > 0
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.source.is_none() && !self.is_refused
    }

    /// Wraps the body in an input filter.
    pub fn wrap(&mut self, filter: impl FnOnce(Box<dyn BodySource>) -> Box<dyn BodySource>) {
        self.source = self.source.take().map(filter);
        self.is_filtered = true;
    }

    /// The length in bytes, if the head has it and no filter may change it.
    pub fn length(&self) -> Option<u64> {
        self.announced.filter(|_| !self.is_filtered)
    }

    /// The next piece; `None` at the end. A body over the limit is a 413, at once if the head has
    /// its length (`ap_http_filter`).
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        let next = self.read().await;
        match (&mut self.kept, &next) {
            (Kept::Reads(bytes), Some(Ok(piece))) => bytes.extend_from_slice(piece),
            (Kept::Reads(bytes), None) => self.kept = Kept::Whole(std::mem::take(bytes).into()),
            (Kept::Reads(_), Some(Err(_))) => self.kept = Kept::No,
            (Kept::No | Kept::Whole(_), _) => {}
        }
        next
    }

    async fn read(&mut self) -> Option<Result<Bytes, BodyError>> {
        if !self.is_empty()
            && let Some(excess) = self.announced_excess()
        {
            (self.source, self.is_refused) = (None, false);
            return Some(Err(BodyError::TooLong(excess)));
        }
        self.expects_continue = false;
        let source = self.source.as_mut()?;
        let next = std::future::poll_fn(|cx| source.poll_data(cx)).await;
        let Some(Ok(piece)) = &next else {
            self.trailers = source.trailers();
            self.source = None;
            return next;
        };
        self.taken += piece.len() as u64;
        if let Some(excess) = self.excess(piece.len() as u64) {
            self.source = None;
            return Some(Err(BodyError::TooLong(excess)));
        }
        next
    }
}
