//! A descriptor and its registration with the loop's epoll.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

/// A descriptor and, once it is registered with the loop of its thread, its readiness.
pub(crate) struct Socket {
    // Declared first, so that the registration is dropped before the descriptor is closed.
    registered: OnceCell<AsyncFd<RawFd>>,
    fd: OwnedFd,
}

impl Socket {
    /// Registers `fd` at once. Errors: those of epoll_ctl(2).
    pub(crate) fn register(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let socket = Self::unregistered(fd);
        socket.register_for(interest)?;
        Ok(socket)
    }

    /// Defers registration, to read and to write, to the first wait for readiness. A socket in
    /// whose system calls a thread blocks needs no events, and each packet would cause one.
    pub(crate) fn unregistered(fd: OwnedFd) -> Self {
        Self { registered: OnceCell::new(), fd }
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Deregisters the socket and returns its descriptor.
    pub(crate) fn into_fd(self) -> OwnedFd {
        let Self { registered, fd, .. } = self;
        drop(registered);
        fd
    }

    /// As [`AsyncFd::poll_read_ready`].
    pub(crate) fn poll_read_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'_, RawFd>>> {
        self.registered()?.poll_read_ready(cx)
    }

    /// Waits until the socket accepts bytes or has failed.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut guard = ready!(self.registered()?.poll_write_ready(cx))?;
        guard.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Runs `call`, which writes, if the socket may be writable; else returns `WouldBlock`. The
    /// readiness of an unregistered socket is unknown: the call is tried.
    pub(crate) fn try_output(
        &self,
        call: impl Fn(&OwnedFd) -> io::Result<usize>,
    ) -> io::Result<usize> {
        match self.registered.get() {
            Some(registered) => registered.try_io(Interest::WRITABLE, |_| call(&self.fd)),
            None => call(&self.fd),
        }
    }

    /// Whether the socket is registered, so that its readiness is known.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered.get().is_some()
    }

    fn registered(&self) -> io::Result<&AsyncFd<RawFd>> {
        match self.registered.get() {
            Some(registered) => Ok(registered),
            None => self.register_for(Interest::READABLE | Interest::WRITABLE),
        }
    }

    fn register_for(&self, interest: Interest) -> io::Result<&AsyncFd<RawFd>> {
        let raw = self.fd.as_raw_fd();
        // SAFETY: the descriptor stays open for as long as `self`, which never exchanges it, and
        // the registration ends before: in `into_fd`, or by the order of the fields.
        #[allow(unsafe_code)]
        let registered = unsafe { AsyncFd::register_with_interest(raw, interest) }?;
        Ok(self.registered.get_or_init(|| registered))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
