//! The connections of a process to a database.
//!
//! At most `DBDMax` requests have one at a time; others wait. A connection belongs to a job on the
//! blocking pool while it is used, so a loop never waits for a database, and one that is used when
//! its time is over is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use messages::Message;
use rt::Work;
use server::engine::Engine;
use server::host::Server;
use server::log::Level;
use server::request::Request;
use tokio::sync::Semaphore;

use super::driver::{self, Connection, Unopened};
use super::{Argument, FILE, Outcome, Settings};

/// The longest wait for a connection and the outcome of a statement. Apache waits forever.
const WAIT: Duration = Duration::from_secs(30);

/// A database and the connections of this process to it.
pub(crate) struct Database {
    pub(super) settings: Settings,
    idle: Mutex<Vec<Idle>>,
    /// How many more connections may be in use.
    free: Arc<Semaphore>,
    /// Whether this process has opened those of `DBDMin`.
    is_warm: AtomicBool,
}

struct Idle {
    connection: Box<dyn Connection>,
    since: Instant,
}

/// Why a statement has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no connection, as has been logged.
    NoConnection,
    /// No statement has the label.
    NoStatement,
    /// The database's message.
    Query(String),
}

/// What a job on the blocking pool says.
enum Done {
    Outcome(Outcome),
    Refused(String),
    Unopened(Unopened),
}

impl Database {
    pub(super) fn new(settings: Settings) -> Database {
        let free = Arc::new(Semaphore::new(settings.max));
        Database { settings, idle: Mutex::default(), free, is_warm: AtomicBool::new(false) }
    }

    /// Executes a statement.
    pub(super) async fn query(
        self: &Arc<Self>,
        request: &Request,
        label: &str,
        arguments: Vec<Argument>,
    ) -> Result<Outcome, Failure> {
        let engine = &request.engine;
        if let Some(recorder) = &engine.recorder {
            recorder.not_asked("the database of mod_dbd");
            return Err(Failure::NoConnection);
        }
        if request.depth.in_expression {
            // The request that evaluates the expression asks, and evaluates it again.
            std::future::pending::<()>().await;
        }
        let place = self.settings.statements.iter().position(|known| known.label == label);
        let deadline = Instant::now() + WAIT;
        let permit = self.free.clone().acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(WAIT, permit).await else {
            log(&engine.server, 2655, "Failed to acquire DBD connection from pool!");
            return Err(Failure::NoConnection);
        };
        let own = self.clone();
        let job = move || {
            // A job that has missed its deadline still has its connection.
            let _permit = permit;
            own.work(place, &arguments, deadline)
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let done = engine.handle.blocking().run_within(left, Work::Database, job).await;
        match done {
            Ok(Ok(done)) => self.tell(engine, done),
            Ok(Err(NoStatement)) => Err(Failure::NoStatement),
            Err(why) => {
                log(&engine.server, Message::PoolRefused.number(), &why.to_string());
                Err(Failure::NoConnection)
            }
        }
    }

    fn tell(&self, engine: &Engine, done: Done) -> Result<Outcome, Failure> {
        match done {
            Done::Outcome(outcome) => Ok(outcome),
            Done::Refused(text) => Err(Failure::Query(text)),
            Done::Unopened(why) => {
                self.log_unopened(&engine.server, &why);
                Err(Failure::NoConnection)
            }
        }
    }

    pub(super) fn log_unopened(&self, server: &Server, why: &Unopened) {
        let driver = self.settings.driver.name();
        let (number, text) = match why {
            Unopened::Connect(why) => (629, format!("Can't connect to {driver}: {why}")),
            Unopened::Prepare(why) => (632, format!("failed to prepare SQL statements: {why}")),
        };
        log(server, number, &text);
    }

    /// Executes a statement on a connection, and keeps that for others. On the blocking pool.
    fn work(
        &self,
        place: Option<usize>,
        arguments: &[Argument],
        deadline: Instant,
    ) -> Result<Done, NoStatement> {
        let mut connection = match self.take().map_or_else(|| self.open(deadline), Ok) {
            Ok(connection) => connection,
            Err(why) => return Ok(Done::Unopened(why)),
        };
        // As in Apache, the connection comes first: without one, the label does not matter.
        let statement = place.and_then(|place| self.settings.statements.get(place));
        let outcome = statement.map(|found| connection.run(found, arguments, deadline));
        self.keep(connection);
        match outcome {
            None => Err(NoStatement),
            Some(Ok(outcome)) => Ok(Done::Outcome(outcome)),
            Some(Err(text)) => Ok(Done::Refused(text)),
        }
    }

    fn open(&self, deadline: Instant) -> Result<Box<dyn Connection>, Unopened> {
        driver::open(&self.settings, deadline)
    }

    /// The connection that was used last, if it is still good.
    fn take(&self) -> Option<Box<dyn Connection>> {
        loop {
            let mut last = self.lock().pop()?;
            if last.since.elapsed() < self.settings.expiry && last.connection.is_usable() {
                return Some(last.connection);
            }
        }
    }

    fn keep(&self, mut connection: Box<dyn Connection>) {
        if self.settings.persists && connection.is_usable() {
            self.lock().push(Idle { connection, since: Instant::now() });
        }
    }

    /// Whether [`Database::maintain`] has anything to do.
    pub(super) fn is_due(&self) -> bool {
        let is_over = |idle: &Idle| idle.since.elapsed() >= self.settings.expiry;
        let idle = self.lock();
        self.settings.persists
            && (!self.is_warm.load(Ordering::Relaxed)
                || idle.len() > self.settings.keep && idle.first().is_some_and(is_over))
    }

    /// Opens the connections of `DBDMin` once, and closes those that are too many and too old. On
    /// the blocking pool.
    pub(super) fn maintain(&self) -> Result<(), Unopened> {
        let expired = {
            let mut idle = self.lock();
            let over = idle.len().saturating_sub(self.settings.keep);
            let expiry = self.settings.expiry;
            let old = idle.iter().take_while(|idle| idle.since.elapsed() >= expiry).count();
            idle.drain(..over.min(old)).collect::<Vec<_>>()
        };
        drop(expired);
        if self.is_warm.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let deadline = Instant::now() + WAIT;
        let missing = self.settings.min.min(self.settings.max);
        // Not in the head of the loop, which would hold the lock.
        let idle = self.lock().len();
        for _ in idle..missing {
            let Ok(_permit) = self.free.try_acquire() else { break };
            self.keep(self.open(deadline)?);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        // Nothing panics under the lock.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log(server: &Server, number: u32, text: &str) {
    server.log_host(server.main(), FILE, Level::Error, number, format_args!("{text}"));
}

/// The label is not that of a statement.
struct NoStatement;
