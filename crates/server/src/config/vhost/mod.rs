//! Selects the host for a request: by local address, then by name.
//!
//! Manual: "An In-Depth Discussion of Virtual Host Matching". Source: server/vhost.c.

mod choice;
mod dump;
mod names;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use conf::values::{VirtualHostAddress, VirtualHostName};
use wire::HeadError;
use wire::host::RequestHost;

use crate::config::host::Host;
use crate::request::connection_info::ConnectionInfo;

pub use choice::Choice;
use names::Names;

/// Hosts by address and name.
pub struct VhostTable {
    main: Arc<Host>,
    /// The hosts of each address that a `<VirtualHost>` names.
    by_address: HashMap<IpAddr, Vec<Group>>,
    /// The hosts of `*` and `_default_`.
    wildcard: Vec<Group>,
    /// The groups of `by_address` in Apache's order, for [`VhostTable::dump`].
    order: Vec<(IpAddr, Option<u16>)>,
}

/// The hosts of one address and port. The first is the default host.
struct Group {
    /// The port; `None` for all ports.
    port: Option<u16>,
    hosts: Vec<Member>,
    /// By `ServerName` and `ServerAlias`.
    names: Names,
    /// By the address's name in `<VirtualHost>`.
    called: Names,
    /// The indexes of those with a `ServerPath`.
    with_path: Vec<usize>,
}

/// A host in a group, by one of its addresses.
struct Member {
    host: Arc<Host>,
    /// The address's name in `<VirtualHost>`: the last resort when names are compared.
    called: Vec<u8>,
}

impl VhostTable {
    /// Returns a table of `hosts`, the first of which is the main server.
    ///
    /// Apache inserts hosts into its lists from the last to the first, each at the front
    /// (`ap_fini_vhost_config`); this appends and reverses.
    pub fn new(hosts: &[Arc<Host>]) -> VhostTable {
        let mut table = VhostTable {
            main: hosts[0].clone(),
            by_address: HashMap::new(),
            wildcard: Vec::new(),
            order: Vec::new(),
        };
        for host in hosts.iter().skip(1).rev() {
            table.add(host);
        }
        table.order.reverse();
        table.wildcard.reverse();
        for group in table.by_address.values_mut().flatten().chain(&mut table.wildcard) {
            group.hosts.reverse();
            group.index();
        }
        table
    }

    fn add(&mut self, host: &Arc<Host>) {
        let mut last = None;
        for arg in &host.addresses {
            let Ok(address) = VirtualHostAddress::parse(&arg.text) else { continue };
            let port = address.port;
            for (ip, called) in resolved(&address.host) {
                match ip {
                    Some(ip) => {
                        if join(self.by_address.entry(ip).or_default(), host, port, called) {
                            self.order.push((ip, port));
                        }
                    }
                    // `*:80 [::]:80` is the same address twice, and is listed once.
                    None if last == Some((None, port)) => {}
                    None => {
                        join(&mut self.wildcard, host, port, called);
                    }
                }
                last = Some((ip, port));
            }
        }
    }

    /// The host for a connection to `local`, before the name is known (`ap_update_vhost_given_ip`).
    pub fn by_address(&self, local: SocketAddr) -> &Arc<Host> {
        let group = self.group(local);
        group.and_then(|group| group.hosts.first()).map_or(&self.main, |member| &member.host)
    }

    /// The host for a request on `client` that names `host`; `path` is for `ServerPath`.
    ///
    /// # Errors
    /// Under `StrictHostCheck` an unknown name is a 400.
    pub fn select(
        &self,
        client: &ConnectionInfo,
        host: &RequestHost,
        path: &[u8],
    ) -> Result<&Arc<Host>, Box<HeadError>> {
        let group = self.group(client.local);
        let default = &client.base_host;
        // The base host of a connection is one of this table's.
        let fallback = self.by_address(client.local);
        let name = host.name();
        if !host.is_given {
            return Ok(self.by_path(client.local, path).unwrap_or(fallback));
        }
        let found = match group {
            Some(group) => group.by_name(name),
            None => self.main_by_name(name),
        };
        match found {
            Some(found) => Ok(found),
            None if default.core.strict_host_check.or(false) => Err(mismatch(default, name)),
            None => Ok(fallback),
        }
    }

    /// The host of an address with this name (`ssl_find_vhost`): for TLS, which knows the name
    /// before there is a request.
    pub fn named(&self, local: SocketAddr, name: &[u8]) -> Option<&Arc<Host>> {
        match self.group(local) {
            Some(group) => group.host_at(group.names.find(name)?),
            None => self.main_by_name(name),
        }
    }

    /// The main server, if it has the name. It has no aliases, since `ServerAlias` is allowed only
    /// in `<VirtualHost>`.
    fn main_by_name(&self, name: &[u8]) -> Option<&Arc<Host>> {
        Some(&self.main).filter(|main| main.name().eq_ignore_ascii_case(name))
    }

    /// The host of an address whose `ServerPath` contains the path.
    pub fn by_path(&self, local: SocketAddr, path: &[u8]) -> Option<&Arc<Host>> {
        self.group(local)?.by_path(path)
    }

    /// Whether an address has more than one host.
    pub fn is_name_based(&self, local: SocketAddr) -> bool {
        self.group(local).is_some_and(|group| group.hosts.len() > 1)
    }

    /// The group of an address: its exact port first, then any port; then the wildcards likewise.
    fn group(&self, local: SocketAddr) -> Option<&Group> {
        let exact = self.by_address.get(&local.ip().to_canonical());
        let of = |groups: &'_ Vec<Group>| of_port(groups, local.port());
        exact.and_then(of).and_then(|at| exact?.get(at)).or_else(|| {
            let at = of(&self.wildcard)?;
            self.wildcard.get(at)
        })
    }
}

/// The index of the group for a port.
fn of_port(groups: &[Group], port: u16) -> Option<usize> {
    let exact = groups.iter().position(|group| group.port == Some(port));
    exact.or_else(|| groups.iter().position(|group| group.port.is_none()))
}

/// The addresses of a `<VirtualHost>` with their names; `None` is any address.
fn resolved(name: &VirtualHostName) -> Vec<(Option<IpAddr>, Vec<u8>)> {
    let specific = |ip: IpAddr| (!ip.is_unspecified()).then(|| ip.to_canonical());
    match name {
        VirtualHostName::Any => vec![(None, b"*".to_vec())],
        VirtualHostName::Ip(ip) => vec![(specific(*ip), ip.to_string().into_bytes())],
        VirtualHostName::Name(name) => {
            let found = (name.as_str(), 0).to_socket_addrs().into_iter().flatten();
            found.map(|found| (specific(found.ip()), name.clone().into_bytes())).collect()
        }
    }
}

/// Adds a host to the group of a port; returns whether the group is new.
fn join(groups: &mut Vec<Group>, host: &Arc<Host>, port: Option<u16>, called: Vec<u8>) -> bool {
    let member = Member { host: host.clone(), called };
    match groups.iter_mut().find(|group| group.port == port) {
        Some(group) => {
            group.hosts.push(member);
            false
        }
        None => {
            groups.push(Group::new(port, member));
            true
        }
    }
}

impl Group {
    fn new(port: Option<u16>, first: Member) -> Group {
        Group {
            port,
            hosts: vec![first],
            names: Names::default(),
            called: Names::default(),
            with_path: Vec::new(),
        }
    }

    /// Prepares the look-ups, once the hosts are complete and in order.
    fn index(&mut self) {
        self.names = Names::of(self.hosts.iter().map(|member| names_of(&member.host)));
        for (member, place) in self.hosts.iter().zip(0..) {
            self.called.add(&member.called, place);
        }
        let with_path = |place: &usize| self.server_path(*place).is_some();
        self.with_path = (0..self.hosts.len()).filter(with_path).collect();
    }

    /// The first host with this name, or else the first whose `<VirtualHost>` names it.
    fn by_name(&self, name: &[u8]) -> Option<&Arc<Host>> {
        self.host_at(self.names.find(name).or_else(|| self.called.find(name))?)
    }

    /// The first host whose `ServerPath` contains the path.
    fn by_path(&self, path: &[u8]) -> Option<&Arc<Host>> {
        let is_below = |own: &[u8]| lies_below(path, own);
        let mut places = self.with_path.iter();
        self.host_at(*places.find(|place| self.server_path(**place).is_some_and(is_below))?)
    }

    fn server_path(&self, place: usize) -> Option<&[u8]> {
        self.hosts.get(place)?.host.core.server_path.0.as_deref()
    }

    fn host_at(&self, place: usize) -> Option<&Arc<Host>> {
        self.hosts.get(place).map(|member| &member.host)
    }
}

fn lies_below(path: &[u8], own: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(own) else { return false };
    own.last() == Some(&b'/') || matches!(rest.first(), None | Some(b'/'))
}

/// Whether a host has a name: by `ServerName`, or by an alias, perhaps with wildcards.
pub fn has_name(host: &Host, name: &[u8]) -> bool {
    let (own, aliases) = names_of(host);
    own.eq_ignore_ascii_case(name)
        || aliases.iter().any(|alias| match is_wild(alias) {
            true => matches_wildcard(alias, name),
            false => alias.eq_ignore_ascii_case(name),
        })
}

/// Its `ServerName` and its aliases.
fn names_of(host: &Host) -> (&[u8], &[Vec<u8>]) {
    (host.name(), &host.core.server_aliases.0)
}

fn is_wild(alias: &[u8]) -> bool {
    alias.iter().any(|byte| matches!(byte, b'*' | b'?'))
}

/// Matches `*` with any bytes and `?` with one byte, ignoring case (`ap_strcasecmp_match`).
fn matches_wildcard(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut on) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while on < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                retry = Some((at, on));
                continue;
            }
            Some(byte) => {
                let same = name.get(on).is_some_and(|other| byte.eq_ignore_ascii_case(other));
                if same || *byte == b'?' {
                    at += 1;
                    on += 1;
                    continue;
                }
            }
            None => {}
        }
        let Some((after_star, from)) = retry else { return false };
        at = after_star;
        on = from + 1;
        retry = Some((after_star, on));
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

fn mismatch(default: &Host, name: &[u8]) -> Box<HeadError> {
    let place = match &default.defined_at {
        Some((file, line)) => format!("{file}:{line}"),
        None => "main server".to_owned(),
    };
    let mut message = b"Requested hostname '".to_vec();
    message.extend_from_slice(name);
    message.extend_from_slice(
        format!(
            "' did not match any ServerName/ServerAlias in the matching virtual host (default \
             vhost for current connection is {place})"
        )
        .as_bytes(),
    );
    // The levels of `wire` have no warning; an error is logged in any case.
    Box::new(HeadError {
        status: 400,
        log_number: 10157,
        level: wire::LogLevel::Error,
        message,
        notes: "",
    })
}

#[cfg(test)]
mod tests;
