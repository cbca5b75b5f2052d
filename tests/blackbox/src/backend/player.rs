//! Plays the backends of a file: threads accept, receive and answer as the requests' scripts say,
//! and keep what was received.

use std::collections::VecDeque;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::Socket;

use crate::place::Place;
use crate::stall::Deadline;

use super::script::{Act, Declared, Exchange};
use super::socket::BACKLOG;
use super::talk;

/// The time limit for all that the scripts of a request do after its response.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const SETTLE_POLL: Duration = Duration::from_millis(200);
/// How often a backend that does not listen looks whether it does again.
const LISTEN_POLL: Duration = Duration::from_millis(20);

/// A request that a backend received.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// The index of the backend.
    pub backend: usize,
    /// The number of the client's request, counted in the file.
    pub request: usize,
    /// The number of the connection, counted for its backend.
    pub connection: usize,
    /// Whether the connection has carried a request before.
    pub is_again: bool,
    /// What was received.
    pub bytes: Vec<u8>,
    /// Whether the server closed, or sent nothing more, before the end of the request.
    pub is_cut: bool,
    /// Whether the server closed, for a script that waits for it.
    pub closed: Option<bool>,
    /// Whether nothing more is recorded here.
    pub is_done: bool,
}

/// The backends of a running file. Dropping it ends them.
pub struct Player {
    shared: Arc<Shared>,
    acceptors: Vec<JoinHandle<()>>,
}

/// What the threads share.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    backends: Vec<Played>,
}

struct Played {
    declared: Declared,
    socket: Socket,
}

#[derive(Default)]
struct State {
    /// What is to be done, per backend.
    scripts: Vec<VecDeque<Script>>,
    /// In the order of first bytes.
    heard: Vec<Heard>,
    /// Connections with a request so far, per backend.
    connections: Vec<usize>,
    /// Accepted ones, each with the index of its backend.
    sockets: Vec<(usize, Weak<Socket>)>,
    threads: Vec<JoinHandle<()>>,
    /// The last request of the client.
    request: usize,
    is_over: bool,
}

/// The answer to one request.
pub(super) struct Script {
    request: usize,
    pub(super) acts: Vec<Act>,
}

impl Player {
    /// Begins to accept connections.
    pub fn start(place: &Place) -> Result<Player, String> {
        let mut backends = Vec::new();
        for backend in &place.backends {
            let socket = backend.socket.try_clone().map_err(|e| e.to_string())?;
            backends.push(Played { declared: backend.declared.clone(), socket });
        }
        let state = State {
            scripts: backends.iter().map(|_| VecDeque::new()).collect(),
            connections: vec![0; backends.len()],
            ..State::default()
        };
        let shared = Arc::new(Shared { state: state.into(), changed: Condvar::new(), backends });
        let begin = |at| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.accept(at))
        };
        let acceptors = (0..shared.backends.len()).map(begin).collect();
        Ok(Player { shared, acceptors })
    }

    /// Prepares the answers to a request of the client, and returns its number.
    pub fn expect(&self, exchanges: &[Exchange], place: &Place) -> usize {
        let mut state = self.shared.lock();
        let request = state.request + 1;
        state.request = request;
        for exchange in exchanges {
            let is_own = |played: &Played| played.declared.name == exchange.backend;
            let at = self.shared.backends.iter().position(is_own);
            let fill = |act: Act| match act {
                Act::Send(bytes) => Act::Send(place.fill_bytes(&bytes)),
                Act::Record(record) => Act::Send(record.bytes(|content| place.fill_bytes(content))),
                Act::Reply(reply) => Act::Reply(reply.filled(|text| place.fill_bytes(text))),
                Act::Frame(frame) => Act::Frame(frame.filled(|text| place.fill_bytes(text))),
                Act::Packet(packet) => Act::Send(packet.bytes(|text| place.fill_bytes(text))),
                other => other,
            };
            let acts = exchange.complete().into_iter().map(fill).collect();
            if let Some(scripts) = at.and_then(|at| state.scripts.get_mut(at)) {
                scripts.push_back(Script { request, acts });
            }
        }
        request
    }

    /// Makes a backend of this name refuse connections, and closes those it has.
    pub fn stop(&self, name: &str) -> std::io::Result<()> {
        let (at, played) = self.shared.find(name)?;
        played.socket.shutdown(Shutdown::Read)?;
        for (_, socket) in self.shared.lock().sockets.iter().filter(|(of, _)| *of == at) {
            socket.upgrade().map_or(Ok(()), |socket| socket.shutdown(Shutdown::Both))?;
        }
        Ok(())
    }

    /// Makes a stopped backend, or one that refuses, accept connections.
    pub fn restart(&self, name: &str) -> std::io::Result<()> {
        self.shared.find(name)?.1.socket.listen(BACKLOG)
    }

    /// What the backends received for the request of this number, once all that has begun is over,
    /// and the backends whose scripts have not begun.
    pub fn heard(&self, request: usize) -> (Vec<Heard>, Vec<usize>) {
        let end = Deadline::after(SETTLE_LIMIT);
        let mut state = self.shared.lock();
        while state.heard.iter().any(|heard| heard.request == request && !heard.is_done)
            && end.left().is_some()
        {
            let waited = self.shared.changed.wait_timeout(state, SETTLE_POLL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_own = |heard: &Heard| heard.request == request;
        let heard = state.heard.iter().filter(|heard| is_own(heard)).cloned().collect();
        let mut unasked = Vec::new();
        for (at, scripts) in state.scripts.iter_mut().enumerate() {
            let before = scripts.len();
            scripts.retain(|script| script.request > request);
            unasked.extend(std::iter::repeat_n(at, before - scripts.len()));
        }
        // Empty ones keep the places of those that threads still write to.
        for heard in &mut state.heard {
            if is_own(heard) {
                heard.request = usize::MAX;
                heard.is_done = true;
            }
        }
        (heard, unasked)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        for socket in state.sockets.iter().filter_map(|(_, socket)| socket.upgrade()) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state);
        for played in &self.shared.backends {
            let _ = played.socket.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
        for acceptor in self.acceptors.drain(..) {
            let _ = acceptor.join();
        }
        let threads = std::mem::take(&mut self.shared.lock().threads);
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> std::io::Result<(usize, &Played)> {
        let mut known = self.backends.iter().enumerate();
        let found = known.find(|(_, played)| played.declared.name == name);
        found.ok_or_else(|| std::io::Error::other("no such backend"))
    }

    fn accept(self: &Arc<Self>, at: usize) {
        let Some(played) = self.backends.get(at) else { return };
        loop {
            let accepted = played.socket.accept();
            let mut state = self.lock();
            if state.is_over {
                return;
            }
            let Ok((socket, _)) = accepted else {
                drop(self.changed.wait_timeout(state, LISTEN_POLL));
                continue;
            };
            let _ = socket.set_tcp_nodelay(true);
            let socket = Arc::new(socket);
            state.sockets.push((at, Arc::downgrade(&socket)));
            let (shared, declared) = (Arc::clone(self), played.declared.clone());
            state.threads.push(std::thread::spawn(move || {
                talk::converse(&shared, at, &declared, socket);
            }));
        }
    }

    /// Takes the script of a backend that begins before anything is received.
    pub(super) fn take_at_once(&self, at: usize) -> Option<Script> {
        let mut state = self.lock();
        let scripts = state.scripts.get_mut(at)?;
        let is_at_once = |script: &Script| matches!(script.acts.first(), Some(Act::AtOnce));
        if scripts.front().is_some_and(is_at_once) { scripts.pop_front() } else { None }
    }

    /// Takes the next script of a backend, or the usual one.
    pub(super) fn take(&self, at: usize) -> Script {
        let mut state = self.lock();
        let usual = Script { request: state.request, acts: vec![Act::Request, Act::Echo] };
        state.scripts.get_mut(at).and_then(VecDeque::pop_front).unwrap_or(usual)
    }

    /// Notes the begin of an exchange; `connection` is the number of its connection, if that has
    /// one. Returns the place of the note and that number.
    pub(super) fn begin(
        &self,
        at: usize,
        script: &Script,
        connection: Option<usize>,
    ) -> (usize, usize) {
        let mut state = self.lock();
        let number = connection.unwrap_or_else(|| {
            let count = state.connections.get_mut(at);
            count.map_or(0, |count| {
                *count += 1;
                *count
            })
        });
        state.heard.push(Heard {
            backend: at,
            request: script.request,
            connection: number,
            is_again: connection.is_some(),
            ..Heard::default()
        });
        (state.heard.len() - 1, number)
    }

    /// Completes the note of an exchange.
    pub(super) fn end(&self, note: usize, change: impl FnOnce(&mut Heard)) {
        if let Some(heard) = self.lock().heard.get_mut(note) {
            change(heard);
            heard.is_done = true;
        }
        self.changed.notify_all();
    }
}
