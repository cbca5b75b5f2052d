//! A bell: another process or thread rings it, and a task of the loop wakes up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use rustix::event::{EventfdFlags, eventfd};
use tokio::io::Interest;

use crate::reactor::Handle;
use crate::socket::Socket;
use crate::stream::LoopRef;
use crate::timers::Deadline;

/// An eventfd on its loop. Each write rings it. It is never read: epoll reports each write as a new
/// edge.
pub struct Bell {
    io: Socket,
}

impl Bell {
    /// Creates a bell on this thread's loop.
    ///
    /// Errors: those of eventfd(2) and epoll_ctl(2).
    pub fn new() -> io::Result<Bell> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { io: Socket::register(fd, Interest::READABLE)? })
    }

    /// Waits until it has been rung after the last call.
    ///
    /// Errors: the loop ends.
    pub fn poll_rung(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.io.poll_read_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.fd().as_fd()
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").field("fd", self.io.fd()).finish_non_exhaustive()
    }
}

/// A deadline of something that is waited for in other ways than by a descriptor.
pub struct Alarm {
    state: LoopRef,
}

impl Alarm {
    /// An alarm on this loop.
    pub fn new(handle: &Handle) -> Alarm {
        Alarm { state: LoopRef::new(handle.state.clone()) }
    }

    /// The loop.
    pub fn handle(&self) -> Handle {
        Handle { state: self.state.clone() }
    }

    /// Pending until the deadline.
    ///
    /// Errors: `TimedOut` then.
    pub fn poll_deadline<T>(&self, cx: &Context<'_>, deadline: Deadline) -> Poll<io::Result<T>> {
        self.state.poll_deadline(cx, deadline)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::Loop;

    #[test]
    fn each_ring_is_heard() {
        Loop::run("bell", |handle| async move {
            let bell = Bell::new().unwrap();
            let alarm = Alarm::new(&handle);
            let soon = alarm.handle().deadline(Duration::from_millis(20));
            let silence: io::Result<()> = poll_fn(|cx| match bell.poll_rung(cx) {
                Poll::Ready(rung) => Poll::Ready(rung),
                Poll::Pending => alarm.poll_deadline(cx, soon),
            })
            .await;
            assert_eq!(silence.unwrap_err().kind(), io::ErrorKind::TimedOut);
            for _ in 0..3 {
                let other = bell.as_fd().try_clone_to_owned().unwrap();
                let ringer = std::thread::spawn(move || {
                    rustix::io::write(&other, &1u64.to_ne_bytes()).unwrap();
                });
                poll_fn(|cx| bell.poll_rung(cx)).await.unwrap();
                ringer.join().unwrap();
            }
        })
        .unwrap();
    }
}
