//! Why a request's host was selected.

use std::net::{IpAddr, SocketAddr};

use super::{VhostTable, is_wild, matches_wildcard};
use crate::config::host::Host;

/// The reason for a host, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The address as in `<VirtualHost>`: `*:80`; empty if no host has the connection's.
    pub address: String,
    /// The rule.
    pub rule: String,
    /// The number of other hosts of the address.
    pub others: usize,
}

impl VhostTable {
    /// Says why `host` was selected for a request to `local` that names `name`.
    pub fn explain(&self, local: SocketAddr, name: Option<&[u8]>, host: &Host) -> Choice {
        let Some(group) = self.group(local) else {
            let rule = "the main server: no <VirtualHost> has this address".to_owned();
            return Choice { address: String::new(), rule, others: 0 };
        };
        let is_exact = self.by_address.contains_key(&local.ip().to_canonical());
        let ip = if is_exact { local.ip().to_string() } else { "*".to_owned() };
        let port = group.port.map_or_else(|| "*".to_owned(), |port| port.to_string());
        let by_call = |name: &[u8]| group.called.find(name).is_some();
        let rule = match name {
            None if group.hosts.len() == 1 => "the only one of its address".to_owned(),
            None => "the first of its address: the request names no host".to_owned(),
            Some(name) => by_name(host, name).unwrap_or_else(|| match by_call(name) {
                true => "by its address".to_owned(),
                false => {
                    let name = bstr::BStr::new(name);
                    format!("the first of its address: none is called {name}")
                }
            }),
        };
        Choice { address: format!("{ip}:{port}"), rule, others: group.hosts.len() - 1 }
    }

    /// The addresses that hosts of a port have, in order.
    pub fn addresses(&self, port: u16) -> Vec<IpAddr> {
        let of_port = |(_, own): &&(IpAddr, Option<u16>)| own.is_none_or(|own| own == port);
        self.order.iter().filter(of_port).map(|(ip, _)| *ip).collect()
    }
}

fn by_name(host: &Host, name: &[u8]) -> Option<String> {
    if host.name().eq_ignore_ascii_case(name) {
        return Some("by ServerName".to_owned());
    }
    let is_it = |alias: &&Vec<u8>| match is_wild(alias) {
        true => matches_wildcard(alias, name),
        false => alias.eq_ignore_ascii_case(name),
    };
    let alias = host.core.server_aliases.0.iter().find(is_it)?;
    Some(format!("by ServerAlias {}", bstr::BStr::new(alias)))
}
