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

use http::connection;
use http::service::Service;
use mpm::{LoopSpec, Reserve};
use rt::{AcceptError, Accepted, BlockingAcceptor, Handle, WakeAll};

use super::{Common, State, heartbeat, report};

/// The longest wait for a connection before the thread's timers run.
const WAIT: Duration = Duration::from_secs(1);
/// How long a thread pauses after the system ran out of descriptors or memory.
const NO_RESOURCES_PAUSE: Duration = Duration::from_millis(100);

/// How often a thread that is about to end polls its lingering closes.
const LINGERING_PAUSE: Duration = Duration::from_millis(20);

/// How long a busy thread that is ordered to end leaves the queue to idle threads.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(1);
/// Connections that it then takes at most: the usual length of a queue.
const TAKEN_MAX: usize = 511;

/// What a thread is started with.
pub(super) struct ThreadTask {
    pub common: Common,
    /// Counts the threads that wait for a connection.
    pub reserve: Option<Reserve>,
    /// Triggered by each order.
    pub wake_all: Arc<WakeAll>,
    /// Threads of the process that do not wait for connections yet.
    pub starting: Arc<AtomicUsize>,
}

impl ThreadTask {
    /// Serves one connection after another until it is ordered to end.
    pub(super) async fn run(self, handle: Handle, spec: LoopSpec) {
        let Self { mut common, reserve, wake_all, starting } = self;
        let mut starting = Some(starting);
        let service = common.service(&handle, &spec);
        let sockets = spec.sockets.into_iter().map(|socket| socket.socket.into()).collect();
        let beat = handle.spawn_local(heartbeat(service.clone(), common.process));
        let mut source = match BlockingAcceptor::new(sockets, wake_all) {
            Ok(acceptor) => ConnectionSource { acceptor: Some(acceptor), taken: VecDeque::new() },
            Err(error) => return report(&service, &AcceptError::Broken(error)),
        };
        // Lets the thread's other tasks begin.
        tokio::task::yield_now().await;
        // Kept while no connection arrives: a thread that runs its timers meanwhile is idle.
        let mut still = None;
        while *common.state.borrow() == State::Serve {
            let waiting = still.take().or_else(|| reserve.as_ref().map(Reserve::wait));
            if starting.take().is_some_and(|count| count.fetch_sub(1, Ordering::AcqRel) == 1) {
                // Reported after the thread counts as idle: a serving process without idle threads
                // looks busy.
                common.control.report_ready();
            }
            let Some(acceptor) = &source.acceptor else { break };
            match acceptor.wait(WAIT) {
                Ok(Some(accepted)) => {
                    common.counted();
                    if let Some(waiting) = waiting {
                        waiting.took();
                    }
                    serve(&service, &mut common, accepted, &mut source).await;
                    handle.give_turn().await;
                }
                Ok(None) => {
                    still = waiting;
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    drop(waiting);
                    report(&service, &error);
                    if matches!(error, AcceptError::Broken(_)) {
                        break;
                    }
                    handle.sleep(NO_RESOURCES_PAUSE).await;
                }
            }
        }
        drop(still);
        service.draining.set(true);
        // The sockets are about to be closed, so this thread must serve what is queued.
        while *common.state.borrow() == State::Finish {
            let Some(accepted) = source.next() else { break };
            serve(&service, &mut common, accepted, &mut source).await;
        }
        while *common.state.borrow() != State::Stop && handle.poll_lingering_closes() {
            handle.sleep(LINGERING_PAUSE).await;
        }
        beat.abort();
        service.every_second();
    }
}

/// The source of a thread's connections.
struct ConnectionSource {
    /// Dropped when the process is ordered to end, so that a thread with a long request holds no
    /// port.
    acceptor: Option<BlockingAcceptor>,
    /// Connections accepted before it was dropped.
    taken: VecDeque<Accepted>,
}

impl ConnectionSource {
    fn is_open(&self) -> bool {
        self.acceptor.is_some()
    }

    /// The next connection that is already there.
    fn next(&mut self) -> Option<Accepted> {
        let queued =
            || self.acceptor.as_ref().and_then(|acceptor| acceptor.try_accept().ok().flatten());
        queued().or_else(|| self.taken.pop_front())
    }

    /// Stops accepting, after draining the queue: every other thread is busy too.
    fn leave(&mut self, state: State) {
        let Some(acceptor) = self.acceptor.take().filter(|_| state == State::Finish) else {
            return;
        };
        while self.taken.len() < TAKEN_MAX
            && let Ok(Some(accepted)) = acceptor.try_accept()
        {
            self.taken.push_back(accepted);
        }
    }
}

/// Serves a connection to its end, or until an order to stop. The connection itself notices an
/// order to finish: its next response is its last.
async fn serve(
    service: &Rc<Service>,
    common: &mut Common,
    accepted: Accepted,
    source: &mut ConnectionSource,
) {
    let mut serving = pin!(connection::serve(service.clone(), accepted));
    let mut served = poll_fn(move |cx| {
        // A panic ends the connection, not the thread.
        let polled = catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(cx)));
        polled.unwrap_or(Poll::Ready(()))
    });
    let mut has_orders = true;
    loop {
        let is_leaving = service.draining.get() && source.is_open();
        tokio::select! {
            biased;
            _ = &mut served => return,
            // Unconstrained: orders are received however much the connection does at a time.
            changed = tokio::task::unconstrained(common.state.changed()), if has_orders => {
                match *common.state.borrow() {
                    State::Stop => return,
                    State::Serve => {}
                    State::Finish | State::Leave => service.draining.set(true),
                }
                // Without a supervisor no further orders arrive: finish the connection.
                has_orders = changed.is_ok();
            }
            () = service.handle.sleep(LEFT_TO_OTHERS), if is_leaving => {
                source.leave(*common.state.borrow());
            }
        }
    }
}
