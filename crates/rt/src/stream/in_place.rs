//! A connection with its own thread: the thread blocks in the system calls that read and write, for
//! a limited time.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Stream;
use crate::reactor::IN_PLACE_WAIT;
use crate::timers::Deadline;

/// [`IN_PLACE_WAIT`] in ms.
const WAIT_MS: u64 = IN_PLACE_WAIT.as_millis() as u64;

impl Stream {
    /// As [`poll_read`](Self::poll_read), between two requests, while nothing else happens on this
    /// connection. A thread without other connections blocks here in recv(2), which saves the wait
    /// for events and a recv that returns nothing.
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

    /// Receives, blocking up to [`IN_PLACE_WAIT`]. `None` if the wait must continue with events: it
    /// may be long, or the deadline is too near.
    pub(super) fn recv_in_place(
        &mut self,
        cx: &Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Option<Poll<io::Result<usize>>> {
        let state = &self.state;
        if state.is_turn_due() {
            // Queues the task behind the loop's main future too. Otherwise a task that wakes itself
            // takes every turn up to the next poll for events, and orders would be delayed by
            // minutes.
            crate::turn::wake_after_poll(cx.waker());
            return Some(Poll::Pending);
        }
        let now_us = state.clock.precise_us();
        self.wait_in_place(buffer, deadline, now_us).map(Poll::Ready)
    }

    fn wait_in_place(
        &mut self,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
        now_us: u64,
    ) -> Option<io::Result<usize>> {
        let state = &self.state;
        if deadline.as_ms().saturating_sub(state.clock.now_ms()) < WAIT_MS {
            return None;
        }
        self.look_again = false;
        state.before_wait(now_us);
        let received = self.recv_and_wait(buffer, now_us);
        state.after_wait();
        match received {
            Ok((count, _)) => {
                self.received += count as u64;
                Some(Ok(count))
            }
            Err(Errno::WOULDBLOCK) => None,
            Err(errno) => Some(Err(errno.into())),
        }
    }

    /// The socket has a timeout, inherited from its listener. A signal, for a changed file, is no
    /// reason to fall back to epoll for the rest of the connection's life; but each signal restarts
    /// the timeout, and the other tasks wait for all of them.
    fn recv_and_wait(&self, buffer: &mut Vec<u8>, since_us: u64) -> Result<(usize, usize), Errno> {
        loop {
            let spare = rustix::buffer::spare_capacity(buffer);
            match rustix::net::recv(&self.io, spare, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                received => return received,
            }
            if self.state.clock.precise_us().saturating_sub(since_us) >= WAIT_MS * 1000 {
                return Err(Errno::WOULDBLOCK);
            }
        }
    }

    /// Runs `call`, which writes to the socket, if it may be writable; else returns `WouldBlock`.
    /// In place the readiness is unknown, so the call is tried first.
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
