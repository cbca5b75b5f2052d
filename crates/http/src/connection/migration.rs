//! Connections that migrate from one loop of a process to another: one that has just been accepted,
//! or one that waits for its next request. The value that crosses belongs to neither loop; a
//! counter of the connection on one is continued on the other.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rt::{Accepted, Deadline, Detached, Inbox, Stream};

use super::{Connection, Open, Serving, connect};
use crate::service::Service;
use server::connection_info::{ConnectionInfo, KeepAlive, Proxied, TlsFacts};
use server::host::Host;
use server::hostname::Names;

/// A connection on its way to another loop.
#[derive(Debug)]
pub enum Migration {
    /// A connection of which nothing has been read.
    Accepted(Accepted),
    /// A connection whose last request has been served.
    Idle(Box<IdleConnection>),
}

/// A connection between two requests, with all of its state.
pub struct IdleConnection {
    detached: Detached,
    /// The deadline for its next request.
    deadline: Deadline,
    peer: SocketAddr,
    local: SocketAddr,
    base_host: Arc<Host>,
    tls: Option<TlsFacts>,
    names: Option<Names>,
    logname: Option<Box<bstr::BString>>,
    log_id: Option<[u8; 12]>,
    proxied: Option<Box<Proxied>>,
    responses: u32,
    received_before: u64,
    head_began_ms: u64,
}

impl std::fmt::Debug for IdleConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdleConnection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// A migration crosses threads.
const _: () = {
    const fn crosses_threads<T: Send>() {}
    crosses_threads::<Migration>();
};

/// How many idle connections of a loop may migrate, and where to.
#[derive(Default)]
pub struct MigrationOrder {
    active: Cell<usize>,
    quiet: Cell<usize>,
    to: RefCell<Option<Arc<Inbox<Migration>>>>,
}

impl MigrationOrder {
    /// Lets this many connections migrate to `to`: `active` ones, which had a request recently, and
    /// `quiet` ones, which have been idle for longer. Replaces the previous order.
    pub fn set(&self, to: Arc<Inbox<Migration>>, active: usize, quiet: usize) {
        self.active.set(active);
        self.quiet.set(quiet);
        self.to.replace(Some(to));
    }

    /// Stops all migration.
    pub fn clear(&self) {
        self.active.set(0);
        self.quiet.set(0);
        self.to.replace(None);
    }

    /// Whether a connection that had a request recently may migrate.
    pub(super) fn allows_active(&self) -> bool {
        self.active.get() > 0
    }

    /// Whether any connection may migrate.
    pub(super) fn allows_any(&self) -> bool {
        self.active.get() + self.quiet.get() > 0
    }

    /// The inbox for a migrating connection, `None` if it can't migrate. `is_active`: it had a
    /// request recently. Only some of the connections with frequent requests are recognised as
    /// active; the others may go as either kind.
    fn next_inbox(&self, is_active: bool) -> Option<Arc<Inbox<Migration>>> {
        let budget = if is_active || self.quiet.get() == 0 { &self.active } else { &self.quiet };
        let left = budget.get().checked_sub(1)?;
        let to = self.to.borrow().clone().filter(|to| to.has_room());
        match to {
            Some(_) => budget.set(left),
            None => self.clear(),
        }
        to
    }
}

/// Serves a connection handed over by another loop until it ends. It counts as open from the call
/// on.
pub fn serve_migrated(engine: Rc<Service>, migration: Migration) -> impl Future<Output = ()> {
    engine.connections.joined();
    let open = Open(engine);
    match migration {
        Migration::Accepted(accepted) => Serving::Connecting(Box::pin(connect(open, accepted))),
        Migration::Idle(kept) => kept.resume(open),
    }
}

impl IdleConnection {
    fn resume(self, open: Open) -> Serving {
        let engine = open.0.clone();
        let Ok(stream) = Stream::attach(self.detached) else { return Serving::Done };
        let info = ConnectionInfo {
            id: engine.next_connection_id(),
            peer: self.peer,
            local: self.local,
            base_host: self.base_host,
            tls: self.tls.map(Rc::new),
            keepalives: Cell::new(self.responses),
            bytes_sent: Cell::new(0),
            aborted: Cell::new(false),
            keepalive: Cell::new(KeepAlive::Open),
            names: self.names.map_or_else(OnceCell::new, |names| OnceCell::from(Rc::new(names))),
            logname: self.logname.map_or_else(OnceCell::new, OnceCell::from),
            log_id: Cell::new(self.log_id),
            stream: None,
            proxied: self.proxied,
            interim: Cell::default(),
            pushing: Cell::default(),
        };
        let connection = Connection {
            engine,
            stream: Some(stream),
            info: Rc::new(info),
            responses: self.responses,
            received_before: self.received_before,
            head_began_ms: self.head_began_ms,
            open: Some(open),
        };
        Serving::Idle(connection, self.deadline)
    }
}

impl Connection {
    /// Whether it is between two requests, with nothing of the next one received.
    pub(super) fn can_migrate(&self) -> bool {
        self.responses > 0 && self.stream.as_ref().is_some_and(Stream::is_quiet)
    }

    /// Migrates to another loop if one takes the connection; else continues here. `is_active`: it
    /// had a request recently.
    pub(super) fn migrate(mut self, deadline: Deadline, is_active: bool) -> Serving {
        let to = self.engine.migration_order.next_inbox(is_active);
        let (Some(to), Some(stream)) = (to, self.stream.take()) else {
            return Serving::Idle(self, deadline);
        };
        let info = &self.info;
        let kept = IdleConnection {
            detached: stream.detach(),
            deadline,
            peer: info.peer,
            local: info.local,
            base_host: info.base_host.clone(),
            // Cloned, because this loop's request buffers may keep the client for a while.
            tls: info.tls.as_deref().cloned(),
            names: info.names.get().map(|names| Names::clone(names)),
            logname: info.logname.get().cloned(),
            log_id: info.log_id.get(),
            proxied: info.proxied.clone(),
            responses: self.responses,
            received_before: self.received_before,
            head_began_ms: self.head_began_ms,
        };
        match (to.put(Migration::Idle(Box::new(kept))), self.open.take()) {
            // The inbox was filled by another loop, or its loop ends.
            (Err(Migration::Idle(kept)), Some(open)) => kept.resume(open),
            (Err(_), _) => Serving::Done,
            (Ok(()), _) => {
                self.engine.slot.add_moved(1);
                Serving::Done
            }
        }
    }
}
