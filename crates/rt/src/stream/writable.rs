//! Waiting until a connection takes more bytes.

use std::io;
use std::task::{Context, Poll};
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

    pub(super) async fn writable(&mut self, timeout: Duration) -> io::Result<()> {
        self.writable_until(Deadline::after(&self.state.clock, timeout)).await
    }

    pub(super) async fn writable_until(&mut self, deadline: Deadline) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_writable(cx, deadline)).await
    }
}
