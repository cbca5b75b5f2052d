//! The request body, as handlers read it.

use std::io;

use bytes::Bytes;

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
    /// Whether an input filter may change its length.
    is_filtered: bool,
}

/// The source of a request body: the connection, or an input filter on it.
pub trait BodySource {
    /// The next piece; `None` at the end.
    fn poll_data(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Bytes, BodyError>>>;
}

/// Why a body could not be read.
#[derive(Debug)]
pub enum BodyError {
    /// The client sent something wrong or too much: respond with this status.
    Status(u16),
    /// The body is longer than a limit: 413.
    TooLong(Excess),
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
    /// The status of the response; a body that is too long is a line in the error log.
    pub fn status(&self, request: &Request) -> u16 {
        match self {
            BodyError::Status(status) => *status,
            BodyError::TooLong(Excess { limit, length }) => {
                (limit.log)(request, *length, limit.bytes);
                413
            }
            BodyError::Io(_) => 400,
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

impl BodyIn {
    /// Returns a body from `source`; `announced` is its length in bytes, if the head has it.
    pub fn new(source: Box<dyn BodySource>, announced: Option<u64>) -> BodyIn {
        BodyIn { source: Some(source), announced, ..BodyIn::default() }
    }

    /// Sets whether the client waits for `100 Continue`, which the first read sends.
    pub fn expect_continue(&mut self, expects: bool) {
        self.expects_continue = expects;
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

    /// Sets `LimitRequestBody`, once the configuration in force is known; filters come later.
    pub fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
        self.outer = None;
    }

    /// Lifts `LimitRequestBody`: the request is forwarded.
    pub fn lift_limit(&mut self) {
        self.limit = None;
    }

    /// Sets the limit in bytes of a filter in front of `LimitRequestBody`.
    pub fn set_outer_limit(&mut self, bytes: u64, log: LogExcess) {
        self.outer = Some(Limit { bytes, log });
    }

    /// Sets `LimitRequestBody` unless a lower one is set.
    pub fn lower_limit(&mut self, limit: u64) {
        self.limit = Some(self.limit.map_or(limit, |set| set.min(limit)));
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.source.is_none()
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
        if self.source.is_some()
            && let Some(excess) = self.announced_excess()
        {
            self.source = None;
            return Some(Err(BodyError::TooLong(excess)));
        }
        self.expects_continue = false;
        let source = self.source.as_mut()?;
        let next = std::future::poll_fn(|cx| source.poll_data(cx)).await;
        let Some(Ok(piece)) = &next else {
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
