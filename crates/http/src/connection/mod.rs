//! One connection: wait, read a head, respond, wait again.
//!
//! While nothing happens a connection is a small task: its socket and a few counters. The
//! first bytes bring in an [`Active`] (buffers, a head, a request) from the loop's pool, which a
//! connection keeps as long as it is busy and returns after [`LINGER`] without a request.

mod dump;
mod echo;
mod explain;
mod fast;
mod fill;
mod finish;
mod h2;
mod interim;
mod migration;
mod pass;
mod proxied;
mod read_head;
mod request_body;
mod requests;
mod send;
mod tls;
mod tunnel;

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rt::{Accepted, Deadline, Stream};
use wire::host::RequestHost;
use wire::range::ByteRange;
use wire::{HeadOptions, HeadParser, RequestHead};

use crate::service::Service;
use server::connection_info::{ConnectionInfo, KeepAlive};
use server::log::Level;
use server::plan::Place;
use server::read_policy::Running;
use server::request::KnownHost;

pub use explain::{Explained, OverHttp2, explain, info_of, speaks_http2};
pub use migration::{IdleConnection, Migration, MigrationOrder, serve_migrated};

/// How long an idle connection keeps its buffers, unless [`LINGERING_LIMIT`] others do.
pub const LINGER: Duration = Duration::from_secs(1);

/// Most idle connections of a loop that keep their buffers: thousands that become idle together
/// would need more memory than they need afterwards.
pub const LINGERING_LIMIT: usize = 64;

/// The capacity of each buffer that is left for the next connection, bytes.
const BUFFER_KEPT_BYTES: usize = 16 * 1024;

/// The capacity for ranges that is left for the next connection.
const RANGES_KEPT: usize = 16;

/// A connection's own state.
pub(crate) struct Connection {
    engine: Rc<Service>,
    /// `None` only while a request's body may be read ([`request_body`]).
    stream: Option<Stream>,
    info: Rc<ConnectionInfo>,
    /// Responses sent.
    responses: u32,
    /// Bytes received up to the end of the previous request, for TLS.
    received_before: u64,
    /// When the current head began, on the loop's clock.
    head_began_ms: u64,
    /// Counts the connection as open.
    open: Option<Open>,
}

/// The buffers of a busy connection.
pub(crate) struct Active {
    /// Bytes received and not yet parsed: of an incomplete head, or after a complete one.
    input: Vec<u8>,
    /// How many of them Apache reads twice, to learn whether another request has arrived.
    peeked: usize,
    /// Bytes to send.
    output: Vec<u8>,
    head: RequestHead,
    parser: HeadParser,
    host: RequestHost,
    /// The place of the host that the address alone selects.
    base: Option<Place>,
    /// The host that the last request named.
    known: Option<KnownHost>,
    /// The ranges that a request asks for.
    ranges: Vec<ByteRange>,
    /// What the connection becomes after the last response.
    tunnel: Option<Box<tunnel::Begun>>,
    /// Where the responses to a request that phases serve begin in the connection's stream: interim
    /// ones precede the final one.
    began: Option<u64>,
    /// The request's body, if the response's reads it.
    upload: Option<request_body::Shared>,
    /// The request with which the connection becomes one of HTTP/2.
    upgrade: Option<Box<h2::Upgrade>>,
}

impl Active {
    /// Empty buffers.
    pub(crate) fn new() -> Active {
        Active {
            input: Vec::new(),
            peeked: 0,
            output: Vec::new(),
            head: RequestHead::new(),
            parser: HeadParser::new(),
            host: RequestHost::new(),
            base: None,
            known: None,
            ranges: Vec::new(),
            tunnel: None,
            began: None,
            upload: None,
            upgrade: None,
        }
    }

    /// Clears everything for the next connection, and frees the memory of a long head.
    fn reset(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            buffer.clear();
            buffer.shrink_to(BUFFER_KEPT_BYTES);
        }
        self.peeked = 0;
        self.parser.reset();
        self.head.clear();
        self.head.headers.shrink_to(BUFFER_KEPT_BYTES);
        self.host.clear();
        self.base = None;
        self.known = None;
        self.ranges.clear();
        self.ranges.shrink_to(RANGES_KEPT);
        self.tunnel = None;
        self.began = None;
        self.upload = None;
        self.upgrade = None;
    }
}

/// How [`requests`] ended.
enum Ended {
    /// Nothing was received for a while; the connection stays open until the deadline.
    Quiet(Deadline),
    /// The connection stays open until the deadline, and may go to another loop.
    Migrating(Deadline),
    /// The connection carries another protocol.
    Tunnel(Box<tunnel::Begun>),
    /// The client speaks HTTP/2, and has sent this.
    Http2(Vec<u8>, Option<h2::Upgrade>),
    /// The last response was sent, and the connection closes.
    Close,
    /// The connection is broken, or there is nothing to wait for.
    Abort,
}

/// Serves an accepted connection until it ends. It counts as open from the call on.
pub fn serve(engine: Rc<Service>, accepted: Accepted) -> impl Future<Output = ()> {
    engine.connections.opened();
    Serving::Connecting(Box::pin(connect(Open(engine), accepted)))
}

/// A connection's task. An idle one is no more than its [`Connection`]: what accepting, requests
/// and closing need is boxed. It is written by hand because a compiled `async` block would reserve
/// room for all states at once, and a loop can have ten thousand of them.
enum Serving {
    Connecting(Pin<Box<dyn Future<Output = Option<Connection>>>>),
    /// Nothing happens, until the deadline.
    Idle(Connection, Deadline),
    Busy(Pin<Box<dyn Future<Output = Option<Serving>>>>),
    /// A tunnel, or a connection of HTTP/2.
    Other(Pin<Box<dyn Future<Output = ()>>>),
    Done,
}

impl Future for Serving {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let next = match &mut *self {
                Serving::Connecting(connecting) => {
                    ready!(connecting.as_mut().poll(cx)).map(Connection::begin)
                }
                Serving::Busy(busy) => ready!(busy.as_mut().poll(cx)),
                Serving::Other(other) => {
                    ready!(other.as_mut().poll(cx));
                    None
                }
                Serving::Idle(connection, deadline) => {
                    let Some(stream) = connection.stream.as_mut() else { return Poll::Ready(()) };
                    match stream.poll_readable(cx, *deadline) {
                        Poll::Ready(Ok(())) => self.begin_requests(),
                        Poll::Ready(Err(_)) => {
                            connection.log_slow_head(0);
                            None
                        }
                        Poll::Pending if connection.engine.migration_order.allows_any() => {
                            ready!(self.leave())
                        }
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Serving::Done => None,
            };
            *self = next.unwrap_or(Serving::Done);
            if matches!(*self, Serving::Done) {
                return Poll::Ready(());
            }
        }
    }
}

impl Serving {
    /// Something has arrived at an idle connection.
    fn begin_requests(&mut self) -> Option<Serving> {
        match std::mem::replace(self, Serving::Done) {
            Serving::Idle(connection, deadline) => {
                Some(Serving::Busy(Box::pin(busy(connection, deadline))))
            }
            _ => None,
        }
    }

    /// Migrates an idle connection to another loop; pending if it stays.
    fn leave(&mut self) -> Poll<Option<Serving>> {
        match std::mem::replace(self, Serving::Done) {
            Serving::Idle(connection, deadline) if connection.can_migrate() => {
                Poll::Ready(Some(connection.migrate(deadline, false)))
            }
            other => {
                *self = other;
                Poll::Pending
            }
        }
    }
}

/// Serves requests until the connection is idle. Returns its next state, if it stays open.
async fn busy(mut connection: Connection, deadline: Deadline) -> Option<Serving> {
    match requests::serve(&mut connection, deadline).await {
        Ended::Quiet(until) => Some(Serving::Idle(connection, until)),
        Ended::Migrating(until) => Some(connection.migrate(until, true)),
        Ended::Tunnel(tunnel) => Some(Serving::Other(Box::pin(tunnel::run(connection, tunnel)))),
        Ended::Http2(received, upgrade) => {
            Some(Serving::Other(Box::pin(h2::run(connection, received, upgrade))))
        }
        Ended::Abort => None,
        Ended::Close => {
            Box::pin(connection.close()).await;
            None
        }
    }
}

/// Counts a connection as open while it exists.
struct Open(Rc<Service>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.closed();
    }
}

async fn connect(open: Open, accepted: Accepted) -> Option<Connection> {
    let engine = &open.0;
    let (peer, local) = (accepted.peer, accepted.local);
    let stream = Stream::new(accepted).ok()?;
    let local = match local {
        Some(local) => local,
        None => stream.local_addr().ok()?,
    };
    let mut info = info(engine, peer, local);
    let hooks = &engine.server.registry.hooks;
    let stream = match hooks.expects_proxy_header(&info, &engine.server) {
        false => stream,
        true => Box::pin(proxied::read_header(engine, stream, &mut info)).await?,
    };
    let mut connection = match hooks.tls() {
        Some(hook) if (hook.is_on)(&info, &engine.server) => {
            tls::handshake(engine.clone(), stream, info, hook).await?
        }
        _ => Connection::new(engine.clone(), stream, info),
    };
    connection.open = Some(open);
    Some(connection)
}

impl Connection {
    fn new(engine: Rc<Service>, stream: Stream, info: ConnectionInfo) -> Connection {
        let stream = Some(stream);
        Connection { stream, ..Connection::without_stream(engine, info) }
    }

    fn without_stream(engine: Rc<Service>, info: ConnectionInfo) -> Connection {
        Connection {
            head_began_ms: engine.handle.clock().now_ms(),
            engine,
            stream: None,
            info: Rc::new(info),
            responses: 0,
            received_before: 0,
            open: None,
        }
    }

    /// What follows the handshake.
    fn begin(self) -> Serving {
        if self.info.base_host.echoes {
            return Serving::Other(Box::pin(echo::run(self)));
        }
        match h2::is_negotiated(&self.info) {
            true => Serving::Other(Box::pin(h2::run(self, Vec::new(), None))),
            false => self.wait_first(),
        }
    }

    /// The wait for the first request.
    fn wait_first(self) -> Serving {
        let first = self.engine.handle.deadline(self.info.base_host.core.timeout());
        let deadline = first.min(self.head_running().deadline(0));
        Serving::Idle(self, deadline)
    }

    /// The time that the client has for its head.
    fn head_running(&self) -> Running {
        self.info.base_host.read_policy.header.since(self.head_began_ms)
    }

    /// Logs that `RequestReadTimeout` ended the wait for a head of which `received` bytes have
    /// arrived (`reqtimeout_filter`).
    fn log_slow_head(&self, received: usize) {
        let is_head = received > 0 || self.responses == 0;
        if is_head && self.head_running().deadline(received).has_passed(self.engine.handle.clock())
        {
            let (server, level) = (&self.engine.server, Level::Info);
            let text = format_args!("Request header read timeout");
            server.log_connection(&self.info, "mod_reqtimeout.c", level, 1382, text);
        }
    }

    /// Closes so that the last response arrives.
    async fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            let _closing = self.engine.connections.closing();
            stream.linger().await;
        }
    }
}

/// What heads of requests may contain, by the address's own host.
fn head_options<'s>(service: &'s Service, info: &ConnectionInfo) -> HeadOptions<'s> {
    let core = &info.base_host.core;
    HeadOptions {
        strict: core.strict_protocol(),
        registered_methods: core.registered_methods(),
        allow_http09: core.allow_http09(),
        methods: &service.server.methods,
    }
}

fn info(engine: &Service, peer: SocketAddr, local: SocketAddr) -> ConnectionInfo {
    ConnectionInfo {
        id: engine.next_connection_id(),
        peer: plain(peer),
        local: plain(local),
        base_host: engine.server.vhosts.by_address(plain(local)).clone(),
        tls: None,
        keepalives: Cell::new(0),
        bytes_sent: Cell::new(0),
        aborted: Cell::new(false),
        keepalive: Cell::new(KeepAlive::Unknown),
        names: std::cell::OnceCell::new(),
        logname: std::cell::OnceCell::new(),
        log_id: Cell::new(None),
        stream: None,
        proxied: None,
        interim: Cell::default(),
        pushing: Cell::default(),
    }
}

/// Unmaps an IPv4 address of a dual-stack socket.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_head_leaves_no_long_buffers() {
        let mut active = Active::new();
        active.input.extend_from_slice(&[b'x'; 1024 * 1024]);
        active.head.headers.add(b"X-Long", &[b'x'; 1024 * 1024]);
        active.reset();
        assert!(active.input.capacity() <= BUFFER_KEPT_BYTES);
        assert!(active.head.headers.capacity_bytes() <= 2 * BUFFER_KEPT_BYTES);
    }
}
