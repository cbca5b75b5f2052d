//! Lingering close, so that the last response arrives: closing a socket with unread bytes sends a
//! reset, which overtakes the response at the client.

use std::io;
use std::task::{Context, Poll};

use super::Stream;
use crate::lingering_close::{NEXT_WAIT, WHOLE_WAIT};
use crate::timers::Deadline;

/// Reads in a row before the other tasks run.
const LINGER_READS_MAX: u32 = 16;

impl Stream {
    /// Closes the connection as Apache's ap_lingering_close does: sends FIN, then reads and
    /// discards what the client still sends until it closes too, for at most 2 s per wait and 30 s
    /// in all.
    ///
    /// In place the close is only handed over: the thread may take its next connection, and polls
    /// the lingering ones now and then.
    pub async fn linger(mut self) {
        if self.flush(NEXT_WAIT).await.is_err() || self.shutdown_write().is_err() {
            return;
        }
        if self.state.in_place {
            match self.state.lingering_closes.take(self.io, &self.state.clock) {
                Ok(()) => return,
                Err(io) => self.io = io,
            }
        }
        let end = Deadline::after(&self.state.clock, WHOLE_WAIT);
        let mut reads = 0;
        loop {
            let next = Deadline::after(&self.state.clock, NEXT_WAIT).min(end);
            match std::future::poll_fn(|cx| self.poll_discard(cx, next)).await {
                Ok(0) | Err(_) => return,
                Ok(_) if end.has_passed(&self.state.clock) => return,
                Ok(_) => {}
            }
            reads += 1;
            if reads % LINGER_READS_MAX == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn poll_discard(&mut self, cx: &mut Context<'_>, next: Deadline) -> Poll<io::Result<usize>> {
        let state = self.state.clone();
        let mut scratch = state.scratch.borrow_mut();
        self.poll_recv(cx, scratch.receive(), next)
    }
}
