//! The request's body as handlers read it.

use std::io;

use bytes::Bytes;

/// The body of a request, or what is left of it.
#[derive(Default)]
pub struct BodyIn {
    source: Option<Box<dyn BodySource>>,
    /// The length that the head announced, bytes.
    announced: Option<u64>,
    /// `LimitRequestBody`, bytes.
    limit: Option<u64>,
    /// Bytes read so far.
    taken: u64,
    /// The client sends nothing before it has got `100 Continue`.
    expects_continue: bool,
}

/// Where a body comes from: the connection, or an input filter on it.
pub trait BodySource {
    /// The next piece; `None` at the end.
    fn poll_data(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Bytes, BodyError>>>;
}

/// Why a body could not be read: what to answer.
#[derive(Debug)]
pub enum BodyError {
    /// The client sent something wrong, or too much: this status.
    Status(u16),
    /// The connection is gone.
    Io(io::Error),
}

impl BodyIn {
    /// A body from `source`; `announced` is its length in bytes, where the head tells.
    pub fn new(source: Box<dyn BodySource>, announced: Option<u64>) -> BodyIn {
        BodyIn { source: Some(source), announced, ..BodyIn::default() }
    }

    /// Says whether the client waits for `100 Continue`, which the first reading sends.
    pub fn expect_continue(&mut self, expects: bool) {
        self.expects_continue = expects;
    }

    /// Whether the client waits for `100 Continue` still.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue && self.source.is_some()
    }

    /// Whether the head announces more than the limit.
    pub fn is_over_limit(&self) -> bool {
        self.announced.zip(self.limit).is_some_and(|(announced, limit)| announced > limit)
    }

    /// Sets `LimitRequestBody`, now that the configuration in force is known.
    pub fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.source.is_none()
    }

    /// Puts an input filter in front.
    pub fn wrap(&mut self, filter: impl FnOnce(Box<dyn BodySource>) -> Box<dyn BodySource>) {
        self.source = self.source.take().map(filter);
    }

    /// The next piece; `None` at the end. A body over the limit is a 413, at once where the head
    /// tells its length (`ap_http_filter`).
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
