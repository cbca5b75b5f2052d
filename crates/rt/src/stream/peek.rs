//! Reads no further than a boundary that only the bytes themselves determine.

use std::io;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Stream;
use crate::timers::Deadline;

impl Stream {
    /// Waits for bytes of a plain connection and copies them to `buffer`, without taking them from
    /// the socket; 0 at the end of the stream. Take them with [`skip`](Self::skip) before the next
    /// call, which would return them again.
    ///
    /// Errors: `TimedOut` at the deadline, and those of recv(2).
    pub async fn peek(&mut self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_peek(cx, buffer, deadline)).await
    }

    /// Takes `count` bytes that have arrived.
    ///
    /// Errors: `UnexpectedEof` if there are fewer, and those of recv(2).
    pub fn skip(&mut self, mut count: usize) -> io::Result<()> {
        let mut scratch = [0; 256];
        while count > 0 {
            let some = count.min(scratch.len());
            let some = scratch.get_mut(..some).unwrap_or_default();
            match rustix::net::recv(&self.io, some, RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::WOULDBLOCK) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok((taken, _)) => {
                    self.received += taken as u64;
                    count = count.saturating_sub(taken);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn poll_peek(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        let flags = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);
        loop {
            let mut guard = match self.io.poll_read_ready(cx) {
                Poll::Ready(Ok(guard)) => guard,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    ready!(self.poll_deadline(cx, deadline))?;
                    continue;
                }
            };
            match rustix::net::recv(self.io.fd(), &mut *buffer, flags) {
                Ok((count, _)) => {
                    // The socket may hold more bytes, which no other event would report.
                    guard.retain_ready();
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::WOULDBLOCK) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}
