//! The state that HTTP connections of a loop share.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use rt::{Handle, Pool};
use server::engine::Engine;
use server::request::Request;
use wire::h2::Spare;

use crate::cache::response::{Limits, ResponseCache};
use crate::connection::{Active, MigrationOrder};

/// Most unused request buffers that a loop keeps.
const ACTIVE_LIMIT: usize = 256;
/// Unused request buffers that are always kept.
const ACTIVE_KEPT: usize = 16;

/// Most unused [`Buffers`] that a loop keeps.
const BUFFERS_LIMIT: usize = 16;
/// The capacity of each that is kept, in bytes.
const BUFFER_KEPT_BYTES: usize = 128 * 1024;

/// Size of the receive buffer in bytes.
const INPUT_BYTES: usize = 16 * 1024;

/// Size of the buffer for short responses in bytes.
pub(crate) const OUTPUT_BYTES: usize = 64 * 1024;

/// A loop's [`Engine`] with the shared state of its connections. Loops do not share it.
pub struct Service {
    /// The engine that serves requests.
    pub engine: Rc<Engine>,
    /// Cached responses.
    pub responses: ResponseCache,
    /// Which connections may migrate to another loop.
    pub migration_order: MigrationOrder,
    pub(crate) actives: Pool<Active>,
    /// For requests of connections with many at a time: their buffers stay empty.
    pub(crate) stream_actives: Pool<Active>,
    /// For such connections, while they work.
    pub(crate) stream_buffers: Pool<Buffers>,
    pub(crate) requests: Pool<Request>,
    /// The bytes received last, by any connection.
    pub(crate) input: RefCell<Vec<u8>>,
    /// The bytes to send next, by any connection.
    pub(crate) output: RefCell<Vec<u8>>,
    /// The head that is encoded next, by any connection.
    pub(crate) head_text: RefCell<Vec<u8>>,
}

impl Service {
    /// Returns the service for `engine`.
    pub fn new(engine: Rc<Engine>) -> Rc<Service> {
        Rc::new(Service {
            responses: ResponseCache::new(cache_limits(&engine.handle)),
            engine,
            migration_order: MigrationOrder::default(),
            actives: Pool::new("request buffers", ACTIVE_LIMIT),
            stream_actives: Pool::new("heads of streams", ACTIVE_LIMIT),
            stream_buffers: Pool::new("buffers of HTTP/2", BUFFERS_LIMIT),
            requests: Pool::new("requests", ACTIVE_LIMIT),
            input: RefCell::new(Vec::with_capacity(INPUT_BYTES)),
            output: RefCell::new(Vec::with_capacity(OUTPUT_BYTES)),
            head_text: RefCell::default(),
        })
    }

    /// The work of every second and of the loop's end.
    pub fn every_second(&self) {
        self.engine.every_second();
        // Half of the unused ones are freed each second.
        self.actives.shrink((self.actives.idle() / 2).max(ACTIVE_KEPT));
    }
}

/// What a connection with many requests at a time works with.
#[derive(Default)]
pub(crate) struct Buffers {
    /// For bytes received.
    pub input: Vec<u8>,
    /// For bytes to send.
    pub output: Vec<u8>,
    /// For requests.
    pub spare: Spare,
}

impl Buffers {
    /// Frees what is more than connections usually need.
    pub fn trim(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            buffer.clear();
            buffer.shrink_to(BUFFER_KEPT_BYTES);
        }
        self.spare.trim();
    }
}

/// A service provides everything of its engine.
impl Deref for Service {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

fn cache_limits(handle: &Handle) -> Limits {
    if handle.works_in_place() { Limits::THREAD } else { Limits::LOOP }
}
