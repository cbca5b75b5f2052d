//! Accepting for a thread that serves one connection at a time: the thread blocks for the next
//! connection on listening sockets that many threads of many processes share.
//!
//! Each thread has its own epoll, in which the sockets are registered with EPOLLEXCLUSIVE: a new
//! connection wakes one waiting thread instead of all. A [`WakeAll`] wakes every thread.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::listener::{AcceptError, Accepted, classify, is_of_one_connection, only_address};
use crate::reactor::{Handle, IN_PLACE_WAIT};

/// Events fetched at once; listening sockets beyond this number take turns.
const EVENTS: usize = 16;
/// How long a thread with lingering closes waits for a connection before it polls them.
const LINGERING_WAIT: Duration = Duration::from_millis(50);
/// The epoll data of the wake-all event; the sockets are numbered from 0.
const WAKE_ALL: u64 = u64::MAX;

/// Wakes all threads that wait in a [`BlockingAcceptor`], now and from now on.
#[derive(Debug)]
pub struct WakeAll {
    fd: OwnedFd,
}

impl WakeAll {
    /// A wake-all that has not been triggered. Errors: those of eventfd(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Wakes all threads that wait now; later waits return at once.
    pub fn wake(&self) {
        // The write fails only when the counter is full: it was triggered before.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }
}

/// Listening sockets that a thread shares with other threads.
pub struct BlockingAcceptor {
    epoll: OwnedFd,
    sockets: Vec<Shared>,
    handle: Handle,
    /// The socket to try first, so that a busy socket does not starve the others.
    next: Cell<usize>,
    // Keeps the eventfd open for as long as the epoll refers to it.
    _wake_all: Arc<WakeAll>,
}

/// A listening socket.
struct Shared {
    fd: OwnedFd,
    /// [`Accepted::local`] of its connections.
    local: Option<SocketAddr>,
    /// The queue has been empty since the options were set, so every queued connection has
    /// inherited them.
    inherited: Cell<bool>,
}

impl BlockingAcceptor {
    /// Accepts from `sockets`, which must be listening. The sockets are set non-blocking; their
    /// connections block for at most [`IN_PLACE_WAIT`] per call. Must be called on a loop that
    /// works in place.
    ///
    /// Errors: `NotConnected` outside a loop, and those of epoll_create(2) and epoll_ctl(2).
    pub fn new(sockets: Vec<OwnedFd>, wake_all: Arc<WakeAll>) -> io::Result<Self> {
        let handle = Handle::current().ok_or(io::ErrorKind::NotConnected)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        for (number, socket) in (0..).zip(&sockets) {
            rustix::io::ioctl_fionbio(socket, true)?;
            // Connections inherit the options, which saves system calls per connection.
            set_options(socket)?;
            epoll::add(&epoll, socket, EventData::new_u64(number), flags)?;
        }
        epoll::add(&epoll, &wake_all.fd, EventData::new_u64(WAKE_ALL), EventFlags::IN)?;
        let shared =
            |fd: OwnedFd| Shared { local: only_address(&fd), fd, inherited: Cell::new(false) };
        let sockets = sockets.into_iter().map(shared).collect();
        Ok(Self { epoll, sockets, handle, next: Cell::new(0), _wake_all: wake_all })
    }

    /// Blocks until a connection arrives; `None` after `timeout` and after a wake-all.
    ///
    /// Errors: after [`AcceptError::Resources`], pause before the next call.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Accepted>, AcceptError> {
        let state = &self.handle.state;
        if let Some(accepted) = self.try_accept()? {
            state.poll_lingering_closes(false);
            return Ok(Some(accepted));
        }
        state.poll_lingering_closes(true);
        let is_all = state.lingering_closes.is_empty();
        let timeout = if is_all { timeout } else { timeout.min(LINGERING_WAIT) };
        let timeout = Timespec::try_from(timeout).ok();
        let mut events =
            [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        state.before_wait(state.clock.precise_us());
        let ready = epoll::wait(&self.epoll, &mut events, timeout.as_ref());
        state.after_wait();
        match ready {
            Ok(count) => {
                let ready = events.get(..count).unwrap_or_default();
                if ready.is_empty() || ready.iter().any(|event| event.data.u64() == WAKE_ALL) {
                    return Ok(None);
                }
            }
            Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(AcceptError::Broken(errno.into())),
        }
        self.try_accept()
    }

    /// A connection that is already queued; `None` if there is none or another thread took it
    /// first.
    pub fn try_accept(&self) -> Result<Option<Accepted>, AcceptError> {
        let start = self.next.get();
        let (before, from) = self.sockets.split_at(start.min(self.sockets.len()));
        for (at, socket) in from.iter().chain(before).enumerate() {
            if let Some(accepted) = accept(socket)? {
                self.next.set((start + at + 1) % self.sockets.len().max(1));
                return Ok(Some(accepted));
            }
        }
        Ok(None)
    }
}

/// The options of a connection that is served in place: no call blocks longer than
/// [`IN_PLACE_WAIT`].
fn set_options(socket: &OwnedFd) -> rustix::io::Result<()> {
    let _ = rustix::net::sockopt::set_tcp_nodelay(socket, true);
    set_socket_timeout(socket, Timeout::Recv, Some(IN_PLACE_WAIT))?;
    set_socket_timeout(socket, Timeout::Send, Some(IN_PLACE_WAIT))
}

fn accept(socket: &Shared) -> Result<Option<Accepted>, AcceptError> {
    let local = socket.local;
    loop {
        match rustix::net::acceptfrom_with(&socket.fd, SocketFlags::CLOEXEC) {
            Ok((fd, peer)) => {
                // The connection may have been queued before the options were set.
                if !socket.inherited.get() && set_options(&fd).is_err() {
                    continue;
                }
                if let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
                    return Ok(Some(Accepted { fd, peer, local }));
                }
            }
            Err(Errno::WOULDBLOCK) => {
                socket.inherited.set(true);
                return Ok(None);
            }
            Err(errno) if is_of_one_connection(errno) => {}
            Err(errno) => return Err(classify(errno)),
        }
    }
}
