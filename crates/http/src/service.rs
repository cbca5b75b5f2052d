//! HTTP in one loop: what its connections share.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use rt::{Handle, Pool};
use server::engine::Engine;
use server::request::Request;

use crate::cache::resource::{Limits, Resources};
use crate::connection::{Active, MigrationOrder};

/// The most unused request buffers that a loop keeps.
const ACTIVE_LIMIT: usize = 256;
/// How many of them are kept through a second in which nothing needs them.
const ACTIVE_KEPT: usize = 16;

/// The buffer that requests are received into, bytes.
const INPUT_BYTES: usize = 16 * 1024;

/// The buffer that short responses are put together in, bytes.
const OUTPUT_BYTES: usize = 64 * 1024;

/// A loop's [`Engine`], with what its connections share beside. Nothing in it is shared with
/// another loop.
pub struct Service {
    /// What requests are served with.
    pub engine: Rc<Engine>,
    /// Files that were answered before.
    pub resources: Resources,
    /// Which connections may go to another loop.
    pub migration_order: MigrationOrder,
    pub(crate) actives: Pool<Active>,
    pub(crate) requests: Pool<Request>,
    /// What was received last, by whichever connection.
    pub(crate) input: RefCell<Vec<u8>>,
    /// What is sent next, by whichever connection.
    pub(crate) output: RefCell<Vec<u8>>,
}

impl Service {
    /// HTTP on top of `engine`.
    pub fn new(engine: Rc<Engine>) -> Rc<Service> {
        Rc::new(Service {
            resources: Resources::new(resource_limits(&engine.handle)),
            engine,
            migration_order: MigrationOrder::default(),
            actives: Pool::new("request buffers", ACTIVE_LIMIT),
            requests: Pool::new("requests", ACTIVE_LIMIT),
            input: RefCell::new(Vec::with_capacity(INPUT_BYTES)),
            output: RefCell::new(Vec::with_capacity(OUTPUT_BYTES)),
        })
    }

    /// What is done every second, and at the loop's end.
    pub fn every_second(&self) {
        self.engine.every_second();
        // Half of what was not used goes each second.
        self.actives.shrink((self.actives.idle() / 2).max(ACTIVE_KEPT));
    }
}

/// A service does all that its engine does.
impl Deref for Service {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

fn resource_limits(handle: &Handle) -> Limits {
    if handle.works_in_place() { Limits::THREAD } else { Limits::LOOP }
}
