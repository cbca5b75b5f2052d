//! mod_heartmonitor: hears from other servers how many of their threads are idle.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_heartmonitor.html>

mod listener;
mod message;
mod respond;
mod slots;
mod storage;

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use server::build::Build;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::Hooks;
use server::host::Server;
use server::log::Level;
use server::merge::{Outermost, Setting};
use server::module::Module;

use super::address::{self, Wrong};
use crate::atoi::atoi;
use crate::proxy::balancers::mod_lbmethod_heartbeat;
use crate::proxy::mod_proxy::RUNTIME_DIR;
use crate::slotmem;
pub use message::Heartbeat;
pub(crate) use slots::Slots;

/// `mod_heartmonitor.c`
pub struct Heartmonitor;

/// The least number of `HeartbeatMaxServers`, and its default.
const SERVERS: i32 = 10;
/// The file, in the folder for files of a running server.
const FILE: &str = "hb.dat";

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `HeartbeatListen`
        pub address: Setting<SocketAddrV4>,
        /// `HeartbeatStorage`
        pub storage: Setting<PathBuf>,
        /// `HeartbeatMaxServers`; 0: they are kept in a file.
        pub servers: Setting<i32>,
        /// What the processes share.
        pub(crate) slots: Outermost<Slots>,
    }
}

impl Settings {
    /// The number of servers in shared memory.
    fn count(&self) -> usize {
        usize::try_from(self.servers.or(SERVERS)).unwrap_or(0)
    }
}

impl Module for Heartmonitor {
    const NAME: &'static str = "heartmonitor_module";
    const FILE: &'static str = "mod_heartmonitor.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Heartmonitor>] = &[
        Row::new(
            "HeartbeatListen",
            Takes::One(set_address),
            "addr:port",
            "Address to listen for heartbeat requests",
        )
        .standing(Places::SERVER, Override::NONE),
        Row::new(
            "HeartbeatStorage",
            Takes::One(set_storage),
            "file-path",
            "Path to store heartbeat data.",
        )
        .standing(Places::SERVER, Override::NONE)
        .default("logs/hb.dat"),
        Row::new(
            "HeartbeatMaxServers",
            Takes::One(set_servers),
            "number-of-servers",
            "Max number of servers when using slotmem (instead file) to store heartbeat data.",
        )
        .standing(Places::SERVER, Override::NONE)
        .default("10"),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(check);
        hooks.share(slots::share);
        hooks.logs_opened(remark);
        hooks.every_second(listener::every_second);
        hooks.handler("heartbeat", respond::handle);
    }
}

/// The settings of the server, if it has the module.
pub(crate) fn settings(server: &Server) -> Option<&Settings> {
    let slot = server.registry.slot_of::<Heartmonitor>()?;
    server.main().server.get::<Settings>(slot)
}

/// The file with what servers have said.
pub(crate) fn path(server: &Server) -> PathBuf {
    let set = settings(server).and_then(|own| own.storage.get().cloned());
    // The directive is that of the module that was loaded first.
    set.or_else(|| mod_lbmethod_heartbeat::storage(server)).unwrap_or_else(|| {
        let folder = server.main().core.globals.0.runtime_dir.get();
        folder.map_or_else(|| Path::new(RUNTIME_DIR), PathBuf::as_path).join(FILE)
    })
}

/// What has to be loaded.
fn check(build: &mut Build) {
    let own = build.server_config::<Heartmonitor>(&build.main.server);
    let needs_slots = own.is_some_and(|own| own.count() > 0);
    let provider = build.provider::<slotmem::Provider>(slotmem::GROUP, "shm");
    if build.for_real && needs_slots && provider.is_none() {
        build.error_without_place(
            "AH02284: failed to lookup provider 'shm' for 'slotmem', maybe you need to load \
             mod_slotmem_shm?",
        );
    }
}

fn remark(server: &Arc<Server>) {
    if settings(server).is_some_and(|own| own.address.get().is_some()) {
        let text = format_args!("wd callback {}", listener::NAME);
        server.log_host(server.main(), Heartmonitor::FILE, Level::Debug, 2096, text);
    }
}

fn set_address(cx: &mut Cx<'_, '_, Heartmonitor>, arg: &conf::Arg) -> Set {
    let fault = |text: &str| Fault::new(format!("HeartbeatListen: {text}")).at(arg);
    if cx.server().address.get().is_some() {
        return Err(fault("May only be specified once."));
    }
    let address = address::parse(&arg.text).map_err(|wrong| match wrong {
        Wrong::Syntax => fault("Unable to parse multicast address."),
        Wrong::NoHost => fault("No host provided in multicast address"),
        Wrong::NoPort => fault("No port provided in multicast address"),
        Wrong::Unknown => fault("apr_sockaddr_info_get failed on multicast address"),
    })?;
    cx.server().address.set(address);
    Ok(())
}

fn set_storage(cx: &mut Cx<'_, '_, Heartmonitor>, arg: &conf::Arg) -> Set {
    let build = cx.build();
    let core = build.core_config(&build.main.server);
    let folder = core.and_then(|core| core.globals.0.runtime_dir.get().cloned());
    let folder = folder.unwrap_or_else(|| PathBuf::from(RUNTIME_DIR));
    let path = conf::values::relative_to(&folder, &arg.text);
    let path = path.ok_or_else(|| Fault::new("HeartbeatStorage has an invalid path").at(arg))?;
    cx.server().storage.set(path);
    Ok(())
}

fn set_servers(cx: &mut Cx<'_, '_, Heartmonitor>, arg: &conf::Arg) -> Set {
    let count = atoi(&arg.text);
    if count != 0 && count < SERVERS {
        let text = format!(
            "HeartbeatMaxServers: Should be 0 for file storage, or greater or equal than {SERVERS} \
             for slotmem"
        );
        return Err(Fault::new(text).at(arg));
    }
    cx.server().servers.set(count);
    Ok(())
}
