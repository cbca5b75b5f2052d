//! Connections that migrate to another loop of their process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::Interest;

use super::{Layer, LoopRef, Stream};
use crate::reactor::Handle;
use crate::socket::Socket;

/// A connection that belongs to no loop: it holds nothing of its former loop, so any thread may own
/// it.
pub struct Detached {
    pub(super) fd: OwnedFd,
    pub(super) layer: Layer,
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Stream {
    /// Whether the connection is between two requests: nothing has arrived that was not read, and
    /// nothing waits to be sent. A system call.
    pub fn is_quiet(&self) -> bool {
        let is_settled = match &self.layer {
            Layer::Plain => true,
            Layer::Tls(session) => session.is_settled(),
        };
        let look = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);
        let nothing = || rustix::net::recv(&self.io, &mut [0u8; 1][..], look);
        is_settled && matches!(nothing(), Err(Errno::WOULDBLOCK))
    }

    /// Detaches the connection from its loop, with its counters and its TLS session.
    pub fn detach(self) -> Detached {
        let Self { io, layer, received, sent, .. } = self;
        Detached { fd: io.into_fd(), layer, received, sent }
    }

    /// Attaches a connection to this thread's loop.
    ///
    /// Errors: `NotConnected` outside a loop, and those of epoll_ctl(2); the connection is closed
    /// then.
    pub fn attach(detached: Detached) -> io::Result<Self> {
        let Detached { fd, layer, received, sent } = detached;
        let handle = Handle::current().ok_or(io::ErrorKind::NotConnected)?;
        let io = if handle.state.in_place {
            Socket::unregistered(fd)
        } else {
            // Data that arrived earlier makes it readable at once.
            Socket::register(fd, Interest::READABLE | Interest::WRITABLE)?
        };
        Ok(Self {
            io,
            // In place, the first wait happens in the system call that reads.
            look_again: handle.state.in_place,
            blocks: false,
            state: LoopRef::new(handle.state),
            layer,
            received,
            sent,
        })
    }
}

impl std::fmt::Debug for Detached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detached").field("fd", &self.fd).finish_non_exhaustive()
    }
}

/// A connection can cross threads, TLS session included.
const _: () = {
    const fn crosses_threads<T: Send>() {}
    crosses_threads::<Detached>();
};
