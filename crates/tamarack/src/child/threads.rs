//! Threads with one connection each, which block in place: prefork and worker.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
        let door = match Door::new(sockets, bell) {
            Ok(door) => door,
            Err(error) => return report(&engine, &AcceptError::Broken(error)),
        };
        // Whatever else runs here begins.
        tokio::task::yield_now().await;
        while *common.state.borrow() == State::Serve {
            let waiting = reserve.as_ref().map(Reserve::wait);
            if starting.take().is_some_and(|count| count.fetch_sub(1, Ordering::AcqRel) == 1) {
                // Not before: who is said to serve and does not count as idle seems to be busy.
                common.control.report_ready();
            }
            match door.wait(WAIT) {
                Ok(Some(accepted)) => {
                    common.counted();
                    if let Some(waiting) = waiting {
                        waiting.took();
                    }
                    serve(&engine, &mut common, accepted).await;
                }
                Ok(None) => {
                    drop(waiting);
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
        engine.draining.set(true);
        // Nobody else accepts what is queued: the sockets are about to be closed.
        while *common.state.borrow() == State::Finish {
            let Ok(Some(accepted)) = door.try_accept() else { break };
            serve(&engine, &mut common, accepted).await;
        }
        beat.abort();
        engine.every_second();
    }
}

/// Serves a connection to its end, or until everything is to stop. What comes first of an order to
/// finish is seen by the connection itself: its next answer is its last.
async fn serve(engine: &Rc<Engine>, common: &mut Common, accepted: Accepted) {
    // A task of its own, so that a panic ends the connection and not the thread.
    let mut served = engine.handle.spawn_local(connection::serve(engine.clone(), accepted));
    loop {
        tokio::select! {
            biased;
            _ = &mut served => return,
            changed = common.state.changed() => match *common.state.borrow() {
                State::Stop => return served.abort(),
                _ if changed.is_err() => return served.abort(),
                State::Serve => {}
                State::Finish | State::Leave => engine.draining.set(true),
            },
        }
    }
}
