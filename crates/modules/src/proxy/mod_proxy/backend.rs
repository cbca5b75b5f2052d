//! A connection to a backend, for one request: a kept one, or a new one.
//!
//! Source: `ap_proxy_acquire_connection`, `ap_proxy_determine_connection`,
//! `ap_proxy_connect_backend`, `ap_proxy_retry_worker`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use rt::{Addresses, ConnectError, ConnectOptions, Remote, Stream};
use rustix::io::Errno;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

pub use super::fault::FailedTells;
pub use super::place::{Place, place};
use super::pool::{Acquired, Pool, Slot};
use super::scheme::Exchange;
use super::spool::Limits;
use super::status::Status;
use super::tls::{self, Wanted};
use super::worker_log::Taken;
use super::workers::Worker;
use super::{block, fault, log_of_server, retry, unasked};

/// The addresses of backends, for all loops of the process.
pub static ADDRESSES: LazyLock<Addresses> = LazyLock::new(Addresses::default);

/// The note with the own port of a connection.
pub const SOURCE_PORT: &[u8] = b"proxy-source-port";
/// The note with the status of a backend's response.
pub const STATUS: &[u8] = b"proxy-status";

/// A connection to a backend. Dropping it closes it, [`Backend::give_back`] keeps it.
pub struct Backend {
    /// The connection.
    pub stream: Stream,
    /// Whether it has served a request before: its server may have closed it meanwhile.
    pub is_reused: bool,
    pub(super) slot: Slot,
    /// `None` if it serves one request.
    pool: Option<Rc<Pool>>,
    /// For the log, if that says who has the connection.
    taken: Option<Box<Taken>>,
}

impl Backend {
    /// Takes a connection for the exchange: an idle one if `may_reuse`, else a new one. If there
    /// are `max` connections it waits.
    ///
    /// # Errors
    /// The status of the response. What happened has been logged, and a member of a balancer marked
    /// as failed.
    pub async fn connect(
        exchange: &mut Exchange<'_>,
        options: Options<'_>,
    ) -> Result<Backend, u16> {
        if !exchange.bound.server.blocked.is_empty() {
            Box::pin(block::check_url(exchange)).await?;
        }
        if unasked::is_unasked_backend(exchange) {
            return Err(503);
        }
        let pool = Pool::of(exchange.worker);
        if options.may_reuse && exchange.worker.is_plain() {
            let now_ms = exchange.request.engine.handle.clock().now_ms();
            if let Some((stream, slot)) = pool.take(now_ms)
                && slot.fits(exchange, &Wanted::Plain)
            {
                let taken = Taken::of(exchange, &options)?;
                return Ok(Backend { stream, is_reused: true, slot, pool: Some(pool), taken });
            }
        }
        // A large future, which few requests need.
        Box::pin(Backend::open(exchange, options, pool)).await
    }

    async fn open(
        exchange: &mut Exchange<'_>,
        options: Options<'_>,
        pool: Rc<Pool>,
    ) -> Result<Backend, u16> {
        let worker = exchange.worker;
        let handle = exchange.request.engine.handle.clone();
        let acquired = match options.may_reuse {
            true => pool.acquire(&handle).await,
            false => pool.make_room(&handle).await,
        };
        let taken = if acquired.is_some() { Taken::of(exchange, &options)? } else { None };
        let wanted = tls::wanted(exchange).await;
        let mut slot = match acquired {
            Some(Acquired::Reused(stream, slot))
                if options.may_reuse && slot.fits(exchange, &wanted) =>
            {
                return Ok(Backend { stream, is_reused: true, slot, pool: Some(pool), taken });
            }
            Some(Acquired::Reused(_, slot) | Acquired::Slot(slot)) => slot,
            None => {
                let (scheme, place) = (options.shown_name(exchange), Place::of(worker));
                let text = format_args!("{scheme}: failed to acquire connection for ({place})");
                exchange.log_of_server(Level::Error, 941, None, text);
                return Err(503);
            }
        };
        let began = exchange.moment_us();
        let stream = open(exchange, &options, taken.as_deref()).await?;
        let stream = match &wanted {
            Wanted::Plain => stream,
            Wanted::Tls(security) => tls::secure(exchange, stream, security, &options).await?,
            Wanted::Refused(why) => return Err(tls::refuse(exchange, why.as_deref())),
        };
        if let (Some(began), Some(now)) = (began, exchange.moment_us()) {
            worker.state.count_connect(now.saturating_sub(began));
        }
        slot.security = wanted.into_security();
        slot.detour = super::detour::of(exchange);
        let is_kept = options.keeps && !worker.is_generic;
        let pool = is_kept.then_some(pool);
        Ok(Backend { stream, is_reused: false, slot, pool, taken })
    }

    /// The connection, for another protocol, with what is held for as long as it is open.
    pub fn into_parts(self) -> (Stream, impl Sized + use<>) {
        (self.stream, (self.slot, self.taken))
    }

    /// Keeps the connection for another request. Its last response must have been read to the end.
    pub fn give_back(self) {
        let Backend { stream, slot, pool, taken, is_reused: _ } = self;
        drop(taken);
        if let Some(pool) = pool {
            pool.put(stream, slot);
        }
    }
}

/// How a scheme wants its connection.
#[derive(Clone, Copy, Debug)]
pub struct Options<'s> {
    /// The scheme's name in messages, such as `HTTP`.
    pub name: &'s str,
    /// The file of its module.
    pub module: &'s str,
    /// The number of its message that there is no connection, if it has one.
    pub failed: Option<u32>,
    /// What that message tells.
    pub failed_tells: FailedTells,
    /// The number of its message that the request could not be sent.
    pub unsent: u32,
    /// An idle connection will do.
    pub may_reuse: bool,
    /// The connection may be kept afterwards.
    pub keeps: bool,
}

impl<'s> Options<'s> {
    /// The same, if `reuses` is whether connections of the scheme are kept unless the worker's
    /// parameters say otherwise.
    #[must_use]
    pub fn for_worker(self, worker: &Worker, reuses: bool) -> Options<'s> {
        let keeps = !worker.parameters.disable_reuse.unwrap_or(!reuses) && worker.has_one_place();
        Options { may_reuse: keeps, keeps, ..self }
    }

    /// What messages about connections call the protocol.
    pub(super) fn shown_name(&self, exchange: &Exchange<'s>) -> Verbatim<'s> {
        match self.name {
            "HTTP" => Verbatim::new(exchange.scheme()),
            "UWSGI" => Verbatim::new("uwsgi"),
            name => Verbatim::new(name),
        }
    }
}

impl Exchange<'_> {
    /// Whether the worker may be asked: it is not stopped or disabled, and has not just failed.
    ///
    /// # Errors
    /// 503.
    pub fn check_worker(&self) -> Result<(), u16> {
        if self.worker.state.status().is_usable() {
            return Ok(());
        }
        let scheme = Verbatim::new(&self.worker.target.scheme);
        let log = |level, number, text: fmt::Arguments<'_>| {
            self.log_of_server(level, number, None, text);
        };
        let now = self.request.engine.handle.clock().wall_us();
        if retry::is_usable(self.worker, now, scheme, log) {
            return Ok(());
        }
        let place = Place::of(self.worker);
        log(Level::Error, 940, format_args!("{scheme}: disabled connection for ({place})"));
        Err(503)
    }

    /// Marks the worker as failed, unless its errors are ignored.
    pub fn worker_failed(&self) {
        let state = &self.worker.state;
        let status = state.status();
        if status.has(Status::IGNORE_ERRORS) || !status.is_usable() {
            return;
        }
        retry::fail(self.worker, self.request.engine.handle.clock().wall_us());
        let place = Place::of(self.worker);
        let retry = retry::after(self.worker).as_secs();
        let text =
            format_args!("ap_proxy_connect_backend disabling worker for ({place}) for {retry}s");
        self.log_of_server(Level::Error, 959, None, text);
    }

    /// Notes the own port of a connection, if the configuration mentions such notes.
    pub fn note_port(&mut self, stream: &Stream) {
        if !self.bound.server.has_notes.0 {
            return;
        }
        if let Ok(own) = stream.local_addr() {
            self.request.notes.set(SOURCE_PORT, own.port().to_string().as_bytes());
        }
    }

    /// Notes the status of the response, if the configuration mentions such notes.
    pub fn note_status(&mut self) {
        if self.bound.server.has_notes.0 {
            let status = self.request.response.status.to_string();
            self.request.notes.set(STATUS, status.as_bytes());
        }
    }

    /// Counts bytes sent to a member of a balancer.
    pub fn count_sent(&self, bytes: u64) {
        if self.worker.is_member {
            self.worker.state.count_transferred(bytes);
        }
    }

    /// The longest wait for the backend at one time: `timeout`, ProxyTimeout or Timeout.
    pub fn timeout(&self) -> Duration {
        let own = self.worker.parameters.timeout.or(self.bound.server.timeout.get().copied());
        own.unwrap_or_else(|| self.request.host.core.timeout())
    }

    /// How much of a response may be written to a file while its client is slow.
    pub fn spool_limits(&self) -> Option<Limits> {
        self.bound.server.spool.get().copied().flatten()
    }

    /// Logs a line that names no client, as Apache does for workers.
    #[track_caller]
    pub(super) fn log_of_server(
        &self,
        level: Level,
        number: u32,
        error: Option<Errno>,
        text: fmt::Arguments<'_>,
    ) {
        log_of_server(self.request, level, number, error, text);
    }
}

/// Opens a connection to where the URL leads.
async fn open(
    exchange: &mut Exchange<'_>,
    options: &Options<'_>,
    taken: Option<&Taken>,
) -> Result<Stream, u16> {
    let place = place(exchange)?;
    let worker = exchange.worker;
    let parameters = &worker.parameters;
    let how = connect_options(exchange);
    let timeout = parameters.connection_timeout.unwrap_or_else(|| exchange.timeout());
    let socket = exchange.socket.map(|path| socket_path(exchange.request, path));
    let opened = match &socket {
        Some(path) => {
            let remote = Remote::Unix(path.clone());
            let end = exchange.request.engine.handle.deadline(timeout);
            Stream::connect(&remote, &how, end).await.map_err(ConnectError::from)
        }
        None => {
            let ttl = parameters.address_ttl;
            let host = String::from_utf8_lossy(&place.host);
            ADDRESSES.connect((&host, place.port), ttl, &how, timeout).await
        }
    };
    let error = match opened {
        Ok(stream) => {
            worker.state.clear_retries();
            if let Some(taken) = taken {
                taken.connected(&stream, socket.as_deref(), &place);
            }
            return Ok(stream);
        }
        Err(error) => error,
    };
    let scheme = options.shown_name(exchange);
    let errno = match &error {
        ConnectError::Unknown(_) | ConnectError::Pool(_) => {
            return Err(fault::unknown_host(exchange.request, &place.host, &error));
        }
        ConnectError::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => Errno::TIMEDOUT,
        ConnectError::Io(error) => Errno::from_io_error(error).unwrap_or(Errno::IO),
    };
    match &socket {
        Some(path) => {
            let path = path.display();
            let text = format_args!(
                "{scheme}: attempt to connect to Unix domain socket {path} ({place}) failed"
            );
            exchange.log_of_server(Level::Error, 2454, Some(errno), text);
        }
        None => {
            let address = last_address(worker, &place).await;
            let text = format_args!("{scheme}: attempt to connect to {address} ({place}) failed");
            exchange.log_of_server(Level::Error, 957, Some(errno), text);
        }
    }
    Err(fault::unconnected(exchange, options, &place.host))
}

/// The address to which the last attempt for a place has failed, as a text: addresses are known by
/// then.
pub async fn last_address(worker: &Worker, place: &Place<'_>) -> String {
    let host = String::from_utf8_lossy(&place.host);
    let found = ADDRESSES.look_up(&host, worker.parameters.address_ttl).await.ok();
    let address = found.and_then(|found| found.last().copied());
    let address = address.map(|address| SocketAddr::new(address, place.port).to_string());
    address.unwrap_or_else(|| place.to_string())
}

/// How a connection of the exchange is opened.
pub fn connect_options(exchange: &Exchange<'_>) -> ConnectOptions {
    let (parameters, settings) = (&exchange.worker.parameters, exchange.bound.server);
    let bytes = parameters.receive_buffer.or(settings.receive_buffer.get().copied());
    ConnectOptions {
        source: settings.source.get().copied(),
        keep_alive: parameters.keep_alive.unwrap_or(false),
        receive_buffer: bytes.filter(|bytes| *bytes > 0),
    }
}

/// The time without a byte after which a tunnel ends: the longer one of both ends
/// (`ap_proxy_tunnel_create`).
pub fn tunnel_timeout(exchange: &Exchange<'_>) -> Duration {
    exchange.timeout().max(exchange.request.host.core.timeout())
}

/// Opens a connection to a worker, apart from any request.
///
/// # Errors
/// What failed.
pub async fn connect_to(worker: &Worker, timeout: Duration) -> std::io::Result<Stream> {
    use std::os::unix::ffi::OsStrExt;
    let parameters = &worker.parameters;
    let how = ConnectOptions::default();
    let timeout = parameters.connection_timeout.unwrap_or(timeout);
    if let Some(path) = &worker.target.socket {
        let remote = Remote::Unix(std::ffi::OsStr::from_bytes(path).into());
        let handle = rt::Handle::current().ok_or(std::io::ErrorKind::NotConnected)?;
        return Stream::connect(&remote, &how, handle.deadline(timeout)).await;
    }
    let host = String::from_utf8_lossy(&worker.target.host);
    let port = u16::try_from(worker.target.port_number()).unwrap_or(0);
    let opened = ADDRESSES.connect((&host, port), parameters.address_ttl, &how, timeout).await;
    opened.map_err(|error| match error {
        ConnectError::Io(error) => error,
        error => std::io::Error::other(error),
    })
}

/// A relative path is one below `DefaultRuntimeDir`.
pub(in crate::proxy) fn socket_path(request: &Request, path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    let server = &request.engine.server;
    let folder = server.main().core.globals.0.runtime_dir.get();
    folder.map_or_else(|| path.to_owned(), |folder| folder.join(path))
}
