//! mod_heartbeat: tells another server each second how many threads are idle.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_heartbeat.html>

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::engine::Engine;
use server::hooks::Hooks;
use server::host::Server;
use server::log::Level;
use server::merge::{Outermost, Setting};
use server::module::Module;

use super::address::{self, Wrong};
use crate::generators::mod_status::report::busy_and_idle;
use crate::lease;

/// `mod_heartbeat.c`
pub struct Sender;

/// The shared word of the lease; unset before the server runs.
#[derive(Clone, Debug, Default)]
pub struct Turn(Arc<OnceLock<&'static [AtomicU64]>>);

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `HeartbeatAddress`
        pub address: Setting<SocketAddrV4>,
        /// Which process sends.
        pub turn: Outermost<Turn>,
    }
}

/// The second in which this process has sent, or seen that it is not its turn.
static DONE_AT_S: AtomicU64 = AtomicU64::new(0);

impl Module for Sender {
    const NAME: &'static str = "heartbeat_module";
    const FILE: &'static str = "mod_heartbeat.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Sender>] = &[Row::new(
        "HeartbeatAddress",
        Takes::One(set_address),
        "addr:port",
        "Address to send heartbeat requests",
    )
    .standing(Places::SERVER, Override::NONE)];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.share(share);
        hooks.every_second(every_second);
    }
}

fn set_address(cx: &mut Cx<'_, '_, Sender>, arg: &conf::Arg) -> Set {
    let fault = |text: &str| Fault::new(format!("HeartbeatAddress: {text}")).at(arg);
    if cx.server().address.get().is_some() {
        return Err(fault("May only be specified once."));
    }
    let address = address::parse(&arg.text).map_err(|wrong| match wrong {
        Wrong::Syntax => fault("Unable to parse address."),
        Wrong::NoHost => fault("No host provided in address"),
        Wrong::NoPort => fault("No port provided in address"),
        Wrong::Unknown => fault("apr_sockaddr_info_get failed."),
    })?;
    cx.server().address.set(address);
    Ok(())
}

fn settings(server: &Server) -> Option<&Settings> {
    let slot = server.registry.slot_of::<Sender>()?;
    server.main().server.get::<Settings>(slot)
}

fn share(server: &Server, shared: &mpm::Shared) -> Result<(), String> {
    let Some(settings) = settings(server).filter(|own| own.address.get().is_some()) else {
        return Ok(());
    };
    let words = shared.words("heartbeat", 1);
    let words = words.map_err(|error| format!("mod_heartbeat: no shared memory: {error}"))?;
    let _ = settings.turn.0.0.set(words);
    Ok(())
}

/// One loop of one process sends.
fn every_second(engine: &Engine) {
    let Some(settings) = settings(&engine.server) else { return };
    let word = settings.turn.0.0.get().and_then(|words| words.first());
    let (Some(address), Some(word)) = (settings.address.get(), word) else { return };
    let now_s = engine.handle.clock().wall_s();
    if engine.draining.get() || DONE_AT_S.swap(now_s, Ordering::Relaxed) == now_s {
        return;
    }
    if lease::take(word, now_s) {
        let [busy, idle] = busy_and_idle(engine);
        send(engine, *address, format!("v=1&ready={idle}&busy={busy}").as_bytes());
    }
}

/// Sends a datagram. It is dropped rather than waited for.
fn send(engine: &Engine, address: SocketAddrV4, text: &[u8]) {
    let fail = |number, text: &str, error: &io::Error| {
        let (server, errno) = (&engine.server, Errno::from_io_error(error));
        let (main, text) = (server.main(), format_args!("Heartbeat: {text} failed"));
        server.log_host_error(main, Sender::FILE, Level::Warn, number, errno, text);
    };
    let socket = match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) {
        Ok(socket) => socket,
        Err(error) => return fail(2097, "apr_socket_create", &error),
    };
    if let Err(error) = socket.set_multicast_loop_v4(true) {
        return fail(2098, "apr_mcast_loopback", &error);
    }
    let sent = socket.set_nonblocking(true).and_then(|()| socket.send_to(text, address));
    if let Err(error) = sent {
        fail(2099, "apr_socket_sendto", &error);
    }
}
