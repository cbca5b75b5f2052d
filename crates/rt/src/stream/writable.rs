//! Waiting until a connection takes more bytes.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Stream;
use crate::timers::Deadline;

impl Stream {
    /// Waits until [`try_write`](Self::try_write) would write. Reading and writing may wait at the
    /// same time, for the same deadline.
    ///
    /// Errors: `TimedOut` at the deadline.
    pub fn poll_writable(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Deadline,
    ) -> Poll<io::Result<()>> {
        match self.io.poll_writable(cx) {
            Poll::Pending => self.poll_deadline(cx, deadline),
            ready => ready,
        }
    }

    /// As [`flush`](Self::flush), as a poll function.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.push_outgoing()? {
            ready!(self.io.poll_writable(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    pub(super) async fn writable(&mut self, timeout: Duration) -> io::Result<()> {
        self.writable_until(Deadline::after(&self.state.clock, timeout)).await
    }

    pub(super) async fn writable_until(&mut self, deadline: Deadline) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_writable(cx, deadline)).await
    }
}
