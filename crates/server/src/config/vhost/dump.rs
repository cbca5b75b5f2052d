//! `-t -D DUMP_VHOSTS` (and `-S`), in Apache's layout (`ap_vhost_iterate…`, `dump_vhost_config`).

use std::fmt::Write;
use std::net::IpAddr;

use super::{Group, VhostTable, is_wild};
use crate::config::host::Host;

impl VhostTable {
    /// Formats the virtual hosts.
    pub fn dump(&self) -> String {
        let mut out = "VirtualHost configuration:\n".to_owned();
        let mut order = self.order.clone();
        order.sort_by_key(|(ip, _)| bucket(*ip));
        for (ip, port) in &order {
            let mut groups = self.by_address.get(ip).into_iter().flatten();
            if let Some(group) = groups.find(|group| group.port == *port) {
                dump_group(&mut out, &shown(*ip), group);
            }
        }
        for group in &self.wildcard {
            dump_group(&mut out, "*", group);
        }
        out
    }
}

/// An address's index in Apache's table of 256 lists (`hash_addr`), which determines the order of
/// its dump; 4 bytes read as little-endian.
fn bucket(ip: IpAddr) -> u32 {
    let [.., a, b, c, d] = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let key = u32::from_le_bytes([a, b, c, d]);
    let key = key ^ (key >> 16);
    ((key >> 8) ^ key) % 256
}

fn shown(ip: IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

fn dump_group(out: &mut String, address: &str, group: &Group) {
    let port = group.port.map_or_else(|| "*".to_owned(), |port| port.to_string());
    let address = format!("{address}:{port}");
    let Some(first) = group.hosts.first() else { return };
    let (name, place) = (name_of(&first.host), place_of(&first.host));
    if group.hosts.len() == 1 {
        let _ = writeln!(out, "{address:<22} {name} ({place})");
        return;
    }
    let _ = writeln!(out, "{address:<22} is a NameVirtualHost");
    let _ = writeln!(out, "         default server {name} ({place})");
    for member in &group.hosts {
        let (name, place) = (name_of(&member.host), place_of(&member.host));
        let _ = writeln!(out, "         port {port} namevhost {name} ({place})");
        dump_aliases(out, &member.host);
    }
}

fn dump_aliases(out: &mut String, host: &Host) {
    for wild in [false, true] {
        let word = if wild { "wild alias" } else { "alias" };
        for alias in host.core.server_aliases.0.iter().filter(|alias| is_wild(alias) == wild) {
            let _ = writeln!(out, "                 {word} {}", String::from_utf8_lossy(alias));
        }
    }
}

fn name_of(host: &Host) -> String {
    String::from_utf8_lossy(host.name()).into_owned()
}

fn place_of(host: &Host) -> String {
    match &host.defined_at {
        Some((file, line)) => format!("{file}:{line}"),
        None => String::new(),
    }
}
