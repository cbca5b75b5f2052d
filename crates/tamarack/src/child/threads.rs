//! Threads with one connection each, which block in place: prefork and worker.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use mpm::{LoopSeat, Reserve};
use rt::{AcceptError, Accepted, Bell, Door, Handle};
use server::connection;
use server::engine::Engine;

use super::{Common, State, heartbeat, report};

/// The longest wait for a connection before the thread's timers have their turn.
const WAIT: Duration = Duration::from_secs(1);
/// How long a thread waits after the system had no descriptor or memory for a connection.
const NO_RESOURCES_PAUSE: Duration = Duration::from_millis(100);

/// How often a thread that is to end looks whether its last clients have closed.
const FAREWELL_PAUSE: Duration = Duration::from_millis(20);

/// How long a thread that is to end and has a connection leaves what is queued to idle ones.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(1);
/// Connections that it takes after that, at most: what a queue usually holds.
const TAKEN_MAX: usize = 511;

/// What a thread is started with.
pub(super) struct Seat {
    pub common: Common,
    /// Where threads that wait count themselves.
    pub reserve: Option<Reserve>,
    /// Rung when there is an order.
    pub bell: Arc<Bell>,
    /// Threads of the process that do not wait for connections yet.
    pub starting: Arc<AtomicUsize>,
}

impl Seat {
    /// Serves one connection after the other until it is told to end.
    pub(super) async fn run(self, handle: Handle, seat: LoopSeat) {
        let Self { mut common, reserve, bell, starting } = self;
        let mut starting = Some(starting);
        let engine = common.engine(&handle, &seat);
        let sockets = seat.sockets.into_iter().map(|socket| socket.socket.into()).collect();
        let beat = handle.spawn_local(heartbeat(engine.clone(), common.process));
        let mut post = match Door::new(sockets, bell) {
            Ok(door) => Post { door: Some(door), taken: VecDeque::new() },
            Err(error) => return report(&engine, &AcceptError::Broken(error)),
        };
        // Whatever else runs here begins.
        tokio::task::yield_now().await;
        // Kept while no connection comes: a thread that looks after its timers meanwhile is idle.
        let mut still = None;
        while *common.state.borrow() == State::Serve {
            let waiting = still.take().or_else(|| reserve.as_ref().map(Reserve::wait));
            if starting.take().is_some_and(|count| count.fetch_sub(1, Ordering::AcqRel) == 1) {
                // Not before: who is said to serve and does not count as idle seems to be busy.
                common.control.report_ready();
            }
            let Some(door) = &post.door else { break };
            match door.wait(WAIT) {
                Ok(Some(accepted)) => {
                    common.counted();
                    if let Some(waiting) = waiting {
                        waiting.took();
                    }
                    serve(&engine, &mut common, accepted, &mut post).await;
                    handle.give_turn().await;
                }
                Ok(None) => {
                    still = waiting;
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    drop(waiting);
                    report(&engine, &error);
                    if matches!(error, AcceptError::Broken(_)) {
                        break;
                    }
                    handle.sleep(NO_RESOURCES_PAUSE).await;
                }
            }
        }
        drop(still);
        engine.draining.set(true);
        // Nobody else accepts what is queued: the sockets are about to be closed.
        while *common.state.borrow() == State::Finish {
            let Some(accepted) = post.next() else { break };
            serve(&engine, &mut common, accepted, &mut post).await;
        }
        while *common.state.borrow() != State::Stop && handle.has_farewells() {
            handle.sleep(FAREWELL_PAUSE).await;
        }
        beat.abort();
        engine.every_second();
    }
}

/// Where a thread gets its connections.
struct Post {
    /// Closed when the process is to end: a thread that is busy for long holds no port.
    door: Option<Door>,
    /// Connections that were taken before it was closed.
    taken: VecDeque<Accepted>,
}

impl Post {
    fn is_open(&self) -> bool {
        self.door.is_some()
    }

    /// A connection that there is already.
    fn next(&mut self) -> Option<Accepted> {
        let queued = || self.door.as_ref().and_then(|door| door.try_accept().ok().flatten());
        queued().or_else(|| self.taken.pop_front())
    }

    /// Closes the door. What is queued still was taken by nobody: all others are as busy.
    fn leave(&mut self, state: State) {
        let Some(door) = self.door.take().filter(|_| state == State::Finish) else { return };
        while self.taken.len() < TAKEN_MAX
            && let Ok(Some(accepted)) = door.try_accept()
        {
            self.taken.push_back(accepted);
        }
    }
}

/// Serves a connection to its end, or until everything is to stop. What comes first of an order to
/// finish is seen by the connection itself: its next answer is its last.
async fn serve(engine: &Rc<Engine>, common: &mut Common, accepted: Accepted, post: &mut Post) {
    let mut serving = pin!(connection::serve(engine.clone(), accepted));
    let mut served = poll_fn(move |cx| {
        // A panic ends the connection and not the thread.
        let polled = catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(cx)));
        polled.unwrap_or(Poll::Ready(()))
    });
    let mut has_orders = true;
    loop {
        let is_leaving = engine.draining.get() && post.is_open();
        tokio::select! {
            biased;
            _ = &mut served => return,
            // Heard however much the connection does at a time.
            changed = tokio::task::unconstrained(common.state.changed()), if has_orders => {
                match *common.state.borrow() {
                    State::Stop => return,
                    State::Serve => {}
                    State::Finish | State::Leave => engine.draining.set(true),
                }
                // Without a supervisor no more come: what there is is finished.
                has_orders = changed.is_ok();
            }
            () = engine.handle.sleep(LEFT_TO_OTHERS), if is_leaving => {
                post.leave(*common.state.borrow());
            }
        }
    }
}
