//! `Listen` lines.

use std::net::{IpAddr, SocketAddr};

use conf::Arg;
use conf::values::{ListenAddress, VirtualHostName};
use server::build::Build;
use server::directive::{Cx, Fault, Set};

use super::Mpm;

/// A `Listen` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address; `None` for all addresses.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// The protocol; by default `https` for port 443 and `http` for others.
    pub protocol: String,
}

impl Listen {
    /// The socket's address, if the line has one.
    pub fn socket(&self) -> Option<SocketAddr> {
        self.address.map(|address| SocketAddr::new(address, self.port))
    }
}

/// Source: `ap_set_listener` (server/listen.c).
pub(super) fn set<M: Mpm>(cx: &mut Cx<'_, '_, M>, words: &[Arg]) -> Set {
    let (Some(first), 1..=2) = (words.first(), words.len()) else {
        return Err("Listen requires 1 or 2 arguments.".into());
    };
    let parsed = ListenAddress::parse(&first.text).map_err(|why| Fault::new(why).at(first))?;
    let protocol = match words.get(1) {
        Some(word) => word.text.to_string().to_ascii_lowercase(),
        None if parsed.port == 443 => "https".to_owned(),
        None => "http".to_owned(),
    };
    let port = parsed.port;
    let addresses = match parsed.host {
        VirtualHostName::Any => vec![None],
        VirtualHostName::Ip(address) => vec![Some(address)],
        VirtualHostName::Name(name) => resolve(&name, first)?,
    };
    let all = &mut cx.server().listen.0;
    for address in addresses {
        let line = Listen { address, port, protocol: protocol.clone() };
        if all.iter().any(|known| known.address == address && known.port == port) {
            let twice = "Cannot define multiple Listeners on the same IP:port";
            return Err(Fault::new(twice).at(first));
        }
        all.push(line);
    }
    Ok(())
}

fn resolve(name: &str, arg: &Arg) -> Result<Vec<Option<IpAddr>>, Fault> {
    use std::net::ToSocketAddrs;
    let found = (name, 0).to_socket_addrs().map_err(|_| {
        Fault::new(format!("alloc_listener: failed to set up sockaddr for {name}")).at(arg)
    })?;
    let mut addresses: Vec<Option<IpAddr>> = found.map(|address| Some(address.ip())).collect();
    addresses.dedup();
    Ok(addresses)
}

/// Fails if there is no listener (`ap_setup_listeners`).
pub(super) fn check(build: &mut Build) {
    let none = super::active(&build.registry, &build.main.server)
        .is_none_or(|(_, settings)| settings.listen.0.is_empty());
    if none && build.for_real {
        build.error_without_place("AH00072: no listening sockets available, shutting down");
    }
}
