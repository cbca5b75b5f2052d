//! Loops with many connections each: event and loop.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use mpm::{LoopSeat, Settings};
use rt::{AcceptError, Accepted, Acceptor, Handle};
use server::connection;
use server::engine::Engine;
use server::log::Level;

use super::neighbours::{Giver, Limits, Neighbour};
use super::{Common, State, heartbeat, report};

/// How long a loop that has no room for connections waits before it looks again.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// How often it says so.
const FULL_TOLD_EVERY: Duration = Duration::from_secs(10);

/// What a loop is started with.
pub(super) struct Seat {
    pub common: Common,
    pub limits: Limits,
    /// The loops of the process, where there are several.
    pub neighbours: Option<Arc<[Neighbour]>>,
}

/// How many connections of a loop may have a request at the same time.
#[derive(Clone, Copy)]
pub(super) struct Admission {
    /// So many at most.
    pub most: usize,
    /// So many are worth a word.
    pub near: usize,
}

impl Admission {
    /// The share of each of the shape's loops.
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

/// How busy a loop is, as its [`Admission`] has it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Busy {
    Little,
    Nearly,
    Full,
}

impl Seat {
    /// Runs the loop until it is told to end.
    pub(super) async fn run(self, handle: Handle, seat: LoopSeat) {
        let Self { mut common, limits, neighbours } = self;
        let engine = common.engine(&handle, &seat);
        let giver = neighbours.map(|all| Giver::new(all, seat.index, engine.clone()));
        let gate = Rc::new(Gate {
            engine: engine.clone(),
            common: common.clone(),
            giver: giver.clone(),
            limits,
            told_at: Cell::new(None),
            busy: Cell::new(Busy::Little),
            taken: Cell::new(0),
            seen: Cell::new(0),
        });
        let mut accepting = Vec::new();
        for socket in seat.sockets {
            let Ok(acceptor) = Acceptor::from_fd(socket.socket.into()) else { continue };
            accepting.push(handle.spawn_local(gate.clone().accept(acceptor)));
        }
        let beat = handle.spawn_local(heartbeat(engine.clone(), common.process));
        let deciding = giver.clone().map(|giver| {
            handle.spawn_local(giver.clone().receive());
            handle.spawn_local(giver.decide())
        });
        let told = common.state.changed().await;
        if told.is_ok() && matches!(*common.state.borrow(), State::Finish | State::Leave) {
            engine.draining.set(true);
            if let Some(deciding) = &deciding {
                deciding.abort();
            }
            if let Some(giver) = &giver {
                giver.close();
            }
            for task in accepting {
                let _ = task.await;
            }
            while engine.connections.open() > 0 && *common.state.borrow() != State::Stop {
                handle.sleep(Duration::from_millis(20)).await;
            }
        }
        beat.abort();
        engine.every_second();
    }
}

/// Where connections come into a loop, at all of its listening sockets.
struct Gate {
    engine: Rc<Engine>,
    common: Common,
    giver: Option<Rc<Giver>>,
    limits: Limits,
    /// When it was said last that there is no room.
    told_at: Cell<Option<Instant>>,
    /// How busy the loop was, when it was looked last.
    busy: Cell<Busy>,
    /// Connections that were taken.
    taken: Cell<u64>,
    /// Of these, those that have had their turn since: what they are about counts by now.
    seen: Cell<u64>,
}

/// Whether there is room for a connection.
#[derive(Clone, Copy, PartialEq)]
enum Room {
    Some,
    /// Not if all that were taken a moment ago have requests.
    Unknown,
    None,
}

impl Gate {
    /// Accepts until the loop is to finish; then what is queued already, and no more.
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
                        report(&self.engine, &error);
                        if matches!(error, AcceptError::Broken(_)) {
                            return;
                        }
                    }
                    None => {}
                },
            }
        }
        while let Ok(Some(accepted)) = acceptor.try_accept() {
            self.engine.handle.spawn_local(connection::serve(self.engine.clone(), accepted));
        }
    }

    /// The next connection; `None` where there was no room for one, or nobody knew.
    ///
    /// It is judged whenever one may be there, and not only before the wait: what has come
    /// meanwhile, at another address or on a connection that was idle, may have filled the loop.
    async fn next(&self, acceptor: &Acceptor) -> Option<Result<Accepted, AcceptError>> {
        let mut accepting = pin!(acceptor.accept());
        let next = poll_fn(|cx| match self.room() {
            Room::Some => accepting.as_mut().poll(cx).map(Ok),
            room => Poll::Ready(Err(room)),
        });
        match next.await {
            Ok(accepted) => return Some(accepted),
            Err(Room::Unknown) => self.see().await,
            Err(_) => self.engine.handle.sleep(FULL_PAUSE).await,
        }
        None
    }

    /// Lets those that were taken have a turn: to read, and to begin with their answers.
    async fn see(&self) {
        let taken = self.taken.get();
        tokio::task::yield_now().await;
        self.engine.handle.drained().await;
        self.seen.set(self.seen.get().max(taken));
    }

    /// Serves a connection, or hands it to a loop that has less to do.
    fn take(&self, accepted: Accepted) {
        let accepted = match &self.giver {
            Some(giver) => giver.pass_on(accepted),
            None => Some(accepted),
        };
        if let Some(accepted) = accepted {
            self.taken.set(self.taken.get() + 1);
            self.engine.handle.spawn_local(connection::serve(self.engine.clone(), accepted));
        }
    }

    /// Whether a connection has to wait; said to whom it concerns.
    fn room(&self) -> Room {
        let Limits { room, admission } = self.limits;
        let connections = &self.engine.connections;
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

    /// Says that connections have to wait, from time to time.
    fn tell_full(&self) {
        if self.told_at.get().is_none_or(|at| at.elapsed() >= FULL_TOLD_EVERY) {
            self.told_at.set(Some(Instant::now()));
            let room = self.limits.room;
            self.engine.log_main(
                Level::Error,
                20003,
                format_args!(
                    "{room} connections are open, more wait: the limit on open files (ulimit -n) \
                     leaves no room for them"
                ),
            );
        }
    }
}
