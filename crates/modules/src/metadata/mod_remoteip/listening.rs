//! The connections that speak the PROXY protocol: those to an address of a host that requires it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use conf::values::{Subnet, VirtualHostAddress, VirtualHostName};
use server::build::Build;
use server::connection_info::ConnectionInfo;
use server::host::{HostDraft, Server};
use server::log::Level;
use server::module::Module;

use super::{Remoteip, Settings};

/// Where the PROXY protocol is spoken.
#[derive(Clone, Default)]
pub struct Listening {
    places: Vec<Place>,
    exceptions: Vec<Subnet>,
    /// Where a virtual host adds proxies to those of the main server.
    merged: Vec<(String, u32)>,
}

/// An address of a host, and the value of its last `RemoteIPProxyProtocol`.
#[derive(Clone)]
struct Place {
    /// `None` for every address.
    address: Option<IpAddr>,
    /// `None` for every port.
    port: Option<u16>,
    is_on: bool,
    /// The host, as a message names it.
    host: String,
}

impl Place {
    fn shown(&self) -> String {
        let address = self.address.unwrap_or(IpAddr::from([0, 0, 0, 0]));
        format!("{address}:{}", self.port.unwrap_or(0))
    }
}

impl Listening {
    /// Whether any connection speaks it.
    pub fn is_anywhere(&self) -> bool {
        self.places.iter().any(|place| place.is_on)
    }

    /// Source: `remoteip_hook_pre_connection`. A place where it is off takes precedence over one
    /// where it is on.
    fn is_on(&self, local: SocketAddr, peer: IpAddr) -> bool {
        let is_here = |place: &&Place| {
            place.address.is_none_or(|address| address == local.ip())
                && place.port.is_none_or(|port| port == local.port())
        };
        let mut here = self.places.iter().filter(is_here).peekable();
        here.peek().is_some()
            && here.all(|place| place.is_on)
            && !self.exceptions.iter().any(|network| network.contains(peer))
    }

    /// Adds a place, or replaces an equal one, which is returned.
    fn add(&mut self, place: Place) -> Option<Place> {
        let is_same = |old: &Place| old.address == place.address && old.port == place.port;
        let known = self.places.iter().position(is_same).map(|at| self.places.remove(at));
        self.places.push(place);
        known
    }
}

/// Whether a connection begins with a header.
pub(super) fn is_on(connection: &ConnectionInfo, server: &Server) -> bool {
    let slot = server.registry.slot_of::<Remoteip>();
    let settings = slot.and_then(|slot| server.main().server.get::<Settings>(slot));
    settings
        .is_some_and(|settings| settings.listening.0.is_on(connection.local, connection.peer.ip()))
}

/// Logs where it is spoken, and where not.
pub(super) fn announce(server: &Arc<Server>) {
    let slot = server.registry.slot_of::<Remoteip>();
    let settings = slot.and_then(|slot| server.main().server.get::<Settings>(slot));
    let places = settings.map(|settings| settings.listening.0.places.as_slice());
    for is_on in [true, false] {
        let places = places.unwrap_or_default().iter().rev();
        for place in places.filter(|place| place.is_on == is_on) {
            let at = place.shown();
            let (number, state) = if is_on { (3492, "enabled") } else { (3494, "disabled") };
            let text = format_args!("RemoteIPProxyProtocol: {state} on {at}");
            server.log(Remoteip::FILE, Level::Notice, number, text);
        }
    }
    for (file, line) in settings.iter().flat_map(|settings| &settings.listening.0.merged) {
        let text = format_args!(
            "RemoteIP proxy entries are configured in both the main server and the virtual host \
             defined at {file}:{line}, they are merged"
        );
        server.log(Remoteip::FILE, Level::Warn, 10633, text);
    }
}

/// Gathers the settings of all hosts, now that they are known.
pub(super) fn settle(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Remoteip>() else { return };
    let mut all = Listening::default();
    let mut remarks = Vec::new();
    let mut trusted_by_main = 0;
    for (host, is_main) in
        std::iter::once((&build.main, true)).chain(build.hosts.iter().map(|host| (host, false)))
    {
        let Some(settings) = host.server.get::<Settings>(slot) else { continue };
        all.exceptions.extend(settings.exceptions.0.iter().cloned());
        if is_main {
            trusted_by_main = settings.proxies.len();
        } else if trusted_by_main > 0 && settings.proxies.len() > trusted_by_main {
            all.merged.push(build.sources.place(host.span));
        }
        let Some(is_on) = settings.protocol.0 else { continue };
        let addresses: Vec<_> = match is_main {
            true => vec![(None, None)],
            false => host.addresses.iter().flat_map(|arg| addresses(&arg.text)).collect(),
        };
        for (address, port) in addresses {
            let (file, _) = build.sources.place(host.span);
            let name = own_name(build, host).unwrap_or_else(|| "(null)".to_owned());
            let shown = format!("{{{name}:{} in {file}}}", port.unwrap_or(0));
            let place = Place { address, port, is_on, host: shown.clone() };
            let at = place.shown();
            if let Some(old) = all.add(place).filter(|old| old.is_on != is_on) {
                let (old, state) = (old.host, if is_on { "On" } else { "Off" });
                let text = format!(
                    "RemoteIPProxyProtocol: previous setting for {at} from virtual host {old} is \
                     being overridden by virtual host {shown}; new setting is '{state}'"
                );
                remarks.push((host.span, text));
            }
        }
    }
    for (span, text) in remarks {
        build.remark(span, "AH03491", text);
    }
    let all = Arc::new(all);
    build.edit_servers(slot, |settings: &mut Settings| settings.listening.0 = all.clone());
}

/// The name that a host's `ServerName` gives it.
fn own_name(build: &Build, host: &HostDraft) -> Option<String> {
    let name = build.core_config(&host.server)?.server_name.0.as_ref()?;
    Some(String::from_utf8_lossy(&name.name).into_owned())
}

/// The addresses of a virtual host, as a listener sees them.
fn addresses(text: &[u8]) -> Vec<(Option<IpAddr>, Option<u16>)> {
    let Ok(parsed) = VirtualHostAddress::parse(text) else { return Vec::new() };
    let port = parsed.port.filter(|port| *port != 0);
    match parsed.host {
        VirtualHostName::Any => vec![(None, port)],
        VirtualHostName::Ip(address) => vec![(Some(address.to_canonical()), port)],
        VirtualHostName::Name(name) => {
            let found = (name.as_str(), 0).to_socket_addrs().into_iter().flatten();
            found.map(|address| (Some(address.ip().to_canonical()), port)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_counts_more_than_on() {
        let mut all = Listening::default();
        assert!(!all.is_anywhere());
        let place = |port, is_on| Place { address: None, port, is_on, host: String::new() };
        all.add(place(None, true));
        let local = |text: &str| text.parse::<SocketAddr>().unwrap();
        let peer = IpAddr::from([10, 0, 0, 1]);
        assert!(all.is_on(local("127.0.0.1:80"), peer));
        assert!(all.add(place(Some(81), false)).is_none());
        assert!(all.is_on(local("127.0.0.1:80"), peer) && !all.is_on(local("127.0.0.1:81"), peer));
        assert!(all.add(place(Some(81), true)).is_some());
        assert!(all.is_on(local("127.0.0.1:81"), peer));
        all.exceptions.push(Subnet::parse(b"10.0.0.0/8").unwrap());
        assert!(!all.is_on(local("127.0.0.1:80"), peer));
    }
}
