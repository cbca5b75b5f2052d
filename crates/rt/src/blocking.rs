//! A bounded pool of threads for work that blocks. Each kind of work has threads and a queue of its
//! own, so that no kind waits for another: a crowd of logins leaves file reads alone.
//!
//! A full queue is an error, and so is a result that does not come in time.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::reactor::JobInPlace;

/// A thread without work ends after this time.
const THREAD_IDLE: Duration = Duration::from_secs(10);
/// Threads per kind of work by default.
const THREADS_DEFAULT: usize = 16;
/// Jobs of one kind that may wait by default.
const QUEUE_DEFAULT: usize = 1024;

/// Threads that compute digests: they read whole files, so the disk is busy with two.
const DIGEST_THREADS: usize = 2;
/// Threads for work that needs a CPU all the time, where the machine has fewer CPUs.
const CPU_THREADS_MIN: usize = 2;
/// How much threads that need a CPU all the time give way to loops: a third of a loop's share
/// (nice(1)) where there are fewer CPUs than threads.
const CPU_NICENESS: i32 = 5;
/// Threads that wait for name servers or OCSP responders.
const NETWORK_THREADS: usize = 8;

/// The longest wait for a job, its time in the queue included (Apache's default `Timeout`).
const JOB_WAIT: Duration = Duration::from_secs(60);
/// The longest wait for a name: a little more than the resolver itself takes for one server that
/// is silent (resolv.conf(5): 2 attempts of 5 s).
const NAME_WAIT: Duration = Duration::from_secs(12);

/// The kinds of work, by what they would otherwise starve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Files and directories that clients ask for: cold ranges, listings, type maps.
    File,
    /// Slices of files whose content is hashed.
    Digest,
    /// Password and group files, and the hashes of passwords.
    Login,
    /// `.htaccess` files, which are read and parsed.
    Htaccess,
    /// Long matches of regular expressions.
    Match,
    /// Bodies that are compressed at a high level, or whose matches take long.
    Body,
    /// Names of addresses and addresses of names.
    Name,
    /// OCSP responders.
    Responder,
    /// Databases.
    Database,
}

impl Work {
    const ALL: [Work; 9] = [
        Work::File,
        Work::Digest,
        Work::Login,
        Work::Htaccess,
        Work::Match,
        Work::Body,
        Work::Name,
        Work::Responder,
        Work::Database,
    ];

    /// The most threads that this kind has, where the pool allows for more.
    fn threads_max(self, cpus: usize) -> usize {
        match self {
            Work::File | Work::Database => usize::MAX,
            Work::Digest => DIGEST_THREADS,
            Work::Login | Work::Htaccess | Work::Match | Work::Body => cpus.max(CPU_THREADS_MIN),
            Work::Name | Work::Responder => NETWORK_THREADS,
        }
    }

    /// Whether it computes, where others mostly wait.
    fn is_computation(self) -> bool {
        matches!(self, Work::Digest | Work::Login | Work::Match | Work::Body)
    }

    /// The longest that a caller waits for a result.
    fn wait(self) -> Duration {
        if self == Work::Name { NAME_WAIT } else { JOB_WAIT }
    }
}

/// The bounds of a [`BlockingPool`].
#[derive(Clone, Copy, Debug)]
pub struct BlockingLimits {
    /// Threads per kind of work at most, started when a job finds none idle. 0: jobs run in place,
    /// on the caller's thread, for shapes whose threads have one connection each.
    pub threads: usize,
    /// Jobs of one kind at most that wait for a thread.
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
    /// The job was not done in time. A job that has begun goes on; another one is dropped.
    #[error("the pool did not finish the job in time")]
    TimedOut,
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
    lanes: Vec<Arc<Lane>>,
    runs_in_place: bool,
}

/// The threads and the queue of one kind of work.
struct Lane {
    work: Work,
    limits: BlockingLimits,
    state: Mutex<State>,
    ready: Condvar,
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
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        let lane = |work: Work| {
            let threads = limits.threads.min(work.threads_max(cpus));
            let limits = BlockingLimits { threads, ..limits };
            let (state, ready) = (Mutex::default(), Condvar::new());
            Arc::new(Lane { work, limits, state, ready, first })
        };
        let lanes = Work::ALL.into_iter().map(lane).collect();
        Self { lanes, runs_in_place: limits.threads == 0 }
    }

    /// Runs `job` on a thread for `work`. A job that has begun runs to its end also when the
    /// caller stops waiting; one that has not is dropped then.
    pub async fn run<T, F>(&self, work: Work, job: F) -> Result<T, PoolError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.run_within(work.wait(), work, job).await
    }

    /// The same with a time limit of the caller's own.
    pub async fn run_within<T, F>(&self, wait: Duration, work: Work, job: F) -> Result<T, PoolError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let Some(lane) = self.lanes.get(work as usize).filter(|_| !self.runs_in_place) else {
            let _job = JobInPlace::begin();
            return catch_unwind(AssertUnwindSafe(job))
                .map_err(|_: Box<dyn Any + Send>| PoolError::Panicked);
        };
        let (sender, receiver) = oneshot::channel();
        lane.submit(Box::new(move || {
            if !sender.is_closed() {
                // The caller may have gone meanwhile; the result is lost then.
                let _ = sender.send(job());
            }
        }))?;
        match tokio::time::timeout(wait, receiver).await {
            Ok(outcome) => outcome.map_err(|_| PoolError::Panicked),
            Err(_) => Err(PoolError::TimedOut),
        }
    }

    /// Threads that run now, and jobs that wait, of all kinds.
    pub fn load(&self) -> (usize, usize) {
        self.lanes.iter().fold((0, 0), |(threads, jobs), lane| {
            let state = lane.lock();
            (threads + state.threads, jobs + state.queue.len())
        })
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        for lane in &self.lanes {
            lane.lock().closed = true;
            lane.ready.notify_all();
        }
    }
}

impl Lane {
    fn submit(self: &Arc<Self>, job: Job) -> Result<(), PoolError> {
        let mut state = self.lock();
        if state.queue.len() >= self.limits.queue {
            return Err(PoolError::Full);
        }
        state.queue.push_back(job);
        if state.idle >= state.queue.len() {
            self.ready.notify_one();
        } else if state.threads < self.limits.threads {
            state.threads += 1;
            state.started += 1;
            let name = format!("{:?}-{}", self.work, state.started).to_ascii_lowercase();
            let lane = self.clone();
            let started = std::thread::Builder::new().name(name).spawn(move || lane.run_jobs());
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run outside of the lock, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_jobs(&self) {
        if let Some(first) = self.first {
            first();
        }
        if self.work.is_computation() {
            // Of the calling thread alone (setpriority(2), "C library/kernel differences").
            let _ = rustix::process::setpriority_process(None, CPU_NICENESS);
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
            let waited = self.ready.wait_timeout(state, THREAD_IDLE);
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
