//! What the supervisor needs of a configuration, out of the modules that hold it.

use std::path::PathBuf;

use conf::Tree;
use mpm::{Listener, Settings};
use server::host::Server;

/// The supervisor's settings.
pub fn of(server: &Server) -> Result<Settings, String> {
    let listeners = listeners(server);
    if listeners.is_empty() {
        return Err("no listening sockets available, shutting down".to_owned());
    }
    Ok(Settings {
        listeners,
        identity: None,
        chroot: None,
        core_dump_directory: None,
        pid_file: pid_file(server),
        shape: mpm::Shape::event(mpm::cpus::Cpus::detect().count(), None, None),
        server_limit: 16,
        graceful_shutdown_timeout: None,
        max_connections_per_child: 0,
        extended_status: false,
    })
}

/// `PidFile`
pub fn pid_file(server: &Server) -> PathBuf {
    server.server_root.join("logs/httpd.pid")
}

/// `Listen`
pub fn listeners(_server: &Server) -> Vec<Listener> {
    Vec::new()
}

/// `-t -D DUMP_RUN_CFG`, in httpd's layout.
pub fn run_config(server: &Server, _tree: &Tree) -> String {
    format!("ServerRoot: \"{}\"\n", server.server_root.display())
}
