//! The address of a backend: a port of loopback or a UNIX socket, reserved for the run of a file.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use super::script::Declared;

/// As many connections as any test opens at once.
pub(super) const BACKLOG: i32 = 64;

/// A backend with its socket.
#[derive(Debug)]
pub struct Backend {
    /// Its declaration.
    pub declared: Declared,
    /// Where it listens.
    pub address: Address,
    /// Bound; it listens, unless the backend refuses.
    pub socket: Socket,
}

/// Where a backend listens.
#[derive(Debug, Clone, PartialEq)]
pub enum Address {
    /// A port of 127.0.0.1.
    Port(u16),
    /// A path.
    Path(PathBuf),
}

impl Backend {
    /// Takes an address: a port out of `port`, or a path below the run's folder.
    pub fn bind(
        declared: &Declared,
        root: &Path,
        mut port: impl FnMut() -> u16,
    ) -> std::io::Result<Backend> {
        let (socket, address) = if declared.unix {
            let path = root.join("run").join(format!("{}.sock", declared.name));
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.bind(&SockAddr::unix(&path)?)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?;
            (socket, Address::Path(path))
        } else {
            // Another runner may take the port meanwhile. A bound socket that does not listen
            // refuses, and keeps the port from others.
            loop {
                let port = port();
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
                if socket.bind(&SocketAddr::from(([127, 0, 0, 1], port)).into()).is_ok() {
                    break (socket, Address::Port(port));
                }
            }
        };
        if !declared.refuses {
            // With this, one that is stopped may listen again, whatever connections there were.
            socket.set_reuse_address(true)?;
            socket.listen(BACKLOG)?;
        }
        Ok(Backend { declared: declared.clone(), address, socket })
    }

    /// The placeholders of a file and their values.
    pub fn names(&self) -> Vec<(String, String)> {
        let name = &self.declared.name;
        match &self.address {
            Address::Port(port) => vec![
                (format!("@{name}@"), format!("127.0.0.1:{port}")),
                (format!("@{name}.port@"), port.to_string()),
            ],
            Address::Path(path) => vec![(format!("@{name}@"), path.display().to_string())],
        }
    }
}
