//! A connection, accepted or outgoing, plain or TLS.
//!
//! The socket is called only after epoll has reported it ready, and a read that leaves room in the
//! buffer counts as "nothing more": a keep-alive request costs one recv and one send.

mod connect;
mod detached;
mod encrypted;
mod hangup;
mod in_place;
mod linger;
mod pass;
mod peek;
mod scratch;
mod send_file;
mod tunnel;
mod writable;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};

use crate::listener::Accepted;
use crate::reactor::{Handle, LoopState};
use crate::socket::Socket;
use crate::timers::{Deadline, SlotId};
use crate::tls::Session;

pub use connect::{ConnectOptions, Remote};
pub use detached::Detached;
pub(crate) use scratch::Scratch;
pub use tunnel::{Carried, tunnel};

/// Bytes written to one connection before the loop's other tasks run.
const WRITE_TURN_BYTES: usize = 256 * 1024;

/// A connection on its loop. Dropping it closes the socket at once; see also [`Stream::linger`].
pub struct Stream {
    io: Socket,
    state: LoopRef,
    layer: Layer,
    received: u64,
    sent: u64,
    /// A check of the socket consumed its readiness without reading.
    look_again: bool,
    /// The current read may block.
    blocks: bool,
}

/// The stream's loop, with its timer slot there.
pub(crate) struct LoopRef {
    state: Rc<LoopState>,
    timer: SlotId,
}

enum Layer {
    Plain,
    Tls(Box<Session>),
}

impl Stream {
    /// Registers an accepted connection with this thread's loop. It inherited TCP_NODELAY from its
    /// listener.
    ///
    /// Errors: `NotConnected` outside a loop, and those of epoll_ctl(2).
    pub fn new(accepted: Accepted) -> io::Result<Self> {
        Self::attach(Detached { fd: accepted.fd, layer: Layer::Plain, received: 0, sent: 0 })
    }

    /// The address that the client connected to. A system call: cache the result.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(rustix::net::getsockname(&self.io)?)?)
    }

    /// The address of the other end. A system call: cache the result.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let address = rustix::net::getpeername(&self.io)?.ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(SocketAddr::try_from(address)?)
    }

    /// Bytes received from the socket so far, TLS records included.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes handed to the socket so far, TLS records included.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The connection's loop.
    pub fn handle(&self) -> Handle {
        Handle { state: self.state.clone() }
    }

    /// Waits for bytes and appends at most as many to `buffer` as fit its spare capacity, without
    /// growing it; 0 at the end of the stream.
    ///
    /// Errors: `TimedOut` at the deadline, `InvalidInput` for a buffer without spare capacity, and
    /// those of recv(2). Cancel-safe.
    pub async fn read(&mut self, buffer: &mut Vec<u8>, deadline: Deadline) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_read(cx, buffer, deadline)).await
    }

    /// As [`read`](Self::read), as a poll function.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        if buffer.capacity() == buffer.len() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        match self.layer {
            Layer::Plain => self.poll_recv(cx, buffer, deadline),
            Layer::Tls(_) => self.poll_decrypt(cx, buffer, deadline),
        }
    }

    /// Reads what has already arrived, without waiting: `WouldBlock` if nothing has.
    pub fn try_read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match self.poll_read(&mut cx, buffer, Deadline::NEVER) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits, without reading, until a read would return bytes, the end or an error. While it waits
    /// the connection holds no buffer: idle connections wait here.
    ///
    /// Errors: `TimedOut` at the deadline.
    pub async fn readable(&mut self, deadline: Deadline) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_readable(cx, deadline)).await
    }

    /// As [`readable`](Self::readable), as a poll function.
    pub fn poll_readable(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Deadline,
    ) -> Poll<io::Result<()>> {
        if self.look_again {
            return Poll::Ready(Ok(()));
        }
        if let Layer::Tls(session) = &mut self.layer {
            if session.has_plain() || session.peer_closed() {
                return Poll::Ready(Ok(()));
            }
            session.shrink();
        }
        match self.io.poll_read_ready(cx) {
            Poll::Ready(Ok(mut guard)) => {
                guard.retain_ready();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.poll_deadline(cx, deadline),
        }
    }

    /// Writes as many bytes as the socket accepts at once: `WouldBlock` if it accepts none.
    /// Accepted bytes count as written although a TLS session may still buffer some of them: end
    /// with [`flush`](Self::flush).
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_send(bytes, SendFlags::empty())
    }

    /// As [`try_write`](Self::try_write), with all parts in one system call.
    pub fn try_write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_send_vectored(parts)
    }

    /// Writes all of `bytes`. `timeout` limits each wait without progress, as Apache's `Timeout`
    /// does.
    ///
    /// Errors: `TimedOut`, `BrokenPipe`, `ConnectionReset`, and others of send(2).
    pub async fn write_all(&mut self, bytes: &[u8], timeout: Duration) -> io::Result<()> {
        self.send_all(bytes, SendFlags::empty(), timeout).await
    }

    /// As [`write_all`](Self::write_all), if more data follows at once: the kernel holds back the
    /// last, incomplete segment (MSG_MORE).
    pub async fn write_more(&mut self, bytes: &[u8], timeout: Duration) -> io::Result<()> {
        self.send_all(bytes, SendFlags::MORE, timeout).await
    }

    /// Writes all parts in as few packets as possible; advances `parts` to its end.
    pub async fn write_vectored(
        &mut self,
        mut parts: &mut [IoSlice<'_>],
        timeout: Duration,
    ) -> io::Result<()> {
        let mut turn = 0;
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match self.try_send_vectored(parts) {
                Ok(count) => {
                    IoSlice::advance_slices(&mut parts, count);
                    turn = self.pace(turn + count, parts.is_empty()).await;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable(timeout).await?;
                }
                Err(error) => return Err(error),
            }
        }
        self.flush(timeout).await
    }

    /// Waits until everything accepted by [`try_write`](Self::try_write) is in the socket.
    pub async fn flush(&mut self, timeout: Duration) -> io::Result<()> {
        while !self.push_outgoing()? {
            self.writable(timeout).await?;
        }
        Ok(())
    }

    /// Ends the sending direction: a FIN, after a close_notify in TLS.
    pub fn shutdown_write(&mut self) -> io::Result<()> {
        self.close_tls()?;
        Ok(rustix::net::shutdown(&self.io, Shutdown::Write)?)
    }

    async fn send_all(
        &mut self,
        mut bytes: &[u8],
        flags: SendFlags,
        timeout: Duration,
    ) -> io::Result<()> {
        let mut turn = 0;
        while !bytes.is_empty() {
            match self.try_send(bytes, flags) {
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    turn = self.pace(turn + count, bytes.is_empty()).await;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable(timeout).await?;
                }
                Err(error) => return Err(error),
            }
        }
        self.flush(timeout).await
    }

    /// Lets other tasks run after [`WRITE_TURN_BYTES`]; returns the byte count of the new turn.
    async fn pace(&self, turn: usize, last: bool) -> usize {
        if turn < WRITE_TURN_BYTES || last {
            return turn;
        }
        tokio::task::yield_now().await;
        0
    }

    fn try_send(&mut self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        match self.layer {
            Layer::Plain => self.send_raw(bytes, flags),
            Layer::Tls(_) => self.try_encrypt(bytes, flags),
        }
    }

    fn try_send_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.layer {
            Layer::Plain => {
                let count = self.try_output(|fd| {
                    let mut control = SendAncillaryBuffer::default();
                    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                    Ok(rustix::net::sendmsg(fd, parts, &mut control, flags)?)
                })?;
                self.sent += count as u64;
                Ok(count)
            }
            Layer::Tls(_) => self.try_encrypt_gathered(parts),
        }
    }

    fn send_raw(&mut self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        let flags = flags | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let count = self.try_output(|fd| Ok(rustix::net::send(fd, bytes, flags)?))?;
        self.sent += count as u64;
        Ok(count)
    }

    /// Receives into the spare capacity of `buffer`.
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        let spare = buffer.capacity() - buffer.len();
        if std::mem::take(&mut self.blocks)
            && let Some(outcome) = self.recv_in_place(cx, buffer, deadline)
        {
            return outcome;
        }
        if std::mem::take(&mut self.look_again) {
            match self.recv_raw(buffer) {
                Err(Errno::WOULDBLOCK) => {}
                other => return Poll::Ready(other.map_err(io::Error::from)),
            }
        }
        loop {
            let mut guard = match self.io.poll_read_ready(cx) {
                Poll::Ready(Ok(guard)) => guard,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    ready!(self.poll_deadline(cx, deadline))?;
                    continue;
                }
            };
            let outcome = rustix::net::recv(
                self.io.fd(),
                rustix::buffer::spare_capacity(buffer),
                RecvFlags::DONTWAIT,
            );
            match outcome {
                Ok((count, _)) => {
                    // A short read means that the socket is empty. Calling it again would cost a
                    // system call that returns nothing; an end of stream remains marked regardless.
                    if count < spare && count > 0 {
                        guard.clear_ready();
                    }
                    self.received += count as u64;
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::WOULDBLOCK) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }

    fn recv_raw(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
        let spare = rustix::buffer::spare_capacity(buffer);
        let (count, _) = rustix::net::recv(&self.io, spare, RecvFlags::DONTWAIT)?;
        self.received += count as u64;
        Ok(count)
    }

    /// Pending until the deadline, then `TimedOut`.
    fn poll_deadline(&self, cx: &Context<'_>, deadline: Deadline) -> Poll<io::Result<()>> {
        self.state.poll_deadline(cx, deadline)
    }
}

impl LoopRef {
    pub(crate) fn new(state: Rc<LoopState>) -> Self {
        let timer = state.timers.acquire();
        Self { state, timer }
    }

    /// Pending until the deadline, then `TimedOut`.
    pub(crate) fn poll_deadline<T>(
        &self,
        cx: &Context<'_>,
        deadline: Deadline,
    ) -> Poll<io::Result<T>> {
        if deadline.has_passed(&self.clock) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.timers.arm(self.timer, deadline, cx.waker(), self.clock.now_ms());
        Poll::Pending
    }
}

impl std::ops::Deref for LoopRef {
    type Target = Rc<LoopState>;

    fn deref(&self) -> &Rc<LoopState> {
        &self.state
    }
}

impl Drop for LoopRef {
    fn drop(&mut self) {
        self.state.timers.release(self.timer);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("fd", self.io.fd()).finish_non_exhaustive()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.fd().as_fd()
    }
}
