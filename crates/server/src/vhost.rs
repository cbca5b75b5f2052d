//! Which host a request is for: by the address it came to, then by the name it asks for.
//!
//! Manual: "An In-Depth Discussion of Virtual Host Matching".

use std::net::SocketAddr;
use std::sync::Arc;

use wire::host::RequestHost;

use crate::client::Client;
use crate::host::Host;

/// Hosts by address and name.
pub struct VhostTable {
    main: Arc<Host>,
}

impl VhostTable {
    /// A table of `hosts`; the first is the main server.
    pub fn new(hosts: &[Arc<Host>]) -> VhostTable {
        VhostTable { main: hosts[0].clone() }
    }

    /// The host for a connection to `local`, before any name is known.
    pub fn by_address(&self, local: SocketAddr) -> &Arc<Host> {
        let _ = local;
        &self.main
    }

    /// `-t -D DUMP_VHOSTS`, in httpd's layout.
    pub fn dump(&self) -> String {
        "VirtualHost configuration:\n".to_owned()
    }

    /// The host for a request on `client` that asks for `host`; `path` is for `ServerPath`.
    pub fn select(&self, client: &Client, host: &RequestHost, path: &[u8]) -> &Arc<Host> {
        let _ = (client, host, path);
        &self.main
    }
}
