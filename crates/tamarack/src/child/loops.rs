//! Loops with many connections each: event and loop.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::connection;
use http::service::Service;
use messages::Message;
use mpm::{LoopSpec, Settings};
use rt::{AcceptError, Accepted, Acceptor, Handle};
use server::log::Level;

use super::rebalance::{Limits, PeerLoop, Rebalancer};
use super::{Common, State, heartbeat, report};

/// How long a full loop waits before it checks for room again.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// How often it logs that it is full.
const FULL_TOLD_EVERY: Duration = Duration::from_secs(10);

/// What a loop is started with.
pub(super) struct LoopTask {
    pub common: Common,
    pub limits: Limits,
    /// The loops of the process, if there are several.
    pub peers: Option<Arc<[PeerLoop]>>,
}

/// How many connections of a loop may have a request at the same time.
#[derive(Clone, Copy)]
pub(super) struct Admission {
    /// At this number the loop is full.
    pub most: usize,
    /// At this number the loop is nearly full, which is logged.
    pub near: usize,
}

impl Admission {
    /// Each loop's share of the shape's limits.
    pub(super) fn of(settings: &Settings) -> Self {
        let loops = settings.shape.total_loops().max(1);
        let share = |all: usize| (all / loops).max(1);
        Self { most: share(settings.admitted), near: share(settings.nearly_admitted) }
    }

    fn judge(self, busy: usize) -> Busy {
        match busy {
            busy if busy >= self.most => Busy::Full,
            busy if busy >= self.near => Busy::Nearly,
            _ => Busy::Little,
        }
    }
}

/// How busy a loop is, by its [`Admission`].
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Busy {
    Little,
    Nearly,
    Full,
}

impl LoopTask {
    /// Runs the loop until it is ordered to end.
    pub(super) async fn run(self, handle: Handle, spec: LoopSpec) {
        let Self { mut common, limits, peers } = self;
        let service = common.service(&handle, &spec);
        let rebalancer = peers.map(|all| Rebalancer::new(all, spec.index, service.clone()));
        let gate = Rc::new(AcceptGate {
            service: service.clone(),
            common: common.clone(),
            rebalancer: rebalancer.clone(),
            limits,
            told_at: Cell::new(None),
            busy: Cell::new(Busy::Little),
            taken: Cell::new(0),
            seen: Cell::new(0),
        });
        let mut accepting = Vec::new();
        for socket in spec.sockets {
            let Ok(acceptor) = Acceptor::from_fd(socket.socket.into()) else { continue };
            accepting.push(handle.spawn_local(gate.clone().accept(acceptor)));
        }
        let beat = handle.spawn_local(heartbeat(service.clone(), common.process));
        let deciding = rebalancer.clone().map(|rebalancer| {
            handle.spawn_local(rebalancer.clone().receive());
            handle.spawn_local(rebalancer.decide())
        });
        let told = common.state.changed().await;
        if told.is_ok() && matches!(*common.state.borrow(), State::Finish | State::Leave) {
            service.draining.set(true);
            // Idle connections of HTTP/2 ask their clients to leave.
            handle.rouse(usize::MAX);
            if let Some(deciding) = &deciding {
                deciding.abort();
            }
            if let Some(rebalancer) = &rebalancer {
                rebalancer.close();
            }
            for task in accepting {
                let _ = task.await;
            }
            while service.connections.open() > 0 && *common.state.borrow() != State::Stop {
                handle.sleep(Duration::from_millis(20)).await;
            }
        }
        beat.abort();
        service.every_second();
    }
}

/// Admits connections to a loop, from all of its listening sockets.
struct AcceptGate {
    service: Rc<Service>,
    common: Common,
    rebalancer: Option<Rc<Rebalancer>>,
    limits: Limits,
    /// When the lack of room was last logged.
    told_at: Cell<Option<Instant>>,
    /// How busy the loop was at the last check.
    busy: Cell<Busy>,
    /// Connections accepted so far.
    taken: Cell<u64>,
    /// The ones among them that have had a turn since: their requests are counted by now.
    seen: Cell<u64>,
}

/// Whether there is room for a connection.
#[derive(Clone, Copy, PartialEq)]
enum Room {
    Some,
    /// Not if all connections accepted a moment ago have requests.
    Unknown,
    None,
}

impl AcceptGate {
    /// Accepts until the loop is ordered to finish, and then what is already queued.
    async fn accept(self: Rc<Self>, acceptor: Acceptor) {
        let mut state = self.common.state.clone();
        loop {
            tokio::select! {
                biased;
                changed = state.changed() => {
                    if changed.is_err() || *state.borrow() != State::Serve {
                        break;
                    }
                }
                accepted = self.next(&acceptor) => match accepted {
                    Some(Ok(accepted)) => {
                        self.common.counted();
                        self.take(accepted);
                    }
                    Some(Err(error)) => {
                        report(&self.service, &error);
                        if matches!(error, AcceptError::Broken(_)) {
                            return;
                        }
                    }
                    None => {}
                },
            }
        }
        while let Ok(Some(accepted)) = acceptor.try_accept() {
            self.service.handle.spawn_local(connection::serve(self.service.clone(), accepted));
        }
    }

    /// The next connection; `None` if there was no room for one, or if that was unknown.
    ///
    /// Checks for room whenever a connection may be queued, not only before the wait: connections
    /// accepted meanwhile at another address, or requests on idle ones, may have filled the loop.
    async fn next(&self, acceptor: &Acceptor) -> Option<Result<Accepted, AcceptError>> {
        let mut accepting = pin!(acceptor.accept());
        let next = poll_fn(|cx| match self.room() {
            Room::Some => accepting.as_mut().poll(cx).map(Ok),
            room => Poll::Ready(Err(room)),
        });
        match next.await {
            Ok(accepted) => return Some(accepted),
            Err(Room::Unknown) => self.see().await,
            Err(_) => self.service.handle.sleep(FULL_PAUSE).await,
        }
        None
    }

    /// Gives the accepted connections a turn, to read and to begin their responses.
    async fn see(&self) {
        let taken = self.taken.get();
        tokio::task::yield_now().await;
        self.service.handle.drained().await;
        self.seen.set(self.seen.get().max(taken));
    }

    /// Serves a connection, or hands it to a less busy loop.
    fn take(&self, accepted: Accepted) {
        let accepted = match &self.rebalancer {
            Some(rebalancer) => rebalancer.route(accepted),
            None => Some(accepted),
        };
        if let Some(accepted) = accepted {
            self.taken.set(self.taken.get() + 1);
            self.service.handle.spawn_local(connection::serve(self.service.clone(), accepted));
        }
    }

    /// Whether a connection may be accepted. Reports the limit to the supervisor and to the log.
    fn room(&self) -> Room {
        let Limits { room, admission } = self.limits;
        let connections = &self.service.connections;
        let requests = connections.busy();
        let busy = admission.judge(requests);
        match busy {
            busy if busy <= self.busy.get() => {}
            Busy::Full => self.common.control.full(),
            Busy::Nearly | Busy::Little => self.common.control.nearly_full(),
        }
        self.busy.set(busy);
        let unseen = usize::try_from(self.taken.get() - self.seen.get()).unwrap_or(usize::MAX);
        if connections.open() >= room {
            self.tell_full();
            return Room::None;
        }
        match busy {
            Busy::Full => Room::None,
            _ if requests.saturating_add(unseen) >= admission.most => Room::Unknown,
            _ => Room::Some,
        }
    }

    /// Logs, at an interval, that connections have to wait.
    fn tell_full(&self) {
        if self.told_at.get().is_none_or(|at| at.elapsed() >= FULL_TOLD_EVERY) {
            self.told_at.set(Some(Instant::now()));
            let room = self.limits.room;
            self.service.log_main(
                Level::Error,
                Message::DescriptorsExhausted.number(),
                format_args!(
                    "{room} connections are open and new ones wait: the limit on open files \
                     (ulimit -n) leaves no room for more"
                ),
            );
        }
    }
}
