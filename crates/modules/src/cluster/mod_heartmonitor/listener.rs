//! The socket on which servers are heard: one loop of one process reads it each second.
//!
//! Source: `hm_listen`, `hm_recv`, `hm_watchdog_callback`.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bstr::BStr;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use server::engine::Engine;
use server::host::Server;
use server::log::Level;
use server::module::Module;

use super::message::{BYTES, DEFAULT_PORT, Heartbeat, Words};
use super::storage::AGE_MAX_S;
use super::{Heartmonitor, path, settings, storage};
use crate::atoi::atoi;
use crate::lease;

/// The watchdog's name in messages.
pub(super) const NAME: &str = "_heartmonitor_";

/// The seconds between two times that servers are stored (`HM_UPDATE_SEC`).
const STORE_S: u64 = 5;
/// The most messages that are read in a second.
const MESSAGES_MAX: usize = 1024;
/// The most servers that are remembered: any host can send messages.
const SERVERS_MAX: usize = 4096;

/// The second in which this process has listened.
static DONE_AT_S: AtomicU64 = AtomicU64::new(0);
/// Used each second by one loop.
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

/// What this process has heard.
#[derive(Default)]
struct Listener {
    /// `None` if it can't listen.
    socket: Option<UdpSocket>,
    servers: HashMap<Vec<u8>, Heartbeat>,
    stored_at_s: u64,
}

/// Hears what has been sent since the last second, and stores it.
pub(super) fn every_second(engine: &Engine) {
    let Some(settings) = settings(&engine.server) else { return };
    let (Some(address), Some(word)) = (settings.address.get(), settings.slots.0.lease()) else {
        return;
    };
    let now_s = engine.handle.clock().wall_s();
    if engine.draining.get() || DONE_AT_S.swap(now_s, Ordering::Relaxed) == now_s {
        return;
    }
    if !lease::take(word, now_s) {
        return;
    }
    let mut listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = listener.get_or_insert_with(|| Listener::begin(&engine.server, *address));
    let Some(socket) = &listener.socket else { return };
    for (from, text) in received(&engine.server, socket) {
        hear(&engine.server, &mut listener.servers, from, &text, now_s);
    }
    if now_s.saturating_sub(listener.stored_at_s) >= STORE_S {
        listener.stored_at_s = now_s;
        store(engine, &mut listener.servers, now_s);
    }
}

impl Listener {
    fn begin(server: &Server, address: SocketAddrV4) -> Listener {
        let socket = listen(address).map_err(|(number, text, error)| {
            log(server, Level::Crit, number, Some(error), text);
            log(server, Level::Crit, 2090, Some(error), "Unable to listen for connections!");
        });
        if socket.is_ok() {
            log(server, Level::Debug, 2091, None, &format!("{NAME} listener started."));
        }
        Listener { socket: socket.ok(), ..Listener::default() }
    }
}

/// Opens the socket, or tells what failed.
fn listen(address: SocketAddrV4) -> Result<UdpSocket, (u32, &'static str, Errno)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(|error| (2068, "Failed to create listening socket.", error))?;
    sockopt::set_socket_reuseaddr(&socket, true)
        .map_err(|error| (2069, "Failed to set APR_SO_REUSEADDR to 1 on socket.", error))?;
    bind(&socket, &address).map_err(|error| (2071, "Failed to bind on socket.", error))?;
    let socket = UdpSocket::from(socket);
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    socket
        .join_multicast_v4(address.ip(), &Ipv4Addr::UNSPECIFIED)
        .map_err(|error| (2072, "Failed to join multicast group", errno(error)))?;
    socket
        .set_multicast_loop_v4(true)
        .map_err(|error| (2073, "Failed to accept localhost mulitcast on socket.", errno(error)))?;
    Ok(socket)
}

/// The messages that wait.
fn received(server: &Server, socket: &UdpSocket) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut found = Vec::new();
    let mut buffer = [0; BYTES];
    while found.len() < MESSAGES_MAX {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                found.push((from, buffer.get(..length).unwrap_or_default().to_vec()));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => {
                log(server, Level::Crit, 2089, Errno::from_io_error(&error), "recvfrom failed");
                break;
            }
        }
    }
    found
}

/// Keeps what a server says of itself.
fn hear(
    server: &Server,
    servers: &mut HashMap<Vec<u8>, Heartbeat>,
    from: SocketAddr,
    text: &[u8],
    now_s: u64,
) {
    let words = Words::parse(text);
    let (Some(_), Some(busy), Some(ready)) =
        (words.get("v"), words.get("busy"), words.get("ready"))
    else {
        return log(server, Level::Crit, 2087, None, &format!("malformed message from {from}"));
    };
    let (shown_busy, shown_ready) = (BStr::new(busy), BStr::new(ready));
    let line = format!("{from} busy={shown_busy} ready={shown_ready}");
    log(server, Level::Debug, 2086, None, &line);
    let ip = from.ip().to_string().into_bytes();
    // The first message tells the port.
    let known = servers.get(&ip).map(|other| other.port);
    if known.is_none() && servers.len() >= SERVERS_MAX {
        return;
    }
    let port = || words.get("port").map_or(DEFAULT_PORT, |port| atoi(port) as u32);
    let (busy, ready, port) = (atoi(busy), atoi(ready), known.unwrap_or_else(port));
    servers.insert(ip.clone(), Heartbeat { ip, ready, busy, port, seen_s: now_s });
}

/// Stores what was heard; servers that are not heard any more are forgotten.
fn store(engine: &Engine, servers: &mut HashMap<Vec<u8>, Heartbeat>, now_s: u64) {
    let Some(settings) = settings(&engine.server) else { return };
    let slots = &settings.slots.0;
    let is_recent = |one: &Heartbeat| now_s.saturating_sub(one.seen_s) <= AGE_MAX_S;
    if slots.is_used() {
        for server in servers.values() {
            match is_recent(server) {
                true => slots.put(server),
                false => slots.remove(&server.ip),
            }
        }
    }
    servers.retain(|_, server| is_recent(server));
    if slots.is_used() {
        return;
    }
    let lines: String = servers.values().map(|server| server.line(now_s) + "\n").collect();
    let (server, path) = (engine.server.clone(), path(&engine.server));
    let shown = path.display().to_string();
    let pool = engine.handle.blocking().clone();
    engine.handle.spawn_local(async move {
        let write = move || storage::replace(&path, lines.as_bytes());
        if let Ok(Err(error)) = pool.run(rt::Work::File, write).await {
            let text = format!("Unable to open tmp file: {shown}.tmp.XXXXXX");
            log(&server, Level::Crit, 2081, Errno::from_io_error(&error), &text);
        }
    });
}

fn log(server: &Server, level: Level, number: u32, error: Option<Errno>, text: &str) {
    let text = format_args!("{text}");
    server.log_host_error(server.main(), Heartmonitor::FILE, level, number, error, text);
}
