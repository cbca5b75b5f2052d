//! Servers that keep objects: which one has a key, and connections to them that are used again.
//!
//! A server that fails gets no requests for [`DEAD_MS`]: one that is slow delays those that have
//! begun, and no others. Source: `apr_memcache_find_server_hash`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flate2::Crc;
use rt::{ConnectError, ConnectOptions, Handle, Stream};

use crate::proxy::mod_proxy::backend::ADDRESSES;

/// The most servers of a cache.
const SERVERS_MAX: usize = 64;
/// The most connections of a loop to a server.
const OPEN_MAX: usize = 64;
/// How long a server that failed is not asked again, milliseconds.
const DEAD_MS: u64 = 5000;
/// Bytes that are read at once.
const READ_BYTES: usize = 4 * 1024;

/// The servers of a cache.
pub(super) struct Remote {
    servers: Vec<Peer>,
    /// The longest wait for a connection, and for a reply.
    pub timeout: Duration,
    /// How long an idle connection is kept.
    pub idle: Duration,
}

struct Peer {
    /// Unique in the process.
    id: u64,
    host: String,
    port: u16,
    /// On the clock of loops; 0 if it has not failed.
    dead_until_ms: AtomicU64,
}

/// Why a server has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// All servers failed lately.
    AllDead,
    /// As many requests of this loop wait for the server as may.
    Busy,
    /// There is no connection.
    Connect(String),
    /// The connection failed, or there was no reply in time.
    Io(io::Error),
    /// The reply is none.
    Reply(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::AllDead => f.write_str("no server has answered lately"),
            Failure::Busy => f.write_str("too many requests wait for the server"),
            Failure::Connect(why) => f.write_str(why),
            Failure::Io(why) => why.fmt(f),
            Failure::Reply(why) => f.write_str(why),
        }
    }
}

/// A loop's connections to a server.
#[derive(Default)]
struct Connections {
    /// Idle ones, with the time since when they are.
    idle: Vec<(Stream, u64)>,
    /// Those that are in use.
    used: usize,
    /// How long idle ones are kept, milliseconds.
    idle_ms: u64,
}

thread_local! {
    static CONNECTIONS: RefCell<HashMap<u64, Connections>> = RefCell::default();
}

impl Remote {
    /// Parses `host[:port],…`.
    ///
    /// # Errors
    /// The server that is none.
    pub fn parse(text: &str, default_port: u16) -> Result<Remote, String> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let mut servers = Vec::new();
        for server in text.split(',').filter(|server| !server.is_empty()) {
            let (host, port) = address(server, default_port).ok_or_else(|| server.to_owned())?;
            let id = NUMBERS.fetch_add(1, Ordering::Relaxed);
            servers.push(Peer { id, host, port, dead_until_ms: AtomicU64::new(0) });
        }
        if servers.len() > SERVERS_MAX {
            return Err(format!("more than {SERVERS_MAX} servers"));
        }
        Ok(Remote { servers, timeout: Duration::ZERO, idle: Duration::ZERO })
    }

    /// Sends a question to the server of `key`, and returns what `read` makes of the reply.
    pub async fn ask<T>(
        &self,
        key: &[u8],
        question: &[u8],
        read: impl Fn(&[u8]) -> Result<Option<(T, usize)>, String>,
    ) -> Result<T, Failure> {
        let handle = Handle::current().ok_or(Failure::AllDead)?;
        let peer = self.peer(key, handle.clock().now_ms()).ok_or(Failure::AllDead)?;
        let _used = Used::begin(peer.id, self.idle).ok_or(Failure::Busy)?;
        let outcome = self.ask_peer(&handle, peer, question, read).await;
        if outcome.is_err() {
            let until_ms = handle.clock().now_ms().saturating_add(DEAD_MS);
            peer.dead_until_ms.store(until_ms, Ordering::Relaxed);
        }
        outcome
    }

    async fn ask_peer<T>(
        &self,
        handle: &Handle,
        peer: &Peer,
        question: &[u8],
        read: impl Fn(&[u8]) -> Result<Option<(T, usize)>, String>,
    ) -> Result<T, Failure> {
        if let Some(mut stream) = take_idle(peer.id) {
            // The server may have closed it meanwhile: a new one decides.
            if let Ok(reply) = self.converse(handle, &mut stream, question, &read).await {
                return Ok(self.keep(handle, peer, stream, reply));
            }
        }
        let address = (peer.host.as_str(), peer.port);
        let options = ConnectOptions::default();
        let connected = ADDRESSES.connect(address, Some(DEAD), &options, self.timeout).await;
        let mut stream = connected.map_err(|why| match why {
            ConnectError::Io(why) => Failure::Io(why),
            why => Failure::Connect(why.to_string()),
        })?;
        let reply = self.converse(handle, &mut stream, question, &read).await?;
        Ok(self.keep(handle, peer, stream, reply))
    }

    /// Sends a question and reads the reply; returns whether the connection can be used again.
    async fn converse<T>(
        &self,
        handle: &Handle,
        stream: &mut Stream,
        question: &[u8],
        read: &impl Fn(&[u8]) -> Result<Option<(T, usize)>, String>,
    ) -> Result<(T, bool), Failure> {
        let deadline = handle.deadline(self.timeout);
        stream.write_all(question, self.timeout).await.map_err(Failure::Io)?;
        let mut received = Vec::new();
        loop {
            received.reserve(READ_BYTES);
            match stream.read(&mut received, deadline).await {
                Ok(0) => return Err(Failure::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(why) => return Err(Failure::Io(why)),
            }
            if let Some((reply, length)) = read(&received).map_err(Failure::Reply)? {
                return Ok((reply, length == received.len()));
            }
        }
    }

    fn keep<T>(
        &self,
        handle: &Handle,
        peer: &Peer,
        stream: Stream,
        (reply, is_in_step): (T, bool),
    ) -> T {
        if is_in_step && !self.idle.is_zero() {
            let now_ms = handle.clock().now_ms();
            CONNECTIONS.with_borrow_mut(|all| {
                all.entry(peer.id).or_default().idle.push((stream, now_ms));
            });
        }
        reply
    }

    /// The server of a key, or the next one that has not failed.
    fn peer(&self, key: &[u8], now_ms: u64) -> Option<&Peer> {
        let mut crc = Crc::new();
        crc.update(key);
        let hash = ((crc.sum() >> 16) & 0x7fff).max(1) as usize;
        let count = self.servers.len();
        (0..count)
            .filter_map(|step| self.servers.get((hash + step) % count))
            .find(|peer| peer.dead_until_ms.load(Ordering::Relaxed) <= now_ms)
    }
}

/// How long the addresses of a server's name are kept.
const DEAD: Duration = Duration::from_millis(DEAD_MS);

/// Closes connections that have been idle for too long. Each loop calls this every second.
pub(super) fn close_idle(now_ms: u64) {
    CONNECTIONS.with_borrow_mut(|all| {
        all.retain(|_, of| {
            let idle_ms = of.idle_ms;
            of.idle.retain(|(_, since_ms)| now_ms.saturating_sub(*since_ms) < idle_ms);
            of.used > 0 || !of.idle.is_empty()
        });
    });
}

/// A connection that can be used again.
fn take_idle(id: u64) -> Option<Stream> {
    CONNECTIONS.with_borrow_mut(|all| {
        let idle = &mut all.get_mut(&id)?.idle;
        std::iter::from_fn(|| idle.pop())
            .map(|(stream, _)| stream)
            .find_map(|mut stream| stream.is_reusable().then_some(stream))
    })
}

/// Counts a connection in use until it is dropped.
struct Used(u64);

impl Used {
    fn begin(id: u64, idle: Duration) -> Option<Used> {
        CONNECTIONS.with_borrow_mut(|all| {
            let of = all.entry(id).or_default();
            of.idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
            (of.used < OPEN_MAX).then(|| {
                of.used += 1;
                Used(id)
            })
        })
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        CONNECTIONS.with_borrow_mut(|all| {
            if let Some(of) = all.get_mut(&self.0) {
                of.used = of.used.saturating_sub(1);
            }
        });
    }
}

/// The host and port of a server; an address of IPv6 is in brackets.
fn address(text: &str, default_port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().ok().filter(|port| *port > 0)?)
        }
        _ => (text, default_port),
    };
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let is_host = |byte: u8| byte.is_ascii_graphic();
    (!host.is_empty() && host.bytes().all(is_host)).then(|| (host.to_owned(), port))
}

/// The name of an object on a server: the cache's, and the key in digits. `None` if it is too long
/// (`socache_mc_id2key`).
pub(super) fn name(id: &str, key: &[u8], limit: usize) -> Option<Vec<u8>> {
    let digits = crate::aaa::password::hex(key);
    let name = [id.as_bytes(), b":", &digits].concat();
    (name.len() < limit).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_parsed() {
        let one = |text: &str| address(text, 11211);
        let of = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(one("cache.test"), of("cache.test", 11211));
        assert_eq!(one("cache.test:1"), of("cache.test", 1));
        assert_eq!(one("[::1]:2"), of("::1", 2));
        assert_eq!(one("[::1]"), of("::1", 11211));
        for wrong in ["", ":1", "a:0", "a:x", "a:99999", "::1", "[::1", "a b"] {
            assert_eq!(one(wrong), None, "{wrong}");
        }
        assert_eq!(Remote::parse("a,b:2,", 1).unwrap().servers.len(), 2);
        assert_eq!(Remote::parse("a,:2", 1).err(), Some(":2".to_owned()));
    }

    #[test]
    fn a_key_has_one_server_until_that_fails() {
        let remote = Remote::parse("a,b,c", 1).unwrap();
        let first = remote.peer(b"key", 10).unwrap();
        assert_eq!(remote.peer(b"key", 10).unwrap().id, first.id);
        first.dead_until_ms.store(20, Ordering::Relaxed);
        assert_ne!(remote.peer(b"key", 19).unwrap().id, first.id);
        assert_eq!(remote.peer(b"key", 20).unwrap().id, first.id);
        remote.servers.iter().for_each(|peer| peer.dead_until_ms.store(20, Ordering::Relaxed));
        assert!(remote.peer(b"key", 10).is_none());
    }

    #[test]
    fn names_are_apaches() {
        assert_eq!(name("authn", b"a:\xff", 20), Some(b"authn:613aff".to_vec()));
        assert_eq!(name("authn", b"a:\xff", 12), None);
    }
}
