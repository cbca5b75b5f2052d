//! Connections to a worker: how many may be open, who waits for one, and which are kept between
//! requests. Source: `ap_proxy_acquire_connection`, `apr_reslist`.
//!
//! Idle connections belong to a loop, last in, first out. `max` holds for all loops of a process:
//! a connection counts from before it is opened until it is closed, which costs one atomic
//! operation each, and none per request. `smax` is compared by each loop alone.
//!
//! `maxtotal`, which Apache lacks, holds for all processes. A request that waits looks again after
//! [`TOTAL_PAUSE`], and says so: other processes close connections then.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rt::{Deadline, Detached, Handle, Inbox, Stream};
use server::engine::Engine;

use super::detour::Detour;
use super::shared::State;
use super::tls::Security;
use super::workers::Worker;

/// The most requests that wait for connections to one worker.
const QUEUE_MAX: usize = 65_536;

/// The pause after which a request looks for a connection of another process.
const TOTAL_PAUSE: Duration = Duration::from_millis(10);

/// A place among the open connections to a worker; dropping it makes room for another.
pub struct Slot {
    state: Arc<State>,
    limits: Limits,
    /// The TLS of the connection in this place; `None` for a plain one.
    pub(super) security: Option<Security>,
    /// Where that connection leads; `None`: to the worker's own place.
    pub(super) detour: Option<Detour>,
    /// The state of that connection's protocol, if it outlives a request.
    pub(super) protocol: Option<Box<wire::h2::Connection>>,
}

/// The most connections.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Of a process.
    own: u64,
    /// Of all processes.
    total: Option<u64>,
}

impl Limits {
    /// Whether a request of another process waits: this one's own look again soon, too.
    fn is_wanted(self, state: &State) -> bool {
        self.total.is_some()
            && Handle::current().is_some_and(|handle| state.is_wanted(handle.clock().now_ms()))
    }
}

impl Slot {
    fn new(state: &Arc<State>, limits: Limits) -> Slot {
        Slot { state: state.clone(), limits, security: None, detour: None, protocol: None }
    }

    /// Takes a place, if there are fewer connections than the limits.
    fn take(state: &Arc<State>, limits: Limits) -> Option<Slot> {
        let more = |open: u64| (open < limits.own).then_some(open + 1);
        state.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        if limits.total.is_some_and(|total| !state.open_one(total)) {
            state.open.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        Some(Slot::new(state, limits))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let (state, limits) = (&self.state, self.limits);
        if !limits.is_wanted(state)
            && let Some(waiter) = state.queue.next()
        {
            // The place is passed on.
            return waiter.give(Given::Slot(Slot::new(state, limits)));
        }
        state.open.fetch_sub(1, Ordering::SeqCst);
        if limits.total.is_some() {
            state.close_one();
        }
        // One may have joined since, and have seen no room.
        if limits.total.is_none()
            && state.queue.has_waiters()
            && let Some(slot) = Slot::take(state, limits)
        {
            drop(slot);
        }
    }
}

/// What a waiting request gets.
enum Given {
    /// A place for a connection of its own.
    Slot(Slot),
    /// A connection of another request, perhaps of another loop.
    Connection(Detached, Slot),
}

/// Requests of all loops that wait for connections to a worker, in their order.
#[derive(Default)]
pub struct Queue {
    /// Readable without the lock.
    count: AtomicUsize,
    waiters: Mutex<VecDeque<Arc<Waiter>>>,
}

struct Waiter {
    inbox: Inbox<Given>,
}

impl Waiter {
    fn give(&self, given: Given) {
        // If the request has stopped waiting, its place goes to the next.
        drop(self.inbox.put(given));
    }
}

impl Queue {
    /// Whether a request waits.
    pub fn has_waiters(&self) -> bool {
        self.count() > 0
    }

    /// How many requests wait.
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn next(&self) -> Option<Arc<Waiter>> {
        if !self.has_waiters() {
            return None;
        }
        let mut waiters = self.lock();
        let first = waiters.pop_front();
        self.count.store(waiters.len(), Ordering::SeqCst);
        first
    }

    fn join(&self) -> Option<Arc<Waiter>> {
        let mut waiters = self.lock();
        if waiters.len() >= QUEUE_MAX {
            return None;
        }
        let waiter = Arc::new(Waiter { inbox: Inbox::new(1) });
        waiters.push_back(waiter.clone());
        self.count.store(waiters.len(), Ordering::SeqCst);
        Some(waiter)
    }

    fn leave(&self, waiter: &Arc<Waiter>) {
        let mut waiters = self.lock();
        waiters.retain(|other| !Arc::ptr_eq(other, waiter));
        self.count.store(waiters.len(), Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Waiter>>> {
        // Nothing panics under the lock.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves the queue when the request no longer waits.
struct Waiting<'s> {
    state: &'s State,
    waiter: Arc<Waiter>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.state.queue.leave(&self.waiter);
        self.waiter.inbox.close();
        drop(self.waiter.inbox.take_now());
    }
}

/// A connection of which no request makes use.
struct Idle {
    stream: Stream,
    slot: Slot,
    since_ms: u64,
}

/// What the parameters of a worker say of its connections.
#[derive(Clone, Copy, Debug)]
struct Rules {
    limits: Limits,
    smax: Option<usize>,
    ttl_ms: Option<u64>,
    acquire: Option<Duration>,
}

/// The connections of one loop to a worker that are idle.
pub struct Pool {
    state: Arc<State>,
    rules: Rules,
    idle: RefCell<Vec<Idle>>,
    /// The idle connections that metrics have been told of.
    told: Cell<usize>,
}

/// What [`Pool::acquire`] has found.
pub enum Acquired {
    /// A connection that has served requests.
    Reused(Stream, Slot),
    /// Room for a new one.
    Slot(Slot),
}

thread_local! {
    /// This loop's pools, by the numbers of their workers.
    static POOLS: RefCell<Vec<Option<Rc<Pool>>>> = const { RefCell::new(Vec::new()) };
}

impl Pool {
    /// This loop's pool of a worker. Another configuration's pool of the same number is closed.
    pub fn of(worker: &Worker) -> Rc<Pool> {
        let (pool, outdated) = POOLS.with_borrow_mut(|pools| {
            if pools.len() <= worker.number {
                pools.resize(worker.number + 1, None);
            }
            let place = pools.get_mut(worker.number);
            let known = place.as_ref().and_then(|place| place.as_ref());
            if let Some(pool) = known.filter(|pool| Arc::ptr_eq(&pool.state, &worker.state)) {
                return (pool.clone(), None);
            }
            let pool = Rc::new(Pool::new(worker));
            let outdated = place.and_then(|place| place.replace(pool.clone()));
            (pool, outdated)
        });
        // Closes connections, which is no work for within the borrow.
        drop(outdated);
        pool
    }

    fn new(worker: &Worker) -> Pool {
        let parameters = &worker.parameters;
        let count = |set: Option<u32>| set.filter(|count| *count > 0);
        let rules = Rules {
            limits: Limits {
                own: count(parameters.max).map_or(u64::MAX, u64::from),
                total: count(parameters.max_total).map(u64::from),
            },
            smax: count(parameters.smax).map(|count| count as usize),
            ttl_ms: parameters.ttl.map(|ttl| ttl.as_millis() as u64),
            acquire: parameters.acquire,
        };
        Pool { state: worker.state.clone(), rules, idle: RefCell::default(), told: Cell::new(0) }
    }

    /// The number of idle connections.
    pub fn idle(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Takes an idle connection, or room for a new one. At `max` it waits for `acquire`; `None` if
    /// there was neither in time.
    pub async fn acquire(&self, handle: &Handle) -> Option<Acquired> {
        if let Some((stream, slot)) = self.take(handle.clock().now_ms()) {
            return Some(Acquired::Reused(stream, slot));
        }
        self.make_room(handle).await
    }

    /// Takes room for a new connection. At `max` it waits as [`Pool::acquire`] does, and may be
    /// given a connection that has served.
    pub async fn make_room(&self, handle: &Handle) -> Option<Acquired> {
        match Slot::take(&self.state, self.rules.limits) {
            Some(slot) => Some(Acquired::Slot(slot)),
            None => self.wait(handle).await,
        }
    }

    async fn wait(&self, handle: &Handle) -> Option<Acquired> {
        let waiting = Waiting { state: &self.state, waiter: self.state.queue.join()? };
        // Room may have been made since.
        if let Some(slot) = Slot::take(&self.state, self.rules.limits) {
            return Some(Acquired::Slot(slot));
        }
        let end = self.rules.acquire.map_or(Deadline::NEVER, |time| handle.deadline(time));
        let given = loop {
            let pause = match self.rules.limits.total {
                Some(_) => handle.deadline(TOTAL_PAUSE).min(end),
                None => end,
            };
            tokio::select! {
                biased;
                given = waiting.waiter.inbox.take() => break given?,
                () = handle.sleep_until(pause) => {}
            }
            if end.has_passed(handle.clock()) {
                return None;
            }
            self.state.want(handle.clock().now_ms());
            if let Some(slot) = Slot::take(&self.state, self.rules.limits) {
                return Some(Acquired::Slot(slot));
            }
        };
        match given {
            Given::Slot(slot) => Some(Acquired::Slot(slot)),
            Given::Connection(detached, slot) => match Stream::attach(detached) {
                // What its server has sent unasked must not answer another request.
                Ok(stream) if stream.is_quiet() => Some(Acquired::Reused(stream, slot)),
                Ok(_) | Err(_) => Some(Acquired::Slot(slot)),
            },
        }
    }

    /// Takes the connection that became idle last and is still open.
    pub(super) fn take(&self, now_ms: u64) -> Option<(Stream, Slot)> {
        loop {
            let Idle { mut stream, slot, since_ms } = self.idle.borrow_mut().pop()?;
            if !self.has_expired(since_ms, now_ms) && slot.is_usable(&mut stream) {
                return Some((stream, slot));
            }
        }
    }

    /// Keeps a connection for another request, or gives it to one that waits.
    pub(super) fn put(&self, stream: Stream, slot: Slot) {
        if self.rules.limits.is_wanted(&self.state) {
            // Closed, so that the other process has room.
            return;
        }
        if let Some(waiter) = self.state.queue.next() {
            return waiter.give(Given::Connection(stream.detach(), slot));
        }
        let since_ms = stream.handle().clock().now_ms();
        self.idle.borrow_mut().push(Idle { stream, slot, since_ms });
    }

    /// Tells metrics of this process's connections.
    fn tell(&self) {
        if let Some(own) = self.state.own_gauges() {
            own.set(self.state.open.load(Ordering::Relaxed), self.state.queue.count() as u64);
            let idle = self.idle();
            own.replace_idle(self.told.replace(idle), idle);
        }
    }

    fn has_expired(&self, since_ms: u64, now_ms: u64) -> bool {
        self.rules.ttl_ms.is_some_and(|ttl| now_ms.saturating_sub(since_ms) >= ttl)
    }

    /// Closes the connections that their servers have closed, that are older than `ttl`, and
    /// without one those above `smax`; gives others to requests of other loops that wait.
    fn maintain(&self, now_ms: u64) {
        let mut kept = std::mem::take(&mut *self.idle.borrow_mut());
        if self.rules.limits.is_wanted(&self.state) {
            return;
        }
        kept.retain_mut(|idle| {
            !self.has_expired(idle.since_ms, now_ms) && idle.slot.is_usable(&mut idle.stream)
        });
        if let (Some(smax), None) = (self.rules.smax, self.rules.ttl_ms) {
            let surplus = kept.len().saturating_sub(smax);
            kept.drain(..surplus);
        }
        for Idle { stream, slot, since_ms } in kept {
            match self.state.queue.has_waiters() {
                true => self.put(stream, slot),
                false => self.idle.borrow_mut().push(Idle { stream, slot, since_ms }),
            }
        }
    }
}

/// Maintains this loop's pools; closes them if the loop ends.
pub fn every_second(engine: &Engine) {
    if engine.draining.get() {
        return drop(POOLS.take());
    }
    let now_ms = engine.handle.clock().now_ms();
    let pools = POOLS.with_borrow(Clone::clone);
    for pool in pools.iter().flatten() {
        pool.maintain(now_ms);
        if engine.server.counts_hosts {
            pool.tell();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let told = self.told.get();
        if let Some(own) = self.state.own_gauges().filter(|_| told > 0) {
            own.replace_idle(told, 0);
        }
    }
}

#[cfg(test)]
mod tests;
