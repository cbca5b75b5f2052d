//! A connection that has its thread to itself: the thread waits in the system calls that read and
//! write, as long as it is not for long.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Stream;
use crate::reactor::IN_PLACE_WAIT;
use crate::timers::Deadline;

/// [`IN_PLACE_WAIT`] in ms.
const WAIT_MS: u64 = IN_PLACE_WAIT.as_millis() as u64;

impl Stream {
    /// As [`poll_read`](Self::poll_read), between two requests, when nothing else happens on this
    /// connection: a thread that has no other waits here in recv(2), which saves the wait for
    /// events and the recv that finds nothing.
    pub fn poll_read_first(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        self.blocks = self.state.in_place;
        let outcome = self.poll_read(cx, buffer, deadline);
        self.blocks = false;
        outcome
    }

    /// Receives, and waits up to [`IN_PLACE_WAIT`] for it. `None` where the wait has to go on as
    /// every loop's does: it may be long, or the deadline is too near.
    pub(super) fn recv_in_place(
        &mut self,
        cx: &Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Option<Poll<io::Result<usize>>> {
        let state = &self.state;
        if state.is_turn_due() {
            // Behind the loop's main future too. A task that wakes itself has all the turns up to
            // the next look at events, and orders would not be seen for minutes.
            let _ = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(cx.waker()));
            return Some(Poll::Pending);
        }
        if deadline.as_ms().saturating_sub(state.clock.now_ms()) < WAIT_MS {
            return None;
        }
        self.look_again = false;
        let spare = rustix::buffer::spare_capacity(buffer);
        state.before_wait();
        // The socket has a time limit, from its listener.
        let received = rustix::net::recv(&self.io, spare, RecvFlags::empty());
        state.after_wait();
        match received {
            Ok((count, _)) => {
                self.received += count as u64;
                Some(Poll::Ready(Ok(count)))
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => None,
            Err(errno) => Some(Poll::Ready(Err(errno.into()))),
        }
    }

    /// Runs `call`, which writes to the socket, where that may be ready; `WouldBlock` otherwise. In
    /// place nobody has asked yet whether it is, so that it is tried first.
    pub(super) fn try_output(
        &self,
        call: impl Fn(&OwnedFd) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if self.state.in_place && self.io.is_registered() {
            match call(self.io.fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
        self.io.try_output(call)
    }
}
