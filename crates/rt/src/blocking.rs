//! A bounded pool of threads for work that blocks: password hashes, host look-ups, directory
//! reading, files that are not in memory. A full queue is an error, never a longer wait.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::reactor::JobInPlace;

/// A thread without work ends after this time.
const THREAD_IDLE: Duration = Duration::from_secs(10);
/// Threads of one pool by default.
const THREADS_DEFAULT: usize = 16;
/// Jobs that may wait by default.
const QUEUE_DEFAULT: usize = 1024;

/// The bounds of a [`BlockingPool`].
#[derive(Clone, Copy, Debug)]
pub struct BlockingLimits {
    /// Threads at most, started when a job finds none idle. 0: jobs run in place, on the caller's
    /// thread, for shapes whose threads have one connection each.
    pub threads: usize,
    /// Jobs at most that wait for a thread.
    pub queue: usize,
}

impl Default for BlockingLimits {
    fn default() -> Self {
        Self { threads: THREADS_DEFAULT, queue: QUEUE_DEFAULT }
    }
}

/// Why a job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// As many jobs wait as the limit allows: the server is overloaded.
    #[error("the pool's queue is full")]
    Full,
    /// The job panicked, which is a defect of the job; the pool goes on.
    #[error("the job panicked")]
    Panicked,
    /// The system gives no thread to run it.
    #[error("no thread can be started")]
    NoThread,
}

type Job = Box<dyn FnOnce() + Send>;

/// The pool; dropping it lets queued jobs finish and ends its threads.
pub struct BlockingPool {
    shared: Arc<Shared>,
    limits: BlockingLimits,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    first: Option<fn()>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    started: usize,
    closed: bool,
}

impl Default for BlockingPool {
    fn default() -> Self {
        Self::new(BlockingLimits::default())
    }
}

impl BlockingPool {
    /// A pool without threads yet, so that it can be made before a fork.
    pub fn new(limits: BlockingLimits) -> Self {
        Self::starting_with(limits, None)
    }

    /// The same, whose threads call `first` before their first job: a thread begins with the CPUs
    /// of the loop that started it, and may be meant to have more.
    pub fn starting_with(limits: BlockingLimits, first: Option<fn()>) -> Self {
        let shared = Shared { state: Mutex::default(), work: Condvar::new(), first };
        Self { shared: Arc::new(shared), limits }
    }

    /// Runs `job` on a thread of the pool. It runs to its end also when the caller stops waiting.
    pub async fn run<T, F>(&self, job: F) -> Result<T, PoolError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        if self.limits.threads == 0 {
            let _job = JobInPlace::begin();
            return catch_unwind(AssertUnwindSafe(job))
                .map_err(|_: Box<dyn Any + Send>| PoolError::Panicked);
        }
        let (sender, receiver) = oneshot::channel();
        self.submit(Box::new(move || {
            // The caller may be gone; then nobody wants the result.
            let _ = sender.send(job());
        }))?;
        receiver.await.map_err(|_| PoolError::Panicked)
    }

    /// Threads that run now, and jobs that wait.
    pub fn load(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.threads, state.queue.len())
    }

    fn submit(&self, job: Job) -> Result<(), PoolError> {
        let mut state = self.shared.lock();
        if state.queue.len() >= self.limits.queue {
            return Err(PoolError::Full);
        }
        state.queue.push_back(job);
        if state.idle >= state.queue.len() {
            self.shared.work.notify_one();
        } else if state.threads < self.limits.threads {
            state.threads += 1;
            state.started += 1;
            let name = format!("blocking-{}", state.started);
            let shared = self.shared.clone();
            let started = std::thread::Builder::new().name(name).spawn(move || shared.work());
            if started.is_err() {
                state.threads -= 1;
                if state.threads == 0 {
                    state.queue.pop_back();
                    return Err(PoolError::NoThread);
                }
            }
        }
        Ok(())
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run outside of the lock, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        if let Some(first) = self.first {
            first();
        }
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                // A panic was reported by the hook; the waiting side sees its channel close.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, THREAD_IDLE);
            let (locked, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = locked;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}
