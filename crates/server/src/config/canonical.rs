//! The server's own name in generated URLs: name, port, scheme.
//!
//! Source: `ap_get_server_name`, `ap_get_server_port`, `ap_construct_url` (server/core.c).

use std::borrow::Cow;
use std::net::IpAddr;

use conf::Diagnostic;
use conf::values::{VirtualHostAddress, VirtualHostName};
use rt::names::Unresolved;

use crate::config::build::Build;
use crate::config::core::CanonicalName;
use crate::config::host::{Host, HostDraft, Server};
use crate::request::Request;
use crate::request::variant_key::Inputs;

/// The names of a host for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `ServerName` or its substitute, in lower case.
    pub name: Vec<u8>,
    /// The port of `ServerName`, or of the first address of `<VirtualHost>`; 0 for none.
    pub port: u16,
    /// The scheme of `ServerName`.
    pub scheme: Option<String>,
    /// The address that stands for the name, since it has none.
    pub unresolved: Option<Box<(IpAddr, Unresolved)>>,
}

impl Identity {
    /// The identity of a host, with defaults from `main`.
    pub fn of(draft: &HostDraft, main: Option<&Identity>, build: &Build) -> Identity {
        let core = build.core_config(&draft.server);
        if let Some(own) = core.and_then(|core| core.server_name.0.as_ref()) {
            let (name, port) = (own.name.clone(), own.port.unwrap_or(0));
            let scheme = own.scheme.clone();
            return Identity { name, port, scheme, unresolved: None };
        }
        let Some(main) = main else {
            return Identity { name: local_name(), ..Identity::default() };
        };
        let parsed = draft.addresses.iter().map(|arg| VirtualHostAddress::parse(&arg.text).ok());
        let all: Vec<_> = parsed.map_while(|address| address).collect();
        let port = all.first().and_then(|address| address.port).unwrap_or(main.port);
        // A host of certain addresses is not reached by the main server's name; without a
        // ServerName its name is that of its first address.
        let is_certain = all.iter().all(|address| match address.host {
            VirtualHostName::Ip(ip) => !ip.is_unspecified(),
            VirtualHostName::Name(_) => true,
            VirtualHostName::Any => false,
        });
        let mut unresolved = None;
        let name = match all.first().filter(|_| is_certain).map(|address| &address.host) {
            // This takes a look-up.
            Some(VirtualHostName::Ip(ip)) => rt::names::name_of(*ip).unwrap_or_else(|why| {
                unresolved = Some(Box::new((*ip, why)));
                ip.to_string().into_bytes()
            }),
            Some(VirtualHostName::Name(name)) => name.to_ascii_lowercase().into_bytes(),
            _ => main.name.clone(),
        };
        Identity { name, port, scheme: main.scheme.clone(), unresolved }
    }
}

/// Warns of hosts whose name would be that of an address which has none; of the last one first, as
/// Apache does (`ap_fini_vhost_config`).
pub(crate) fn warn_of_unresolved(server: &Server, build: &mut Build) {
    for (host, draft) in server.hosts.iter().skip(1).zip(&build.hosts).rev() {
        let Some((address, why)) = host.identity.unresolved.as_deref() else { continue };
        let (number, reason) = (why.number(), why.text());
        let text = format!(
            "(EAI {number}){reason}: AH00549: Failed to resolve server name for {address} (check \
             DNS) -- or specify an explicit ServerName"
        );
        build.diagnostics.push(Diagnostic::warning(draft.span, "", text));
    }
}

/// The name of this machine: its host name if it is fully qualified, otherwise its address
/// (`ap_get_local_host`).
pub fn local_name() -> Vec<u8> {
    use std::net::ToSocketAddrs;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if host.contains('.') {
        return host.to_ascii_lowercase().into_bytes();
    }
    let address = (host.as_str(), 0).to_socket_addrs().ok().and_then(|mut all| all.next());
    let address = address.map(|found| found.ip().to_string());
    address.unwrap_or_else(|| "127.0.0.1".to_owned()).into_bytes()
}

impl Host {
    /// `ServerName` or its substitute.
    pub fn name(&self) -> &[u8] {
        &self.identity.name
    }
}

impl Request {
    /// The server's name, according to `UseCanonicalName`.
    pub fn server_name(&self) -> &[u8] {
        match self.plan.core.use_canonical_name.or(CanonicalName::Off) {
            CanonicalName::Off => {
                self.looks_at(Inputs::AUTHORITY);
                self.hostname.as_deref().unwrap_or(self.host.name())
            }
            CanonicalName::On => self.host.name(),
            CanonicalName::Dns => {
                self.looks_at(Inputs::ONCE);
                self.known_own_name().unwrap_or(self.host.name())
            }
        }
    }

    /// The server's address on the connection.
    pub fn own_address(&self) -> std::net::IpAddr {
        self.looks_at(Inputs::OWN_ADDRESS);
        self.connection.local.ip()
    }

    /// The server's port, according to `UseCanonicalName` and `UseCanonicalPhysicalPort`.
    pub fn server_port(&self) -> u16 {
        self.looks_at(Inputs::AUTHORITY);
        let core = &self.plan.core;
        let named = self.named_port.unwrap_or(0);
        let own = self.host.identity.port;
        let local = self.connection.local.port();
        let physical = core.use_canonical_physical_port.or(false);
        let candidates = match (core.use_canonical_name.or(CanonicalName::Off), physical) {
            (CanonicalName::On, true) => [own, local, 0],
            (CanonicalName::On, false) => [own, 0, 0],
            (_, true) => [named, local, own],
            (_, false) => [named, own, 0],
        };
        let found = candidates.iter().copied().find(|port| *port != 0);
        found.unwrap_or(self.default_port())
    }

    /// `http` or `https`, unless `ServerName` has another scheme.
    pub fn scheme(&self) -> &str {
        match &self.host.identity.scheme {
            Some(scheme) => scheme,
            None if self.connection.tls.is_some() => "https",
            None => "http",
        }
    }

    /// The scheme's default port.
    pub fn default_port(&self) -> u16 {
        if self.connection.tls.is_some() { 443 } else { 80 }
    }

    /// The server's name as in a URL: an IPv6 address has brackets (`ap_get_server_name_for_url`).
    pub fn server_name_for_url(&self) -> Cow<'_, [u8]> {
        let name = self.server_name();
        match name.contains(&b':') && name.first() != Some(&b'[') {
            true => Cow::Owned([b"[", name, b"]"].concat()),
            false => Cow::Borrowed(name),
        }
    }

    /// The URL of a path on this server (`ap_construct_url`).
    pub fn construct_url(&self, path: &[u8]) -> Vec<u8> {
        let mut url = self.scheme().as_bytes().to_vec();
        url.extend_from_slice(b"://");
        url.extend_from_slice(&self.server_name_for_url());
        let port = self.server_port();
        let default = if self.scheme() == "https" { 443 } else { 80 };
        if port != default {
            url.extend_from_slice(format!(":{port}").as_bytes());
        }
        url.extend_from_slice(path);
        url
    }
}
