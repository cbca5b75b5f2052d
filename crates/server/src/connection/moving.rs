//! Connections that go from one loop of a process to another: one that has just been accepted, and
//! one that waits for its next request. What crosses is a value of its own that has nothing of
//! either loop; whatever counted the connection on the one counts it on the other.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rt::{Accepted, Deadline, Detached, Inbox, Stream};

use super::{Connection, Open, Serving, connect};
use crate::client::{Client, KeepAlive, TlsFacts};
use crate::engine::Engine;
use crate::host::Host;
use crate::hostname::Names;

/// A connection on its way to another loop.
#[derive(Debug)]
pub enum Gift {
    /// Of which nothing has been read.
    Accepted(Accepted),
    /// Whose last request has been answered.
    Kept(Box<Kept>),
}

/// A connection between two requests, and all that is known of it.
pub struct Kept {
    detached: Detached,
    /// Until when it may wait for its next request.
    deadline: Deadline,
    peer: SocketAddr,
    local: SocketAddr,
    base_host: Arc<Host>,
    tls: Option<TlsFacts>,
    names: Option<Names>,
    log_id: Option<[u8; 12]>,
    answered: u32,
    received_before: u64,
    head_began_ms: u64,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// A gift crosses threads.
const _: () = {
    const fn crosses_threads<T: Send>() {}
    crosses_threads::<Gift>();
};

/// Which idle connections of a loop may leave it, and whereto.
#[derive(Default)]
pub struct Leaving {
    active: Cell<usize>,
    quiet: Cell<usize>,
    to: RefCell<Option<Arc<Inbox<Gift>>>>,
}

impl Leaving {
    /// From now on so many connections may leave for `to`: of those that have had a request a
    /// moment ago, and of those that have been quiet for longer. What was allowed before is over.
    pub fn allow(&self, to: Arc<Inbox<Gift>>, active: usize, quiet: usize) {
        self.active.set(active);
        self.quiet.set(quiet);
        self.to.replace(Some(to));
    }

    /// Nobody may leave any more.
    pub fn forbid(&self) {
        self.active.set(0);
        self.quiet.set(0);
        self.to.replace(None);
    }

    /// Whether a connection that has had a request a moment ago may leave.
    pub(super) fn is_for_active(&self) -> bool {
        self.active.get() > 0
    }

    /// Whether any may.
    pub(super) fn is_for_any(&self) -> bool {
        self.active.get() + self.quiet.get() > 0
    }

    /// Where one goes that leaves, `None` where nobody takes it. `is_active`: it is one of those
    /// that have had a request a moment ago. Of many that have one often only some are told from
    /// quiet ones, so that the others go as either.
    fn take(&self, is_active: bool) -> Option<Arc<Inbox<Gift>>> {
        let budget = if is_active || self.quiet.get() == 0 { &self.active } else { &self.quiet };
        let left = budget.get().checked_sub(1)?;
        let to = self.to.borrow().clone().filter(|to| to.has_room());
        match to {
            Some(_) => budget.set(left),
            None => self.forbid(),
        }
        to
    }
}

/// Serves a connection that another loop gave away, until it ends. It counts as open from the call
/// on.
pub fn settle(engine: Rc<Engine>, gift: Gift) -> impl Future<Output = ()> {
    engine.connections.joined();
    let open = Open(engine);
    match gift {
        Gift::Accepted(accepted) => Serving::Connecting(Box::pin(connect(open, accepted))),
        Gift::Kept(kept) => kept.arrive(open),
    }
}

impl Kept {
    fn arrive(self, open: Open) -> Serving {
        let engine = open.0.clone();
        let Ok(stream) = Stream::attach(self.detached) else { return Serving::Done };
        let client = Client {
            id: engine.next_connection_id(),
            peer: self.peer,
            local: self.local,
            base_host: self.base_host,
            tls: self.tls.map(Rc::new),
            keepalives: Cell::new(self.answered),
            bytes_in: Cell::new(0),
            bytes_out: Cell::new(0),
            first_byte_us: Cell::new(0),
            aborted: Cell::new(false),
            keepalive: Cell::new(KeepAlive::Open),
            names: self.names.map_or_else(OnceCell::new, |names| OnceCell::from(Rc::new(names))),
            log_id: Cell::new(self.log_id),
        };
        let connection = Connection {
            engine,
            stream: Some(stream),
            client: Rc::new(client),
            answered: self.answered,
            received_before: self.received_before,
            head_began_ms: self.head_began_ms,
            open: Some(open),
        };
        Serving::Idle(connection, self.deadline)
    }
}

impl Connection {
    /// Whether it is between two requests, with nothing of the next one here.
    pub(super) fn may_leave(&self) -> bool {
        self.answered > 0 && self.stream.as_ref().is_some_and(Stream::is_quiet)
    }

    /// Goes to another loop if one takes it; else it is still here. `is_active`: it has had a
    /// request a moment ago.
    pub(super) fn leave(mut self, deadline: Deadline, is_active: bool) -> Serving {
        let to = self.engine.leaving.take(is_active);
        let (Some(to), Some(stream)) = (to, self.stream.take()) else {
            return Serving::Idle(self, deadline);
        };
        let client = &self.client;
        let kept = Kept {
            detached: stream.detach(),
            deadline,
            peer: client.peer,
            local: client.local,
            base_host: client.base_host.clone(),
            // Request buffers of this loop may keep the client for a while: it gets copies.
            tls: client.tls.as_deref().cloned(),
            names: client.names.get().map(|names| Names::clone(names)),
            log_id: client.log_id.get(),
            answered: self.answered,
            received_before: self.received_before,
            head_began_ms: self.head_began_ms,
        };
        match (to.put(Gift::Kept(Box::new(kept))), self.open.take()) {
            // Another loop was faster, or that one ends.
            (Err(Gift::Kept(kept)), Some(open)) => kept.arrive(open),
            (Err(_), _) => Serving::Done,
            (Ok(()), _) => {
                self.engine.slot.add_moved(1);
                Serving::Done
            }
        }
    }
}
