//! Detects that the client is gone while the connection is not read.

use std::task::{Context, Poll, ready};

use super::Stream;

impl Stream {
    /// Resolves when the client has closed or reset the connection; bytes that it sends meanwhile
    /// stay unread. For use beside a wait for a backend. Never times out.
    pub async fn hangup(&mut self) {
        std::future::poll_fn(|cx| self.poll_hangup(cx)).await;
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Ok(mut guard) = ready!(self.io.poll_read_ready(cx)) else {
                return Poll::Ready(());
            };
            if guard.ready().is_read_closed() || guard.ready().is_error() {
                return Poll::Ready(());
            }
            guard.clear_ready();
            self.look_again = true;
        }
    }
}
