//! The loop itself: one thread, one tokio runtime that never leaves it, one [`Handle`] to it all.

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
use crate::dir_notify::DirNotify;
use crate::farewell::Farewells;
use crate::load::Load;
use crate::stream::Scratch;
use crate::timers::{self, Deadline, Sleep, Timers};
use crate::turn::{self, Drained, Turn};
use crate::watch::{Watcher, Witness};

/// Task polls between two looks at the sockets while tasks are still queued. Tokio's 61 cuts a turn
/// of 64 busy connections into pieces, each with a system call of its own.
const TASKS_PER_TURN: u32 = 256;

/// The longest that a thread that works in place blocks in one system call; after that it waits as
/// every loop does, so that timers and orders are heard.
pub const IN_PLACE_WAIT: Duration = Duration::from_millis(200);

/// The other tasks of a loop that works in place have their turn after so many µs at the latest.
const TURN_US: u64 = 500_000;

thread_local! {
    static CURRENT: RefCell<Option<Rc<LoopState>>> = const { RefCell::new(None) };
}

/// What a loop consists of. Its parts have interior mutability: all is on one thread.
pub(crate) struct LoopState {
    pub name: String,
    pub clock: Clock,
    pub timers: Timers,
    pub turn: Turn,
    pub scratch: RefCell<Scratch>,
    pub watcher: Option<Arc<Watcher>>,
    pub dir_notify: Option<DirNotify>,
    pub blocking: Arc<BlockingPool>,
    /// The thread has one connection at a time and blocks where it stands.
    pub in_place: bool,
    /// Jobs that the thread does itself just now, where somebody wants to know.
    pub jobs: Option<&'static AtomicU64>,
    /// When other tasks had their turn last, in µs; for `in_place`.
    pub turned_us: Cell<u64>,
    /// Connections that were seen off; for `in_place`.
    pub farewells: Farewells,
    load: Arc<Load>,
    wakeups: Cell<u64>,
}

impl LoopState {
    /// Applies all file events that happened before this call.
    pub fn drain_now(&self) {
        if let Some(watcher) = &self.watcher {
            watcher.drain();
        }
    }

    /// Whether the other tasks are to have their turn: they had none for long. They have it now,
    /// and so have connections that were seen off.
    pub fn is_turn_due(&self) -> bool {
        let is_due = self.has_turn_due();
        if is_due {
            self.turned_us.set(self.clock.now_us());
            self.look_at_farewells(true);
        }
        is_due
    }

    /// Whether they are to have it, before it is given to them.
    pub fn has_turn_due(&self) -> bool {
        self.clock.now_us().saturating_sub(self.turned_us.get()) >= TURN_US
    }

    /// Looks at the connections that were seen off.
    pub fn look_at_farewells(&self, all: bool) {
        self.farewells.look(&self.clock, &self.scratch, all);
    }

    /// The time up to `now_us`, which is now, was work.
    pub fn before_wait(&self, now_us: u64) {
        self.load.end(now_us);
    }

    /// A wait is over.
    pub fn after_wait(&self) {
        self.load.begin(self.clock.refresh());
        self.wakeups.set(self.wakeups.get() + 1);
    }
}

/// What a loop has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Time between waking up and waiting again, summed, in µs: the loop's load.
    pub busy_us: u64,
    /// How often the loop waited for events.
    pub wakeups: u64,
}

/// A loop that is about to start: [`Loop::new`], its options, [`Loop::start`].
pub struct Loop {
    name: String,
    watcher: Option<Arc<Watcher>>,
    blocking: Option<Arc<BlockingPool>>,
    load: Arc<Load>,
    in_place: bool,
    hears_directories: bool,
    jobs: Option<&'static AtomicU64>,
}

impl Loop {
    /// A loop called `name`, without a watcher and with a blocking pool of its own.
    pub fn new(name: impl Into<String>) -> Self {
        let load = Arc::default();
        Self {
            name: name.into(),
            watcher: None,
            blocking: None,
            load,
            in_place: false,
            hears_directories: false,
            jobs: None,
        }
    }

    /// Runs `main` to its end in a loop with no options, on this thread. Errors: as for `start`.
    pub fn run<F, Fut>(name: &str, main: F) -> io::Result<Fut::Output>
    where
        F: FnOnce(Handle) -> Fut,
        Fut: Future,
    {
        Self::new(name).start(main)
    }

    /// The file watch that [`Handle::drained`] drains; one per process, shared by its loops.
    pub fn watcher(mut self, watcher: Arc<Watcher>) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// The pool for work that blocks; one per process, shared by its loops.
    pub fn blocking(mut self, pool: Arc<BlockingPool>) -> Self {
        self.blocking = Some(pool);
        self
    }

    /// Where the loop says how busy it is, for others to read.
    pub fn load(mut self, load: Arc<Load>) -> Self {
        self.load = load;
        self
    }

    /// The thread has one connection at a time, from a [`Door`](crate::Door): where that is quiet,
    /// the thread waits in the system call that reads it, and not for events of many.
    pub fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }

    /// The thread hears of changes in directories by itself ([`DirNotify`]), where there is no
    /// watcher and the system can tell it.
    pub fn hears_directories(mut self) -> Self {
        self.hears_directories = true;
        self
    }

    /// Where it is counted how many jobs of the blocking pool run on this very thread just now
    /// (a pool without threads): as long as one does, the loop does not turn.
    pub fn jobs_in(mut self, count: &'static AtomicU64) -> Self {
        self.jobs = Some(count);
        self
    }

    /// Runs `main` to its end on this thread; tasks that are still there then are dropped.
    ///
    /// Errors: what epoll_create or eventfd give (descriptors used up), and `AlreadyExists` on a
    /// thread that runs a loop already.
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
            dir_notify: self.hears_directories.then(|| DirNotify::new().ok()).flatten(),
            watcher: self.watcher,
            blocking: self.blocking.unwrap_or_default(),
            in_place: self.in_place,
            jobs: self.jobs,
            turned_us: Cell::new(0),
            farewells: Farewells::default(),
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
            // Both have stored their wakers before the first connection asks for them.
            tokio::task::yield_now().await;
            main(handle).await
        });
        drop(runtime);
        ended.before_wait(ended.clock.precise_us());
        drop(entered);
        Ok(output)
    }
}

/// Keeps the thread's loop known to the hooks; also when `main` panics.
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

/// A loop, for whatever runs on it. Cheap to clone; never leaves its thread.
#[derive(Clone)]
pub struct Handle {
    pub(crate) state: Rc<LoopState>,
}

impl Handle {
    /// The loop that runs on this thread; `None` outside of one.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(|state| state.clone().map(|state| Self { state }))
    }

    /// The loop's name, as in logs and the scoreboard.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Starts a task on this loop. Dropping the join handle lets the task go on.
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

    /// The deadline `delay` after the turn's time.
    #[inline]
    pub fn deadline(&self, delay: Duration) -> Deadline {
        Deadline::after(&self.state.clock, delay)
    }

    /// Resolves once `deadline` has passed: exact to the ms below a second, to 50 ms above.
    pub fn sleep_until(&self, deadline: Deadline) -> Sleep {
        Sleep::new(self.state.clone(), deadline)
    }

    /// Resolves after `delay`.
    pub fn sleep(&self, delay: Duration) -> Sleep {
        self.sleep_until(self.deadline(delay))
    }

    /// Resolves after the file watch has been drained at a moment later than this call's first
    /// poll: what a request must await, once its last byte has arrived, before it uses anything
    /// that is validated by generations. All who wait in one turn share one system call.
    #[inline]
    pub fn drained(&self) -> Drained<'_> {
        Drained::new(&self.state)
    }

    /// Drains the file watch at once, at the price of a system call (about 0.5 µs).
    pub fn drain_now(&self) {
        self.state.drain_now();
    }

    /// What tells of changes in the file system.
    #[inline]
    pub fn witness(&self) -> Witness<'_> {
        match (&self.state.watcher, &self.state.dir_notify) {
            (Some(watcher), _) => Witness::Watcher(watcher),
            (None, Some(notify)) => Witness::DirNotify(notify),
            (None, None) => Witness::Nobody,
        }
    }

    /// Whether clients of connections that were seen off have yet to close, after a look at them.
    pub fn has_farewells(&self) -> bool {
        self.state.look_at_farewells(true);
        !self.state.farewells.is_empty()
    }

    /// Lets the loop's other tasks have their turn, when they had none for half a second. For a
    /// main future that never waits for anything but system calls.
    pub async fn give_turn(&self) {
        if self.state.is_turn_due() {
            tokio::task::yield_now().await;
        }
    }

    /// Whether the thread has one connection at a time and blocks where it stands.
    pub fn works_in_place(&self) -> bool {
        self.state.in_place
    }

    /// The pool for work that blocks.
    pub fn blocking(&self) -> &Arc<BlockingPool> {
        &self.state.blocking
    }

    /// Wakes up to `count` of those that wait for a deadline, others each time: whoever thinks that
    /// idle connections should look around.
    pub fn rouse(&self, count: usize) {
        self.state.timers.rouse(count);
    }

    /// What this loop has done so far, the present turn included.
    pub fn counters(&self) -> Counters {
        Counters { busy_us: self.state.load.busy_us(), wakeups: self.state.wakeups.get() }
    }
}

/// A job that runs on the loop's own thread, until it is dropped.
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
