//! Listening sockets: batches of accepts per turn, and backoff when descriptors run out.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SocketFlags;
use tokio::io::Interest;

use crate::reactor::Handle;
use crate::socket::Socket;

/// Connections accepted in a row before the loop's other tasks run.
const ACCEPT_BATCH_MAX: u32 = 64;
/// The first pause after descriptors or memory ran out; it doubles.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// The longest such pause.
const BACKOFF_MAX: Duration = Duration::from_millis(1600);

/// An accepted connection, for [`Stream::new`].
///
/// [`Stream::new`]: crate::Stream::new
#[derive(Debug)]
pub struct Accepted {
    /// The socket: non-blocking, close-on-exec.
    pub fd: OwnedFd,
    /// The client's address, as the kernel reported it.
    pub peer: SocketAddr,
    /// The address that the client connected to, if the listening socket is bound to a single one.
    pub local: Option<SocketAddr>,
}

/// The local address of all connections of a listening socket; `None` if it is bound to a wildcard
/// address.
pub(crate) fn only_address(socket: impl AsFd) -> Option<SocketAddr> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address).ok().filter(|address| {
        // `[::ffff:0.0.0.0]` is a wildcard address as well.
        !address.ip().to_canonical().is_unspecified()
    })
}

/// Why no connection was accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The process or the system is out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM).
    /// Log it and call `accept` again, which waits before it retries.
    #[error("no resources to accept a connection: {0}")]
    Resources(io::Error),
    /// The listening socket is unusable; stop accepting from it.
    #[error("the listening socket failed: {0}")]
    Broken(io::Error),
}

/// A listening socket on one loop.
pub struct Acceptor {
    io: Socket,
    /// [`Accepted::local`]
    local: Option<SocketAddr>,
    handle: Handle,
    batch: Cell<u32>,
    /// The queue has been empty since TCP_NODELAY was set, so every queued connection has inherited
    /// it.
    inherited: Cell<bool>,
    backoff: Cell<Duration>,
    wait_first: Cell<bool>,
    paused: Cell<bool>,
    resumed: RefCell<Option<Waker>>,
}

impl Acceptor {
    /// Takes over a listening socket. Sets it non-blocking, and sets TCP_NODELAY, which its
    /// connections inherit at no cost. Must be called on a loop.
    ///
    /// Errors: `NotConnected` outside a loop, and those of epoll_ctl(2).
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        let handle = Handle::current().ok_or(io::ErrorKind::NotConnected)?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        // Fails for a socket that is not TCP, where there is nothing to set.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&fd, true);
        let local = only_address(&fd);
        let io = Socket::register(fd, Interest::READABLE)?;
        Ok(Self {
            io,
            local,
            handle,
            batch: Cell::new(0),
            inherited: Cell::new(false),
            backoff: Cell::new(BACKOFF_FIRST),
            wait_first: Cell::new(false),
            paused: Cell::new(false),
            resumed: RefCell::new(None),
        })
    }

    /// Waits for the next connection. Skips connections that died in the queue.
    ///
    /// After [`AcceptError::Resources`] the next call waits (50 ms, doubling up to 1.6 s until an
    /// accept succeeds), so that a server without descriptors does not spin. Cancel-safe.
    pub async fn accept(&self) -> Result<Accepted, AcceptError> {
        if self.wait_first.get() {
            self.handle.sleep(self.backoff.get()).await;
            self.wait_first.set(false);
            self.backoff.set((self.backoff.get() * 2).min(BACKOFF_MAX));
        }
        if self.batch.get() >= ACCEPT_BATCH_MAX {
            self.batch.set(0);
            tokio::task::yield_now().await;
        }
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// Accepts a connection that is already queued; `None` if there is none. At the end of a
    /// generation, call it until `None` and then [`close`](Self::close), so that no connection that
    /// the kernel has completed is reset.
    pub fn try_accept(&self) -> Result<Option<Accepted>, AcceptError> {
        loop {
            match rustix::net::acceptfrom_with(self.io.fd(), ACCEPT_FLAGS) {
                Ok((fd, peer)) => {
                    if !self.inherited.get() {
                        // Fails for a connection that is dead already; its first read reports that.
                        let _ = rustix::net::sockopt::set_tcp_nodelay(&fd, true);
                    }
                    if let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
                        return Ok(Some(Accepted { fd, peer, local: self.local }));
                    }
                }
                Err(Errno::WOULDBLOCK) => {
                    self.inherited.set(true);
                    return Ok(None);
                }
                Err(errno) if is_of_one_connection(errno) => {}
                Err(errno) => return Err(classify(errno)),
            }
        }
    }

    /// Makes `accept` wait until [`resume`](Self::resume); the kernel keeps queueing.
    pub fn pause(&self) {
        self.paused.set(true);
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&self) {
        self.paused.set(false);
        if let Some(waker) = self.resumed.take() {
            waker.wake();
        }
    }

    /// Stops listening here and returns the socket; dropping it closes this process's copy.
    pub fn close(self) -> OwnedFd {
        self.io.into_fd()
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(rustix::net::getsockname(self.io.fd())?)?)
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Result<Accepted, AcceptError>> {
        if self.paused.get() {
            self.resumed.replace(Some(cx.waker().clone()));
            return Poll::Pending;
        }
        loop {
            let mut guard = match self.io.poll_read_ready(cx) {
                Poll::Ready(Ok(guard)) => guard,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(AcceptError::Broken(error))),
                Poll::Pending => {
                    self.batch.set(0);
                    return Poll::Pending;
                }
            };
            match self.try_accept() {
                Ok(Some(accepted)) => {
                    self.batch.set(self.batch.get() + 1);
                    self.backoff.set(BACKOFF_FIRST);
                    return Poll::Ready(Ok(accepted));
                }
                Ok(None) => guard.clear_ready(),
                Err(error) => {
                    self.wait_first.set(matches!(error, AcceptError::Resources(_)));
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.fd().as_fd()
    }
}

const ACCEPT_FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Errors of the connection at the head of the queue: accept(2), "Error handling".
pub(crate) fn is_of_one_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INTR
            | Errno::CONNABORTED
            | Errno::CONNRESET
            | Errno::NETDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::TIMEDOUT
            | Errno::PERM
    )
}

pub(crate) fn classify(errno: Errno) -> AcceptError {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => {
            AcceptError::Resources(errno.into())
        }
        other => AcceptError::Broken(other.into()),
    }
}
