//! One end of a pipe on its loop: the standard input, output or error of a program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll};

use rustix::io::Errno;
use tokio::io::Interest;

use crate::reactor::Handle;
use crate::socket::Socket;
use crate::stream::LoopRef;
use crate::timers::Deadline;

/// One end of a pipe. Dropping it closes it.
pub struct Pipe {
    io: Socket,
    state: LoopRef,
}

impl Pipe {
    /// Registers the end that is read with this thread's loop, and makes it non-blocking.
    ///
    /// Errors: `NotConnected` outside a loop, and those of epoll_ctl(2).
    pub fn reader(fd: OwnedFd) -> io::Result<Self> {
        Self::register(fd, Interest::READABLE)
    }

    /// The same for the end that is written.
    pub fn writer(fd: OwnedFd) -> io::Result<Self> {
        Self::register(fd, Interest::WRITABLE)
    }

    fn register(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let handle = Handle::current().ok_or(io::ErrorKind::NotConnected)?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { io: Socket::register(fd, interest)?, state: LoopRef::new(handle.state) })
    }

    /// The loop.
    pub fn handle(&self) -> Handle {
        Handle { state: self.state.clone() }
    }

    /// Waits for bytes and appends at most as many to `buffer` as fit its spare capacity; 0 at the
    /// end: each process that could write has closed it.
    ///
    /// Errors: `TimedOut` at the deadline, `InvalidInput` for a buffer without spare capacity.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        if buffer.capacity() == buffer.len() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        loop {
            let Poll::Ready(guard) = self.io.poll_read_ready(cx) else {
                return self.state.poll_deadline(cx, deadline);
            };
            let mut guard = guard?;
            match rustix::io::read(self.io.fd(), rustix::buffer::spare_capacity(buffer)) {
                Ok(count) => return Poll::Ready(Ok(count)),
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }

    /// Waits for room and writes as many bytes as fit.
    ///
    /// Errors: `TimedOut` at the deadline, `BrokenPipe` if no process reads it any more.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        loop {
            let written =
                self.io.try_output(|fd| rustix::io::write(fd, bytes).map_err(io::Error::from));
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => return Poll::Ready(outcome),
            }
            match self.io.poll_writable(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return self.state.poll_deadline(cx, deadline),
            }
        }
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.fd().as_fd()
    }
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe").field("fd", self.io.fd()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write, pipe};
    use std::time::Duration;

    use super::*;
    use crate::Loop;

    #[test]
    fn bytes_are_read_up_to_the_end() {
        Loop::run("pipe", |handle| async move {
            let (reader, mut writer) = pipe().unwrap();
            let mut reader = Pipe::reader(reader.into()).unwrap();
            let mut buffer = Vec::new();
            let none = poll_fn(|cx| reader.poll_read(cx, &mut buffer, Deadline::NEVER)).await;
            assert_eq!(none.unwrap_err().kind(), io::ErrorKind::InvalidInput);
            buffer.reserve(8);
            let soon = handle.deadline(Duration::from_millis(5));
            let late = poll_fn(|cx| reader.poll_read(cx, &mut buffer, soon)).await;
            assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
            let later = handle.spawn_local({
                let handle = handle.clone();
                async move {
                    handle.sleep(Duration::from_millis(5)).await;
                    writer.write_all(b"one").unwrap();
                }
            });
            let mut read = async || {
                poll_fn(|cx| reader.poll_read(cx, &mut buffer, Deadline::NEVER)).await.unwrap()
            };
            assert_eq!((read().await, read().await), (3, 0));
            drop(later);
            assert_eq!(buffer, b"one");
        })
        .unwrap();
    }

    #[test]
    fn bytes_are_written_as_they_fit() {
        Loop::run("pipe", |handle| async move {
            let (mut reader, writer) = pipe().unwrap();
            let mut writer = Pipe::writer(writer.into()).unwrap();
            let piece = vec![b'x'; 1 << 20];
            let mut write =
                async |deadline| poll_fn(|cx| writer.poll_write(cx, &piece, deadline)).await;
            let first = write(Deadline::NEVER).await.unwrap();
            assert!(first < piece.len());
            let full = write(handle.deadline(Duration::from_millis(5))).await;
            assert_eq!(full.unwrap_err().kind(), io::ErrorKind::TimedOut);
            reader.read_exact(&mut vec![0; first]).unwrap();
            assert!(write(Deadline::NEVER).await.unwrap() > 0);
            drop(reader);
            let error = write(Deadline::NEVER).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        })
        .unwrap();
    }
}
