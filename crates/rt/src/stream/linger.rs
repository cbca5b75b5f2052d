//! Closing so that the last answer arrives: a socket that is closed with unread bytes in it sends a
//! reset, and the reset overtakes the answer at the client.

use std::io;
use std::task::{Context, Poll};

use super::Stream;
use crate::farewell::{NEXT_WAIT, WHOLE_WAIT};
use crate::timers::Deadline;

/// Reads in a row before the other tasks have their turn.
const LINGER_READS_MAX: u32 = 16;

impl Stream {
    /// Closes the connection as Apache's ap_lingering_close does: sends FIN, then reads and drops
    /// what the client still sends until it closes too, at most 2 s per wait and 30 s in all.
    ///
    /// In place it is only seen off here: the thread, which may have the next connection, looks at
    /// it now and then.
    pub async fn linger(mut self) {
        if self.flush(NEXT_WAIT).await.is_err() || self.shutdown_write().is_err() {
            return;
        }
        if self.state.in_place {
            match self.state.farewells.take(self.io, &self.state.clock) {
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
