//! The request's body as handlers read it.

use std::io;

use bytes::Bytes;

/// The body of a request, or what is left of it.
#[derive(Default)]
pub struct BodyIn {
    source: Option<Box<dyn BodySource>>,
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
    /// A body from `source`.
    pub fn new(source: Box<dyn BodySource>) -> BodyIn {
        BodyIn { source: Some(source) }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.source.is_none()
    }

    /// Puts an input filter in front.
    pub fn wrap(&mut self, filter: impl FnOnce(Box<dyn BodySource>) -> Box<dyn BodySource>) {
        self.source = self.source.take().map(filter);
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        let source = self.source.as_mut()?;
        let next = std::future::poll_fn(|cx| source.poll_data(cx)).await;
        if next.is_none() {
            self.source = None;
        }
        next
    }
}
