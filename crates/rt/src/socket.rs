//! A descriptor that is registered with its loop's epoll.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A non-blocking descriptor and its readiness.
pub(crate) type Socket = AsyncFd<OwnedFd>;

/// Registers `fd` with the loop of this thread. Errors: those of epoll_ctl(2).
pub(crate) fn register(fd: OwnedFd, interest: Interest) -> io::Result<Socket> {
    // SAFETY: an OwnedFd always names the same open descriptor, and the AsyncFd that owns it
    // deregisters before it lets the descriptor go.
    #[allow(unsafe_code)]
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    Ok(registered?)
}
