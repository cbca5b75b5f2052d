//! The loop: one thread, one tokio runtime that never leaves it, and a [`Handle`] to both.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinHandle;

use crate::blocking::BlockingPool;
use crate::clock::Clock;
use crate::lingering_close::LingeringCloses;
use crate::load::Load;
use crate::stream::Scratch;
use crate::timers::{self, Deadline, Sleep, Timers};
use crate::turn::{self, Drained, Turn};
use crate::watch::{ChangeSource, Watcher};

/// Task polls between two polls of the sockets while tasks are queued. Tokio's default of 61 splits
/// a turn of 64 busy connections into several, each with its own system call.
const TASKS_PER_TURN: u32 = 256;

/// The longest that a thread working in place blocks in one system call. It then waits as every
/// loop does, so that timers fire and orders arrive.
pub const IN_PLACE_WAIT: Duration = Duration::from_millis(200);

/// A loop that works in place runs its other tasks at least this often, in µs.
const TURN_US: u64 = 500_000;

thread_local! {
    static CURRENT: RefCell<Option<Rc<LoopState>>> = const { RefCell::new(None) };
}

/// The state of a loop. Its parts have interior mutability: all of it belongs to one thread.
pub(crate) struct LoopState {
    pub name: String,
    pub clock: Clock,
    pub timers: Timers,
    pub turn: Turn,
    pub scratch: RefCell<Scratch>,
    pub watcher: Option<Arc<Watcher>>,
    pub blocking: Arc<BlockingPool>,
    /// The thread serves one connection at a time and blocks in its system calls.
    pub in_place: bool,
    /// Counts the jobs that the thread currently runs itself, if a watchdog needs the count.
    pub jobs: Option<&'static AtomicU64>,
    /// When the other tasks last ran, in µs; for `in_place`.
    pub turned_us: Cell<u64>,
    /// Connections that linger before they are closed; for `in_place`.
    pub lingering_closes: LingeringCloses,
    load: Arc<Load>,
    wakeups: Cell<u64>,
}

impl LoopState {
    /// Applies all file events that precede this call.
    pub fn drain_now(&self) {
        if let Some(watcher) = &self.watcher {
            watcher.drain();
        }
    }

    /// Whether the other tasks must run because they have not for [`TURN_US`]. If so, polls the
    /// lingering closes and counts the turn as taken.
    pub fn is_turn_due(&self) -> bool {
        let is_due = self.has_turn_due();
        if is_due {
            self.turned_us.set(self.clock.now_us());
            self.poll_lingering_closes(true);
        }
        is_due
    }

    /// As [`is_turn_due`](Self::is_turn_due), without taking the turn.
    pub fn has_turn_due(&self) -> bool {
        self.clock.now_us().saturating_sub(self.turned_us.get()) >= TURN_US
    }

    /// Polls the lingering closes.
    pub fn poll_lingering_closes(&self, all: bool) {
        self.lingering_closes.poll(&self.clock, &self.scratch, all);
    }

    /// Ends the turn: the time up to `now_us`, the current time, was work.
    pub fn before_wait(&self, now_us: u64) {
        self.load.end(now_us);
    }

    /// Ends a turn and begins another one, without a wait.
    pub fn between_turns(&self) {
        let now_us = self.clock.refresh();
        self.load.end(now_us);
        self.load.begin(now_us);
    }

    /// Begins a turn: the wait is over.
    pub fn after_wait(&self) {
        self.load.begin(self.clock.refresh());
        self.wakeups.set(self.wakeups.get() + 1);
    }
}

/// A loop's counters since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Time between waking up and waiting again, summed, in µs: the loop's load.
    pub busy_us: u64,
    /// The number of waits for events.
    pub wakeups: u64,
}

/// A loop that has not started: [`Loop::new`], its options, [`Loop::start`].
pub struct Loop {
    name: String,
    watcher: Option<Arc<Watcher>>,
    blocking: Option<Arc<BlockingPool>>,
    load: Arc<Load>,
    in_place: bool,
    jobs: Option<&'static AtomicU64>,
}

impl Loop {
    /// A loop called `name`, without a watcher and with its own blocking pool.
    pub fn new(name: impl Into<String>) -> Self {
        let load = Arc::default();
        Self { name: name.into(), watcher: None, blocking: None, load, in_place: false, jobs: None }
    }

    /// Runs `main` to completion in a loop without options, on this thread. Errors: as for `start`.
    pub fn run<F, Fut>(name: &str, main: F) -> io::Result<Fut::Output>
    where
        F: FnOnce(Handle) -> Fut,
        Fut: Future,
    {
        Self::new(name).start(main)
    }

    /// The file watch that [`Handle::drained`] drains; the loops of all processes share one.
    pub fn watcher(mut self, watcher: Arc<Watcher>) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// The pool for blocking work; the loops of a process share one.
    pub fn blocking(mut self, pool: Arc<BlockingPool>) -> Self {
        self.blocking = Some(pool);
        self
    }

    /// Where the loop publishes its load for others to read.
    pub fn load(mut self, load: Arc<Load>) -> Self {
        self.load = load;
        self
    }

    /// The thread serves one connection at a time, from a
    /// [`BlockingAcceptor`](crate::BlockingAcceptor). It blocks in the system call that reads the
    /// connection, instead of waiting for events of many.
    pub fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }

    /// Counts, in `count`, the jobs of a pool without threads that currently run on this thread:
    /// while one runs, the loop does not turn.
    pub fn jobs_in(mut self, count: &'static AtomicU64) -> Self {
        self.jobs = Some(count);
        self
    }

    /// Runs `main` to completion on this thread, then drops the remaining tasks.
    ///
    /// Errors: those of epoll_create(2) and eventfd(2) (out of descriptors), and `AlreadyExists` on
    /// a thread that already runs a loop.
    pub fn start<F, Fut>(self, main: F) -> io::Result<Fut::Output>
    where
        F: FnOnce(Handle) -> Fut,
        Fut: Future,
    {
        if CURRENT.with_borrow(Option::is_some) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .event_interval(TASKS_PER_TURN)
            .on_thread_park(before_wait)
            .on_thread_unpark(after_wait)
            .build_local(LocalOptions::default())?;
        let state = Rc::new(LoopState {
            name: self.name,
            clock: Clock::new(),
            timers: Timers::default(),
            turn: Turn::default(),
            scratch: RefCell::new(Scratch::default()),
            watcher: self.watcher,
            blocking: self.blocking.unwrap_or_default(),
            in_place: self.in_place,
            jobs: self.jobs,
            turned_us: Cell::new(0),
            lingering_closes: LingeringCloses::default(),
            load: self.load,
            wakeups: Cell::new(0),
        });
        state.load.begin(state.clock.now_us());
        let entered = Entered::new(state.clone());
        let handle = Handle { state: state.clone() };
        let ended = state.clone();
        let output = runtime.block_on(async move {
            tokio::task::spawn_local(timers::drive(state.clone()));
            tokio::task::spawn_local(turn::drive(state));
            // Both drivers store their wakers before the first connection needs them.
            tokio::task::yield_now().await;
            main(handle).await
        });
        drop(runtime);
        ended.before_wait(ended.clock.precise_us());
        drop(entered);
        Ok(output)
    }
}

/// Registers the loop for the thread's hooks; unregisters it also when `main` panics.
struct Entered;

impl Entered {
    fn new(state: Rc<LoopState>) -> Self {
        CURRENT.set(Some(state));
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// A handle to a loop, for the tasks on it. Cheap to clone; never leaves its thread.
#[derive(Clone)]
pub struct Handle {
    pub(crate) state: Rc<LoopState>,
}

impl Handle {
    /// The loop that runs on this thread; `None` outside a loop.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(|state| state.clone().map(|state| Self { state }))
    }

    /// The loop's name, as in logs and on the scoreboard.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Spawns a task on this loop. Dropping the join handle detaches the task.
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        tokio::task::spawn_local(future)
    }

    /// The loop's cached time.
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.state.clock
    }

    /// The deadline `delay` after the turn's cached time.
    #[inline]
    pub fn deadline(&self, delay: Duration) -> Deadline {
        Deadline::after(&self.state.clock, delay)
    }

    /// Resolves once `deadline` has passed, to the ms below one second and to 50 ms above.
    pub fn sleep_until(&self, deadline: Deadline) -> Sleep {
        Sleep::new(self.state.clone(), deadline)
    }

    /// Resolves after `delay`.
    pub fn sleep(&self, delay: Duration) -> Sleep {
        self.sleep_until(self.deadline(delay))
    }

    /// Resolves once the file watch has been drained at a moment after this call's first poll. A
    /// request must await this, after its last byte has arrived, before it uses anything that is
    /// validated by generations. All waiters of a turn share one system call.
    #[inline]
    pub fn drained(&self) -> Drained<'_> {
        Drained::new(&self.state)
    }

    /// The source of file system changes for this loop.
    #[inline]
    pub fn change_source(&self) -> ChangeSource<'_> {
        self.state.watcher.as_deref().map_or(ChangeSource::None, ChangeSource::Watcher)
    }

    /// Polls the lingering closes; returns whether any remain.
    pub fn poll_lingering_closes(&self) -> bool {
        self.state.poll_lingering_closes(true);
        !self.state.lingering_closes.is_empty()
    }

    /// Lets the loop's other tasks run if they have not for half a second. For a main future that
    /// waits in system calls only.
    pub async fn give_turn(&self) {
        if self.state.is_turn_due() {
            tokio::task::yield_now().await;
        }
    }

    /// Whether the thread serves one connection at a time and blocks in its system calls.
    pub fn works_in_place(&self) -> bool {
        self.state.in_place
    }

    /// The pool for blocking work.
    pub fn blocking(&self) -> &Arc<BlockingPool> {
        &self.state.blocking
    }

    /// Wakes up to `count` waiters for deadlines, different ones each time, so that idle
    /// connections notice that they are to migrate.
    pub fn rouse(&self, count: usize) {
        self.state.timers.rouse(count);
    }

    /// The loop's counters so far, the current turn included.
    pub fn counters(&self) -> Counters {
        Counters { busy_us: self.state.load.busy_us(), wakeups: self.state.wakeups.get() }
    }
}

/// A job that runs on the loop's own thread; ends when dropped.
pub(crate) struct JobInPlace(Option<&'static AtomicU64>);

impl JobInPlace {
    pub(crate) fn begin() -> Self {
        let count = CURRENT.with_borrow(|state| state.as_ref().and_then(|state| state.jobs));
        if let Some(count) = count {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
        Self(count)
    }
}

impl Drop for JobInPlace {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.store(count.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }
    }
}

fn before_wait() {
    CURRENT.with_borrow(|state| {
        if let Some(state) = state {
            state.before_wait(state.clock.precise_us());
        }
    });
}

fn after_wait() {
    CURRENT.with_borrow(|state| {
        if let Some(state) = state {
            state.after_wait();
        }
    });
}
