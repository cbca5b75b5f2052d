//! Accepting where a thread has one connection at a time: it waits for the next one in place, at
//! listening sockets that many threads of many processes share.
//!
//! The sockets are in an epoll of the thread's own, with EPOLLEXCLUSIVE: a new connection wakes one
//! of the threads that wait and not all of them. A [`Bell`] wakes all.

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

/// Events fetched at once: more listening sockets than this take turns.
const EVENTS: usize = 16;
/// How long a thread waits for a connection, and then looks whether clients have closed that were
/// seen off.
const FAREWELL_WAIT: Duration = Duration::from_millis(50);
/// The epoll's name for the bell; the sockets are numbered from 0.
const BELL: u64 = u64::MAX;

/// Wakes all threads that wait at their doors, now and from now on.
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
}

impl Bell {
    /// A bell that has not been rung. Errors: those of eventfd(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// From now on nobody waits at a door that hears this bell.
    pub fn ring(&self) {
        // A counter that is full has been rung before.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }
}

/// One thread's way to connections: listening sockets that it shares with others.
pub struct Door {
    epoll: OwnedFd,
    sockets: Vec<Shared>,
    handle: Handle,
    /// Where the search for a connection begins, so that no socket waits behind a busy one.
    next: Cell<usize>,
    // Kept open as long as the epoll knows it.
    _bell: Arc<Bell>,
}

/// A listening socket.
struct Shared {
    fd: OwnedFd,
    /// [`Accepted::local`] of its connections.
    local: Option<SocketAddr>,
    /// The queue has been empty since options were set here, so that all in it have inherited them.
    inherited: Cell<bool>,
}

impl Door {
    /// A door at `sockets`, which listen already. They are set non-blocking; the connections block,
    /// for [`IN_PLACE_WAIT`] at most. Must be called on a loop that works in place.
    ///
    /// Errors: `NotConnected` outside a loop, and those of epoll_create(2) and epoll_ctl(2).
    pub fn new(sockets: Vec<OwnedFd>, bell: Arc<Bell>) -> io::Result<Self> {
        let handle = Handle::current().ok_or(io::ErrorKind::NotConnected)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        for (number, socket) in (0..).zip(&sockets) {
            rustix::io::ioctl_fionbio(socket, true)?;
            // Connections inherit them, so that they cost nothing.
            set_options(socket)?;
            epoll::add(&epoll, socket, EventData::new_u64(number), flags)?;
        }
        epoll::add(&epoll, &bell.fd, EventData::new_u64(BELL), EventFlags::IN)?;
        let shared =
            |fd: OwnedFd| Shared { local: only_address(&fd), fd, inherited: Cell::new(false) };
        let sockets = sockets.into_iter().map(shared).collect();
        Ok(Self { epoll, sockets, handle, next: Cell::new(0), _bell: bell })
    }

    /// Blocks until there is a connection; `None` after `timeout`, and when the bell has been rung.
    ///
    /// Errors: after [`AcceptError::Resources`] wait before you call again.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Accepted>, AcceptError> {
        let state = &self.handle.state;
        if let Some(accepted) = self.try_accept()? {
            state.look_at_farewells(false);
            return Ok(Some(accepted));
        }
        state.look_at_farewells(true);
        let is_all = state.farewells.is_empty();
        let timeout = if is_all { timeout } else { timeout.min(FAREWELL_WAIT) };
        let timeout = Timespec::try_from(timeout).ok();
        let mut events =
            [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        state.before_wait(state.clock.precise_us());
        let ready = epoll::wait(&self.epoll, &mut events, timeout.as_ref());
        state.after_wait();
        match ready {
            Ok(count) => {
                let ready = events.get(..count).unwrap_or_default();
                if ready.is_empty() || ready.iter().any(|event| event.data.u64() == BELL) {
                    return Ok(None);
                }
            }
            Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(AcceptError::Broken(errno.into())),
        }
        self.try_accept()
    }

    /// A connection that is queued already; `None` when there is none, or another thread was
    /// faster.
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

/// What connections need in place: no call blocks for longer than [`IN_PLACE_WAIT`].
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
                // One that was queued before the options were set.
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
