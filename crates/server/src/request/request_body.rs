//! The request body, as handlers read it.

use std::io;

use bytes::Bytes;

/// A request body, or the rest of it.
#[derive(Default)]
pub struct BodyIn {
    source: Option<Box<dyn BodySource>>,
    /// The length in the head, in bytes.
    announced: Option<u64>,
    /// `LimitRequestBody`, bytes.
    limit: Option<u64>,
    /// Bytes read so far.
    taken: u64,
    /// Whether the client waits for `100 Continue` before it sends anything.
    expects_continue: bool,
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
    /// The connection is broken.
    Io(io::Error),
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

    /// Whether the announced length exceeds the limit.
    pub fn is_over_limit(&self) -> bool {
        self.announced.zip(self.limit).is_some_and(|(announced, limit)| announced > limit)
    }

    /// Sets `LimitRequestBody`, once the configuration in force is known.
    pub fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    /// Sets a limit in bytes unless a lower one is set.
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
    }

    /// The next piece; `None` at the end. A body over the limit is a 413, at once if the head has
    /// its length (`ap_http_filter`).
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if self.source.is_some() && self.is_over_limit() {
            self.source = None;
            return Some(Err(BodyError::Status(413)));
        }
        self.expects_continue = false;
        let source = self.source.as_mut()?;
        let next = std::future::poll_fn(|cx| source.poll_data(cx)).await;
        match &next {
            Some(Ok(bytes)) => self.taken += bytes.len() as u64,
            _ => self.source = None,
        }
        if self.limit.is_some_and(|limit| self.taken > limit) {
            self.source = None;
            return Some(Err(BodyError::Status(413)));
        }
        next
    }
}
