//! A request's share of a connection.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use rt::{Deadline, Sleep};
use server::connection_info::ConnectionInfo;
use server::engine::Doing;
use server::engine::plan::Place;
use server::host::Host;
use server::request::KnownHost;
use wire::h2::{self, StreamId};
use wire::host::RequestHost;
use wire::priority::Priority;
use wire::{HeadError, RequestHead, Table};

use super::push::{Diary, Origin, Pushed};
use crate::connection::Active;
use crate::service::Service;

/// Bytes that wait to be sent, beyond which no response adds any.
pub(super) const OUTPUT_BYTES: usize = 64 * 1024;

/// Bytes of bodies that a connection holds before there is room for them.
pub(super) const HELD_BYTES: usize = 64 * 1024;

/// Shorter pieces of a body are joined: each has a price in memory.
const PIECE_BYTES: usize = 4096;

/// What the requests of a connection share.
pub(super) struct Shared {
    pub service: Rc<Service>,
    pub info: Rc<ConnectionInfo>,
    /// The host whose settings the connection has.
    pub host: Arc<Host>,
    pub protocol: RefCell<h2::Connection>,
    /// The requests that are being served.
    pub streams: RefCell<Vec<Rc<Stream>>>,
    /// Counts the connection as one that responds, as long as there are any.
    pub writing: RefCell<Option<Doing>>,
    /// What sends the output.
    pub sender: RefCell<Option<Waker>>,
    /// Whether the connection is broken: nothing can be sent any more.
    pub is_broken: Cell<bool>,
    /// Responses that were sent.
    pub responses: Cell<u32>,
    /// Bytes that each response may add until the output is sent, if it shares its level.
    pub share: Cell<usize>,
    /// Whether responses were woken, and others not, because there may be no room left for them.
    pub passes_over: Cell<bool>,
    /// Bytes of bodies that were added to the output.
    pub added: Cell<u64>,
    /// Bytes of bodies that are made, although the client has no room for them.
    pub held: Cell<usize>,
    /// How often there was room for bodies of requests again.
    pub openings: Cell<u32>,
    /// What was promised and is to be served.
    pub promised: RefCell<Vec<Promised>>,
    /// What was pushed.
    pub diary: RefCell<Diary>,
    /// What the next request may have in common with the last one.
    pub places: RefCell<Places>,
}

/// Where requests of a connection begin.
#[derive(Default)]
pub(super) struct Places {
    base: Option<Place>,
    known: Option<KnownHost>,
    host: RequestHost,
}

/// Bytes of a host's name that are kept for the next request.
const HOST_KEPT_BYTES: usize = 1024;

impl Places {
    /// Gives them to a request.
    pub fn give(&mut self, active: &mut Active) {
        (active.base, active.known) = (self.base.take(), self.known.take());
        std::mem::swap(&mut self.host, &mut active.host);
    }

    /// Takes them back.
    pub fn take(&mut self, active: &mut Active) {
        (self.base, self.known) = (active.base.take(), active.known.take());
        if active.host.capacity_bytes() <= HOST_KEPT_BYTES {
            std::mem::swap(&mut self.host, &mut active.host);
        }
    }
}

/// A request that the client has not sent.
pub(super) type Promised = (Rc<Stream>, Box<RequestHead>, Option<Box<HeadError>>);

impl Shared {
    /// Wakes what sends the output.
    pub fn wake(&self) {
        let sender = self.sender.borrow_mut().take();
        if let Some(waker) = sender {
            waker.wake();
        }
    }

    /// Once the client may send bodies again, its time for them begins.
    pub fn check_room(&self) {
        let room = self.protocol.borrow().has_room_for_bodies();
        if room.is_some_and(|openings| self.openings.replace(openings) != openings) {
            for stream in self.streams.borrow().iter() {
                stream.wake_reader();
            }
        }
    }

    /// Adds a request.
    pub fn add(&self, stream: Rc<Stream>) {
        let connections = &self.service.connections;
        self.writing.borrow_mut().get_or_insert_with(|| connections.writing());
        self.streams.borrow_mut().push(stream);
    }

    /// Removes a request that has been served.
    pub fn remove(&self, id: StreamId) {
        let mut streams = self.streams.borrow_mut();
        streams.retain(|stream| stream.id != id);
        if streams.is_empty() {
            self.writing.take();
        }
    }

    pub fn stream(&self, id: StreamId) -> Option<Rc<Stream>> {
        self.streams.borrow().iter().find(|stream| stream.id == id).cloned()
    }
}

/// The end of a request's body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// More is to come.
    No,
    /// All of it has arrived.
    Yes,
    /// The client or the connection is gone.
    Broken,
}

/// A request and its response.
pub(super) struct Stream {
    pub id: StreamId,
    pub shared: Rc<Shared>,
    /// The pieces of the body that the handler has not taken.
    pub pieces: RefCell<VecDeque<Vec<u8>>>,
    /// Whether the rest of the body is of no use.
    discards: Cell<bool>,
    pub end: Cell<BodyEnd>,
    /// Whether the client waits for `100 (Continue)`.
    pub wants_continue: Cell<bool>,
    pub trailers: RefCell<Table>,
    pub reader: RefCell<Option<Waker>>,
    pub writer: RefCell<Option<Waker>>,
    /// The client's wish.
    pub priority: Cell<Priority>,
    /// Whether the client has said anything about it.
    pub has_wish: Cell<bool>,
    /// Why the server opened it; `None` if the client did.
    pub pushed: Option<Pushed>,
    /// What requests that its response suggests inherit, if the client accepts pushes.
    pub origin: OnceCell<Box<Origin>>,
    /// Whether the client has reset it.
    pub is_reset: Cell<bool>,
    /// Bytes that it has added since the output was sent last.
    pub granted: Cell<usize>,
    /// Bytes received for it.
    pub received: Cell<u64>,
    /// Bytes of frames sent for it.
    pub sent: Cell<u64>,
}

impl Stream {
    pub fn new(id: StreamId, shared: Rc<Shared>, ends: bool) -> Stream {
        Stream {
            id,
            shared,
            pieces: RefCell::default(),
            discards: Cell::new(false),
            end: Cell::new(if ends { BodyEnd::Yes } else { BodyEnd::No }),
            wants_continue: Cell::new(false),
            trailers: RefCell::default(),
            reader: RefCell::default(),
            writer: RefCell::default(),
            priority: Cell::default(),
            has_wish: Cell::new(false),
            pushed: None,
            origin: OnceCell::new(),
            is_reset: Cell::new(false),
            granted: Cell::new(0),
            received: Cell::new(0),
            sent: Cell::new(0),
        }
    }

    /// A stream of the server.
    pub fn pushed(id: StreamId, shared: Rc<Shared>, pushed: Pushed) -> Stream {
        Stream { pushed: Some(pushed), ..Stream::new(id, shared, true) }
    }

    /// Keeps a piece of the body until the handler takes it.
    pub fn take_piece(&self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        if self.discards.get() {
            return self.shared.protocol.borrow_mut().taken(self.id, bytes.len());
        }
        let mut pieces = self.pieces.borrow_mut();
        match pieces.back_mut() {
            Some(last) if last.len() < PIECE_BYTES => last.extend_from_slice(&bytes),
            _ => pieces.push_back(bytes),
        }
    }

    /// Gives the window of the body back that no handler takes any more.
    pub fn discard(&self) {
        self.discards.set(true);
        let left: usize = self.pieces.take().iter().map(Vec::len).sum();
        if left > 0 {
            self.shared.protocol.borrow_mut().taken(self.id, left);
            self.shared.wake();
        }
    }

    pub fn wake_reader(&self) {
        let reader = self.reader.borrow_mut().take();
        if let Some(waker) = reader {
            waker.wake();
        }
    }

    pub fn wake_writer(&self) {
        let writer = self.writer.borrow_mut().take();
        if let Some(waker) = writer {
            waker.wake();
        }
    }

    /// The client is gone, or no longer interested.
    pub fn break_off(&self) {
        self.is_reset.set(true);
        if self.end.get() == BodyEnd::No {
            self.end.set(BodyEnd::Broken);
        }
        self.wake_reader();
        self.wake_writer();
    }

    /// Calls the protocol, and counts what that adds to the output as sent for this request.
    pub fn send<T>(&self, call: impl FnOnce(&mut h2::Connection) -> T) -> T {
        let mut protocol = self.shared.protocol.borrow_mut();
        let before = protocol.output.len();
        let outcome = call(&mut protocol);
        self.sent.set(self.sent.get() + (protocol.output.len() - before) as u64);
        drop(protocol);
        self.shared.wake();
        outcome
    }

    /// Waits for room, at most until the client has taken nothing for the time that a request
    /// waits: nothing of this response or, while others have their turn, of them.
    pub async fn room(&self) -> io::Result<usize> {
        let mut sleep: Option<std::pin::Pin<Box<Sleep>>> = None;
        let mut added = self.shared.added.get();
        std::future::poll_fn(|cx| {
            let room = self.poll_room(cx);
            if room.is_ready() {
                return room;
            }
            let sleep = sleep.get_or_insert_with(|| Box::pin(self.sleep()));
            while sleep.as_mut().poll(cx).is_ready() {
                let before = std::mem::replace(&mut added, self.shared.added.get());
                if before == added || !self.waits_for_turn() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                sleep.as_mut().reset(self.deadline());
            }
            Poll::Pending
        })
        .await
    }

    fn sleep(&self) -> Sleep {
        let handle = &self.shared.service.handle;
        handle.sleep_until(self.deadline())
    }

    /// The deadline for the client, from now on.
    pub fn deadline(&self) -> Deadline {
        self.shared.service.handle.deadline(super::stream_timeout(&self.shared.host))
    }

    /// Adds as much of a response's body as there is room for; returns how much that is.
    pub fn add(&self, bytes: &[u8], room: usize, ends: bool) -> usize {
        let piece = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        let is_last = ends && piece.len() == bytes.len();
        let sent = self.send(|protocol| protocol.send_data(self.id, piece, is_last));
        self.granted.set(self.granted.get() + sent);
        self.shared.added.set(self.shared.added.get().wrapping_add(sent as u64));
        if is_last {
            self.shared.leaves_room();
        }
        sent
    }
}
