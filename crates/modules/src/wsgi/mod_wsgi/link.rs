//! How a loop and the worker that has its request reach each other: a slot of shared memory, or a
//! socket if the worker has no extension for it.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use mpm::companion::{Sent, is_read};
use rt::{Deadline, Handle, Pipe};
use rustix::net::{Shutdown, shutdown};

use super::lane::Slot;

/// Bytes that are read from a socket at once.
const READ_BYTES: usize = 64 * 1024;

/// A connection to a worker.
pub(super) enum Link {
    /// A socket, registered a second time while something is written to it.
    Socket(Pipe, Option<Pipe>),
    /// Shared memory.
    Slot(Box<Slot>),
}

impl Link {
    /// A connection by a socket.
    ///
    /// # Errors
    /// It can't be registered with the loop.
    pub fn of_socket(sent: Sent) -> io::Result<Link> {
        Ok(Link::Socket(Pipe::reader(sent.connection)?, None))
    }

    /// The loop.
    pub fn handle(&self) -> Handle {
        match self {
            Link::Socket(socket, _) => socket.handle(),
            Link::Slot(slot) => slot.handle(),
        }
    }

    /// Whether a worker has the request.
    pub fn is_taken(&self) -> bool {
        match self {
            Link::Socket(socket, _) => is_read(socket.as_fd()),
            Link::Slot(slot) => slot.is_taken(),
        }
    }

    /// Waits for bytes and appends them; 0 at the end.
    ///
    /// Errors: `TimedOut` at the deadline.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        match self {
            Link::Socket(socket, _) => {
                out.reserve(READ_BYTES);
                socket.poll_read(cx, out, deadline)
            }
            Link::Slot(slot) => slot.poll_read(cx, out, deadline),
        }
    }

    /// Waits for room and writes as many bytes as fit. They may reach the worker only with
    /// [`Link::tell_written`].
    ///
    /// Errors: the worker has gone.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Link::Socket(_, Some(writer)) => writer.poll_write(cx, bytes, Deadline::NEVER),
            Link::Socket(socket, writer) => {
                let other = socket.as_fd().try_clone_to_owned()?;
                let other = writer.insert(Pipe::writer(other)?);
                Poll::Ready(Ok(ready!(other.poll_write(cx, bytes, Deadline::NEVER))?))
            }
            Link::Slot(slot) => slot.poll_write(cx, bytes),
        }
    }

    /// Nothing can be written now, or there is nothing more: the worker gets what was written.
    pub fn tell_written(&self) {
        if let Link::Slot(slot) = self {
            slot.tell_written();
        }
    }

    /// Nothing more is written.
    pub fn finish_writing(&mut self) {
        if let Link::Socket(_, writer) = self {
            *writer = None;
        }
    }

    /// The worker must not take what it gets for a whole body.
    pub fn refuse_body(&self) {
        match self {
            Link::Socket(socket, _) => drop(shutdown(socket.as_fd(), Shutdown::Write)),
            Link::Slot(slot) => slot.refuse_body(),
        }
    }
}
