//! The state of a loop: caches, clocks, its slot in the scoreboard.

pub mod digest;
pub mod plan;

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use messages::Message;
use mpm::scoreboard::{ConnectionGauges, Gauge, HostCounters};
use mpm::{LoopSlot, Status};
use rt::{ChangeSource, Handle};

use crate::config::host::Server;
use crate::engine::digest::DigestCache;
use crate::engine::plan::{LAYER_BYTES_LIMIT, LAYER_BYTES_LIMIT_OF_THREAD, PlanCache};
use crate::explain::Recorder;
use crate::files::mirror::{Fact, Files};
use crate::files::path::{self, Entry, StatError};
use crate::log::Level;
use crate::phases::walk::{
    ENTERED_LIMIT, ENTERED_LIMIT_OF_THREAD, EnteredCache, HtaccessCache, KEPT_BYTES_LIMIT,
    KEPT_BYTES_LIMIT_OF_THREAD,
};
use crate::request::{FileInfo, Request};

/// A loop's state. Loops share only the configuration.
pub struct Engine {
    /// The configuration.
    pub server: Arc<Server>,
    /// The loop.
    pub handle: Handle,
    /// Merged configurations and their plans.
    pub plans: PlanCache,
    /// Parsed `.htaccess` files.
    pub htaccess: HtaccessCache,
    /// Directories that walks have entered.
    pub entered: EnteredCache,
    /// The mirror of the file system, shared by the loops of the process.
    pub files: Arc<Files>,
    /// Digests of files.
    pub digests: DigestCache,
    /// Whether the loop is to end: every response closes its connection.
    pub draining: Cell<bool>,
    /// The open connections.
    pub connections: Connections,
    /// The loop's slot in the scoreboard.
    pub slot: mpm::LoopSlot,
    /// The whole scoreboard, for status pages.
    pub scoreboard: mpm::Scoreboard,
    /// What is recorded; `None` in a server.
    pub recorder: Option<Rc<Recorder>>,
    /// Whether responses are timed, since they are shown, or counted by virtual host.
    is_timed: bool,
    /// Whether the bytes of a response are those sent for it, its head included (mod_logio), not
    /// those of its body.
    counts_traffic: bool,
    /// Counters by virtual host, if some section shows them.
    hosts: Option<HostCounters>,
    next_connection: Cell<u64>,
    /// The last fact of a missing name: the mirror does not store it if a listing has told it, and
    /// a request asks several times.
    last_missing: RefCell<Option<Arc<Fact>>>,
    date: Cell<(u64, [u8; 29])>,
}

/// The numbers of a loop's connections by state, counted on the scoreboard itself.
pub struct Connections {
    slot: LoopSlot,
    gauges: ConnectionGauges,
    /// Idle connections that still have their buffers.
    lingering: Cell<usize>,
    /// Connections in a burst of requests.
    active: Cell<usize>,
}

/// Counts a connection in a state until it is dropped.
pub struct Doing(Gauge);

impl Doing {
    fn new(gauge: Gauge) -> Doing {
        gauge.up();
        Doing(gauge)
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        self.0.down();
    }
}

/// Counts a connection for the loop itself until it is dropped.
pub struct Counted<'c>(&'c Cell<usize>);

impl<'c> Counted<'c> {
    fn new(count: &'c Cell<usize>) -> Counted<'c> {
        count.set(count.get() + 1);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Connections {
    fn new(slot: &LoopSlot) -> Connections {
        let (lingering, active) = (Cell::new(0), Cell::new(0));
        Connections { slot: *slot, gauges: slot.connections(), lingering, active }
    }

    /// Counts an opened connection.
    pub fn opened(&self) {
        self.gauges.open.up();
        self.slot.add_accepted(1);
    }

    /// Counts a connection that another loop has accepted.
    pub fn joined(&self) {
        self.gauges.open.up();
        self.slot.add_taken_over(1);
    }

    /// Counts a closed connection.
    pub fn closed(&self) {
        self.gauges.open.down();
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        usize::try_from(self.gauges.open.now()).unwrap_or(usize::MAX)
    }

    /// The number of connections with a request, including those still being read.
    pub fn busy(&self) -> usize {
        let busy = self.gauges.reading.now() + self.gauges.writing.now();
        usize::try_from(busy).unwrap_or(usize::MAX)
    }

    /// Counts a connection that is reading a request.
    #[inline]
    pub fn reading(&self) -> Doing {
        Doing::new(self.gauges.reading)
    }

    /// Counts an idle connection that keeps its buffers.
    #[inline]
    pub fn lingering(&self) -> Counted<'_> {
        Counted::new(&self.lingering)
    }

    /// The number of idle connections with buffers.
    pub fn lingering_now(&self) -> usize {
        self.lingering.get()
    }

    /// Counts a connection that has a request, or had one recently.
    #[inline]
    pub fn active(&self) -> Counted<'_> {
        Counted::new(&self.active)
    }

    /// How many have.
    pub fn active_now(&self) -> usize {
        self.active.get()
    }

    /// Counts a connection that is responding.
    #[inline]
    pub fn writing(&self) -> Doing {
        Doing::new(self.gauges.writing)
    }

    /// Counts a responding connection that waits for a name server.
    pub fn resolving(&self) -> Doing {
        Doing::new(self.gauges.resolving)
    }

    /// Counts a connection of HTTP/2.
    pub fn http2(&self) -> Doing {
        Doing::new(self.gauges.http2)
    }

    /// Counts a request of such a connection.
    pub fn stream(&self) -> Doing {
        Doing::new(self.gauges.streams)
    }

    /// Counts a connection that is closing.
    pub fn closing(&self) -> Doing {
        Doing::new(self.gauges.closing)
    }
}

fn layer_bytes_limit(handle: &Handle) -> usize {
    if handle.works_in_place() { LAYER_BYTES_LIMIT_OF_THREAD } else { LAYER_BYTES_LIMIT }
}

fn htaccess_bytes_limit(handle: &Handle) -> usize {
    if handle.works_in_place() { KEPT_BYTES_LIMIT_OF_THREAD } else { KEPT_BYTES_LIMIT }
}

fn entered_limit(handle: &Handle) -> usize {
    if handle.works_in_place() { ENTERED_LIMIT_OF_THREAD } else { ENTERED_LIMIT }
}

impl Engine {
    /// Returns the engine of a loop.
    pub fn new(
        server: Arc<Server>,
        handle: Handle,
        slot: mpm::LoopSlot,
        scoreboard: mpm::Scoreboard,
    ) -> Rc<Engine> {
        Rc::new(Engine::unshared(server, handle, slot, scoreboard))
    }

    /// Returns an engine that records what it does.
    pub fn recorded(
        server: Arc<Server>,
        handle: Handle,
        slot: mpm::LoopSlot,
        scoreboard: mpm::Scoreboard,
        recorder: Rc<Recorder>,
    ) -> Rc<Engine> {
        let engine = Engine::unshared(server, handle, slot, scoreboard);
        let plans = engine.plans.recorded(recorder.clone());
        Rc::new(Engine { plans, recorder: Some(recorder), ..engine })
    }

    fn unshared(
        server: Arc<Server>,
        handle: Handle,
        slot: mpm::LoopSlot,
        scoreboard: mpm::Scoreboard,
    ) -> Engine {
        Engine {
            plans: PlanCache::new(
                server.registry.clone(),
                server.section_ids,
                layer_bytes_limit(&handle),
            ),
            htaccess: HtaccessCache::new(htaccess_bytes_limit(&handle)),
            entered: EnteredCache::new(entered_limit(&handle)),
            files: server.files.clone(),
            digests: DigestCache::default(),
            handle,
            draining: Cell::new(false),
            connections: Connections::new(&slot),
            counts_traffic: server.registry.is_active("logio_module"),
            is_timed: server.counts_hosts || is_extended(&server),
            hosts: scoreboard.host_counters(&slot, &server.counted_hosts()),
            slot,
            scoreboard,
            server,
            next_connection: Cell::new(1),
            date: Cell::new((0, [0; 29])),
            recorder: None,
            last_missing: RefCell::new(None),
        }
    }

    /// The recorder, while it records events.
    #[inline]
    pub fn recording(&self) -> Option<&Rc<Recorder>> {
        self.recorder.as_ref().filter(|recorder| !recorder.is_measuring())
    }

    /// [`path::stat`] by the mirror. The path is absolute and without dot segments.
    pub fn stat(&self, path: &[u8]) -> Result<FileInfo, StatError> {
        self.fact(path).map_or_else(|| path::stat(path), |fact| fact.stat())
    }

    /// [`path::lstat`] by the mirror. The path is absolute and without dot segments.
    pub fn lstat(&self, path: &[u8]) -> Result<Entry, StatError> {
        self.fact(path).map_or_else(|| path::lstat(path), |fact| fact.lstat())
    }

    /// The mirror's fact of a path, which is absolute and without dot segments.
    pub(crate) fn fact(&self, path: &[u8]) -> Option<Arc<Fact>> {
        let ChangeSource::Watcher(watcher) = self.handle.change_source() else { return None };
        if let Some(fact) = &*self.last_missing.borrow()
            && fact.is_of(path)
            && fact.is_true(watcher)
        {
            return Some(fact.clone());
        }
        let fact = self.files.fact(watcher, path)?;
        if fact.stat() == Err(StatError::Missing) {
            self.last_missing.replace(Some(fact.clone()));
        }
        Some(fact)
    }

    /// The content of a small regular file, with its metadata. `None` if the mirror can't hold it.
    /// The path is absolute and without dot segments.
    pub fn content(&self, path: &[u8]) -> Option<(FileInfo, Bytes)> {
        let ChangeSource::Watcher(watcher) = self.handle.change_source() else { return None };
        self.files.content(watcher, path)
    }

    /// A connection number that is unique in this loop.
    pub fn next_connection_id(&self) -> u64 {
        let id = self.next_connection.get();
        self.next_connection.set(id + 1);
        id
    }

    /// The current second in the format of RFC 9110 (section 5.6.7), formatted once per second.
    #[inline]
    pub fn date(&self) -> [u8; 29] {
        let now = self.handle.clock().wall_s();
        let (second, text) = self.date.get();
        if second == now {
            return text;
        }
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(now);
        let mut text = [b' '; 29];
        // Written in place: even once per second there is no allocation.
        let _ = write!(text.as_mut_slice(), "{}", httpdate::HttpDate::from(time));
        self.date.set((now, text));
        text
    }

    /// Logs a line without a request to the main server's error log.
    pub fn log_main(&self, level: Level, number: u32, message: std::fmt::Arguments<'_>) {
        self.server.log("core.c", level, number, message);
    }

    /// The work of every second and of the loop's end: calls modules' functions, and reports
    /// dropped log lines.
    pub fn every_second(&self) {
        for run in self.server.registry.hooks.every_second() {
            run(self);
        }
        let dropped = crate::log::sinks::take_dropped();
        if dropped > 0 {
            self.scoreboard.count_dropped_log_lines(dropped);
            // On a full disk this line is lost as well, and repeated until it is written.
            let text = format_args!("{dropped} log lines could not be written");
            self.log_main(Level::Error, Message::LinesLost.number(), text);
        }
    }

    /// Publishes whether the loop serves or finishes, and its CPU. Called once a second, and before
    /// a status page.
    pub fn publish(&self) {
        self.slot.set_cpu(nix::sched::sched_getcpu().ok());
        let is_draining = self.draining.get();
        self.slot.set_status(if is_draining { Status::Graceful } else { Status::Ready });
    }

    /// Counts the response to `request` in the scoreboard: its status and its bytes. Source:
    /// `ap_increment_counts`.
    #[inline]
    pub fn count(&self, request: &Request) {
        let response = &request.response;
        let bytes = match self.counts_traffic {
            true => request.traffic.bytes_out,
            false => response.bytes_sent,
        };
        if !self.is_timed {
            return self.slot.add_requests(1, bytes, 0);
        }
        // The turn's clock would show 0 for a response within one turn.
        let now_us = self.handle.clock().precise_wall_us();
        let duration_us = now_us.saturating_sub(request.time_us);
        self.slot.request_end(bytes, duration_us);
        self.count_host(request.host.id, response.status, response.bytes_sent, duration_us);
        for run in self.server.registry.hooks.answered() {
            run(request);
        }
    }

    fn count_host(&self, host: u32, status: u16, bytes: u64, duration_us: u64) {
        if let Some(hosts) = &self.hosts {
            let host = usize::try_from(host).unwrap_or(usize::MAX);
            hosts.count(host, status, bytes, duration_us);
        }
    }
}

/// Whether single requests are shown: by default if mod_status is active, unless `ExtendedStatus
/// Off`.
fn is_extended(server: &Server) -> bool {
    let extended = &server.main().core.globals.0.extended_status;
    extended.or(server.registry.is_active("status_module"))
}
