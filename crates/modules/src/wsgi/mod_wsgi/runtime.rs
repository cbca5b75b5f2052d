//! What runs applications, as the loops of a child see it: process groups, and for each of their
//! application groups the queue that its workers take requests from.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mpm::Line;
use mpm::companion::Channel;
use server::request::Request;

use super::Wsgi;
use super::counts::{self, Counts, State};
use super::daemon::DaemonGroup;
use super::lane::{self, Lane, Slot};
use super::link::Link;
use super::offer::Offer;

/// Requests that may wait for a worker (`listen-backlog`).
pub(super) const BACKLOG: usize = 100;

/// How long the companion may take to open a queue (`connect-timeout`).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest field of a response, without `header-buffer-size`.
const FIELD_BYTES: usize = 32768;

/// How long a page of mod_status waits for the companion.
const STATES_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a queue is asked for again whose workers are gone.
const ATTEMPTS: usize = 3;

/// What runs applications, which all hosts share.
#[derive(Clone, Debug, Default)]
pub struct Handle(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    runtime: OnceLock<Runtime>,
    counts: OnceLock<counts::All>,
}

impl Handle {
    /// What runs them; `None` before the server runs.
    pub(super) fn get(&self) -> Option<&Runtime> {
        self.0.runtime.get()
    }

    /// Sets what runs them, once.
    pub(super) fn set(&self, runtime: Runtime) {
        let _ = self.0.runtime.set(runtime);
    }

    /// What is counted of their requests, in memory that is made before the server runs.
    pub(super) fn counts(&self) -> &OnceLock<counts::All> {
        &self.0.counts
    }
}

/// All process groups.
#[derive(Debug)]
pub(super) struct Runtime {
    /// The line to the companion that starts processes.
    pub line: Arc<Line>,
    /// Embedded mode comes first.
    pub groups: Vec<Group>,
}

/// A process group.
#[derive(Debug)]
pub(super) struct Group {
    /// Its number on the line.
    pub index: u32,
    /// Its options; `None` for embedded mode.
    pub daemon: Option<Arc<DaemonGroup>>,
    /// The name of the hosts that may use it; `None` for all.
    pub host: Option<Vec<u8>>,
    /// What its options allow requests.
    pub limits: Limits,
    /// What is counted of its requests.
    pub counts: Option<Counts>,
    queues: Mutex<HashMap<Vec<u8>, Arc<Channel>>>,
}

/// The limits of a group's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// `listen-backlog`: how many may wait; in embedded mode only the queue itself is a limit.
    pub waiting: Option<usize>,
    /// `connect-timeout`: how long the companion may take to open a queue.
    pub connecting: Duration,
    /// `queue-timeout`: how long they may wait.
    pub queued: Option<Duration>,
    /// `socket-timeout`: how long a worker may take for each piece of a response, unless that is
    /// the host's `Timeout`.
    pub piece: Option<Duration>,
    /// `header-buffer-size`: the longest field of a response; in embedded mode there is no limit.
    pub field_bytes: Option<usize>,
}

/// The longest waits for a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// Until it takes the request.
    pub queue: Option<Duration>,
    /// For each piece; `None` in embedded mode.
    pub piece: Option<Duration>,
}

impl Limits {
    fn of(daemon: Option<&DaemonGroup>) -> Limits {
        let seconds = |name: &str| daemon.and_then(|daemon| daemon.seconds(name));
        let number = |name: &str, usual: usize| {
            let own = |daemon: &DaemonGroup| usize::try_from(daemon.number(name)?).ok();
            daemon.map(|daemon| own(daemon).unwrap_or(usual))
        };
        Limits {
            waiting: number("listen-backlog", BACKLOG),
            connecting: seconds("connect-timeout").unwrap_or(CONNECT_TIMEOUT),
            queued: seconds("queue-timeout"),
            piece: seconds("socket-timeout"),
            field_bytes: number("header-buffer-size", FIELD_BYTES),
        }
    }
}

/// The first byte of the companion's answer: slots of shared memory, or a queue of sockets.
pub(super) const SLOTS: &[u8] = b"s";
pub(super) const SOCKETS: &[u8] = b"=";

/// What requests of an application group are put into.
enum Queue {
    Slots(Rc<Lane>),
    Sockets(Arc<Channel>),
}

/// Why a request can't be given to a worker.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unavailable {
    /// As many requests wait as may.
    #[error("listener backlog limit was exceeded")]
    Full,
    /// The companion opens no queue.
    #[error("{0}")]
    Refused(String),
    /// A system call failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What runs the applications of a request's server.
pub(super) fn of(request: &Request) -> Option<&Runtime> {
    request.server_of::<Wsgi>()?.runtime.0.get()
}

/// The same, for longer than the request is lent.
pub(super) fn handle_of(request: &Request) -> Option<Handle> {
    Some(request.server_of::<Wsgi>()?.runtime.0.clone())
}

impl Runtime {
    /// The group of a name; empty for embedded mode.
    pub fn find(&self, name: &[u8]) -> Option<&Group> {
        self.groups.iter().find(|group| group.name() == name)
    }

    /// What the companion knows of all groups, in their order; nothing if it does not answer soon.
    pub async fn states(&self) -> Vec<State> {
        let Ok(reply) = self.line.ask(&counts::STATES) else { return Vec::new() };
        let answer = rt::receive(reply, counts::STATES_BYTES, STATES_TIMEOUT).await;
        let text = String::from_utf8(answer.unwrap_or_default()).unwrap_or_default();
        text.lines().map_while(State::read).collect()
    }
}

impl Group {
    /// A group without queues.
    pub fn new(
        index: u32,
        daemon: Option<Arc<DaemonGroup>>,
        host: Option<Vec<u8>>,
        counts: Option<Counts>,
    ) -> Group {
        let limits = Limits::of(daemon.as_deref());
        Group { index, daemon, host, limits, counts, queues: Mutex::default() }
    }

    /// Its name; empty for embedded mode.
    pub fn name(&self) -> &[u8] {
        self.daemon.as_ref().map_or(&[], |daemon| &daemon.name)
    }

    /// Puts a request into the queue of an application group. Returns the connection to its worker,
    /// and how many of the first bytes of the head it has taken.
    ///
    /// # Errors
    /// Why that is not possible.
    pub async fn send(
        &self,
        request: &Request,
        line: &Line,
        application: &[u8],
        head: &[u8],
    ) -> Result<(Link, usize), Unavailable> {
        let mut attempt = 1;
        loop {
            let queue = match self.queue(line, application).await? {
                Queue::Slots(lane) => {
                    let sent = self.send_by(&lane, request, head);
                    let (slot, taken) = sent.ok_or(Unavailable::Full)?;
                    return Ok((Link::Slot(Box::new(slot)), taken));
                }
                Queue::Sockets(queue) => queue,
            };
            if self.is_full(|| queue.waiting()) {
                return Err(Unavailable::Full);
            }
            match queue.send(head) {
                Ok(sent) => {
                    let taken = sent.taken;
                    return Ok((Link::of_socket(sent)?, taken));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(Unavailable::Full);
                }
                Err(error) => {
                    let is_gone = matches!(
                        error.kind(),
                        io::ErrorKind::BrokenPipe
                            | io::ErrorKind::ConnectionReset
                            | io::ErrorKind::NotConnected
                            | io::ErrorKind::ConnectionRefused
                    );
                    if !is_gone || attempt == ATTEMPTS {
                        return Err(error.into());
                    }
                    // The companion has died, and its workers with it.
                    attempt += 1;
                    self.forget(application, &queue);
                }
            }
        }
    }

    /// Puts a request into a slot; `None` if as many requests wait as may. Other loops may do so at
    /// the same time: a loop that then finds too many takes its own back, and tries again.
    fn send_by(&self, lane: &Rc<Lane>, request: &Request, head: &[u8]) -> Option<(Slot, usize)> {
        for _ in 0..ATTEMPTS {
            if self.is_full(|| lane.waiting()) {
                return None;
            }
            let sent = lane.send(&request.engine.handle, head)?;
            if self.limits.waiting.is_none_or(|most| lane.waiting() <= most) {
                return Some(sent);
            }
        }
        None
    }

    /// Whether as many requests wait as may.
    fn is_full(&self, waiting: impl Fn() -> usize) -> bool {
        self.limits.waiting.is_some_and(|most| waiting() >= most)
    }

    async fn queue(&self, line: &Line, application: &[u8]) -> Result<Queue, Unavailable> {
        let place = std::ptr::from_ref(self).addr();
        if let Some(lane) = lane::find(place, application) {
            return Ok(Queue::Slots(lane));
        }
        if let Some(queue) = self.lock().get(application) {
            return Ok(Queue::Sockets(queue.clone()));
        }
        let message = [&self.index.to_le_bytes(), application].concat();
        let offer = Offer::new()?;
        let descriptors = [offer.bell(), offer.theirs.as_fd()];
        let answer = line.ask_for_descriptor(&message, &descriptors)?;
        let (text, descriptor) = rt::receive_descriptor(answer, self.limits.connecting).await?;
        let Some(descriptor) = descriptor else {
            let text = String::from_utf8_lossy(&text).into_owned();
            let silent = "the companion has died".to_owned();
            return Err(Unavailable::Refused(if text.is_empty() { silent } else { text }));
        };
        let (kind, numbers) = text.split_at_checked(1).unwrap_or_default();
        if kind == SLOTS {
            let lane = offer.accept((place, application), numbers, descriptor)?;
            return Ok(Queue::Slots(lane));
        }
        let bytes = numbers.get(..4).and_then(|bytes| bytes.try_into().ok());
        let bytes = bytes.map_or(1, u32::from_le_bytes);
        Ok(Queue::Sockets(self.take(application, Channel::from_fd(descriptor, bytes))))
    }

    /// Keeps a queue, unless another loop has opened it meanwhile.
    fn take(&self, application: &[u8], queue: Channel) -> Arc<Channel> {
        self.lock().entry(application.to_vec()).or_insert_with(|| Arc::new(queue)).clone()
    }

    fn forget(&self, application: &[u8], gone: &Arc<Channel>) {
        let mut queues = self.lock();
        if queues.get(application).is_some_and(|queue| Arc::ptr_eq(queue, gone)) {
            queues.remove(application);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<Channel>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use conf::{Arg, Span};

    use super::*;

    fn limits(text: &str) -> Limits {
        let arg = Arg { text: text.into(), span: Span::default() };
        Limits::of(Some(&DaemonGroup::parse(&arg, Span::default()).unwrap()))
    }

    #[test]
    fn options_are_limits_unless_they_are_zero() {
        let usual = Limits {
            waiting: Some(BACKLOG),
            connecting: CONNECT_TIMEOUT,
            queued: None,
            piece: None,
            field_bytes: Some(FIELD_BYTES),
        };
        assert_eq!(limits("a"), usual);
        let zero = "a listen-backlog=0 connect-timeout=0 queue-timeout=0 socket-timeout=0 \
                    header-buffer-size=0";
        assert_eq!(limits(zero), usual);
        let own = "a listen-backlog=5 connect-timeout=6 queue-timeout=7 socket-timeout=8 \
                   header-buffer-size=9000";
        let seconds = Duration::from_secs;
        let own_limits = Limits {
            waiting: Some(5),
            connecting: seconds(6),
            queued: Some(seconds(7)),
            piece: Some(seconds(8)),
            field_bytes: Some(9000),
        };
        assert_eq!(limits(own), own_limits);
    }

    #[test]
    fn embedded_mode_has_no_limits_of_daemons() {
        let limits = Limits::of(None);
        assert_eq!((limits.waiting, limits.field_bytes), (None, None));
    }
}
