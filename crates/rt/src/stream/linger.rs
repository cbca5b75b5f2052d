//! Closing so that the last answer arrives: a socket that is closed with unread bytes in it sends a
//! reset, and the reset overtakes the answer at the client.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Stream;
use crate::timers::Deadline;

/// The longest wait for the client's next bytes: Apache's SECONDS_TO_LINGER.
const LINGER_READ: Duration = Duration::from_secs(2);
/// The longest whole: Apache's MAX_SECS_TO_LINGER.
const LINGER_TOTAL: Duration = Duration::from_secs(30);
/// Reads in a row before the other tasks have their turn.
const LINGER_READS_MAX: u32 = 16;

impl Stream {
    /// Closes the connection as Apache's ap_lingering_close does: sends FIN, then reads and drops
    /// what the client still sends until it closes too, at most 2 s per wait and 30 s in all.
    pub async fn linger(mut self) {
        if self.flush(LINGER_READ).await.is_err() || self.shutdown_write().is_err() {
            return;
        }
        let end = Deadline::after(&self.state.clock, LINGER_TOTAL);
        let mut reads = 0;
        loop {
            let next = Deadline::after(&self.state.clock, LINGER_READ).min(end);
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

    /// Receives and forgets; a thread that has no other connection waits in place first.
    fn poll_discard(&mut self, cx: &mut Context<'_>, next: Deadline) -> Poll<io::Result<usize>> {
        let state = self.state.clone();
        let mut scratch = state.scratch.borrow_mut();
        // Most clients close at once.
        self.blocks = state.in_place;
        self.poll_recv(cx, scratch.receive(), next)
    }
}
