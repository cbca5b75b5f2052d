//! Connections that leave their loop for another of the process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::Interest;

use super::{Berth, Layer, Stream};
use crate::reactor::Handle;
use crate::socket::Socket;

/// A connection without a loop: nothing of the one that it was on, so that any thread may have it.
pub struct Detached {
    pub(super) fd: OwnedFd,
    pub(super) layer: Layer,
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Stream {
    /// Whether nothing has arrived that was not read, and nothing is to be sent: a connection
    /// between two requests. A system call.
    pub fn is_quiet(&self) -> bool {
        let is_settled = match &self.layer {
            Layer::Plain => true,
            Layer::Tls(session) => session.is_settled(),
        };
        let look = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);
        let nothing = || rustix::net::recv(&self.io, &mut [0u8; 1][..], look);
        is_settled && matches!(nothing(), Err(Errno::WOULDBLOCK))
    }

    /// Takes the connection off its loop, with what its counters and its TLS session know.
    pub fn detach(self) -> Detached {
        let Self { io, layer, received, sent, .. } = self;
        Detached { fd: io.into_fd(), layer, received, sent }
    }

    /// Brings a connection onto this thread's loop.
    ///
    /// Errors: `NotConnected` outside a loop, and what epoll_ctl gives; the connection is closed
    /// then.
    pub fn attach(detached: Detached) -> io::Result<Self> {
        let Detached { fd, layer, received, sent } = detached;
        let handle = Handle::current().ok_or(io::ErrorKind::NotConnected)?;
        let io = if handle.state.in_place {
            Socket::unregistered(fd)
        } else {
            // What has arrived before makes it readable at once.
            Socket::register(fd, Interest::READABLE | Interest::WRITABLE)?
        };
        Ok(Self {
            io,
            // In place, the first wait is in the system call that reads.
            look_again: handle.state.in_place,
            blocks: false,
            state: Berth::take(handle.state),
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

/// A connection can cross threads, TLS sessions included.
const _: () = {
    const fn crosses_threads<T: Send>() {}
    crosses_threads::<Detached>();
};
