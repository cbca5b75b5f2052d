//! Addresses of heartbeats: IPv4 with a port.
//!
//! Source: `apr_parse_addr_port`, `apr_sockaddr_info_get`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, ToSocketAddrs};

/// What is wrong with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Syntax,
    NoHost,
    NoPort,
    /// It is of IPv6, or the name has no address.
    Unknown,
}

/// Parses an address; a name is looked up.
pub(super) fn parse(text: &[u8]) -> Result<SocketAddrV4, Wrong> {
    let text = std::str::from_utf8(text).map_err(|_| Wrong::Syntax)?;
    let rest = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.get(rest.len()..).unwrap_or_default();
    if rest.is_empty() {
        port(digits)?;
        return Err(Wrong::NoHost);
    }
    let (host, port) = match rest.strip_suffix(':') {
        Some(host) if !digits.is_empty() => (host, port(digits)?),
        _ => (text, 0),
    };
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').ok_or(Wrong::Syntax)?;
        let address = address.split('%').next().unwrap_or_default();
        address.parse::<Ipv6Addr>().map_err(|_| Wrong::Syntax)?;
    }
    match (host.is_empty(), port) {
        (true, _) => Err(Wrong::Syntax),
        (false, 0) => Err(Wrong::NoPort),
        (false, port) => resolve(host, port).ok_or(Wrong::Unknown),
    }
}

fn port(digits: &str) -> Result<u16, Wrong> {
    digits.parse().ok().filter(|port| *port != 0).ok_or(Wrong::Syntax)
}

fn resolve(host: &str, port: u16) -> Option<SocketAddrV4> {
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Some(SocketAddrV4::new(address, port));
    }
    let mut found = (host, port).to_socket_addrs().ok()?;
    found.find_map(|address| match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_apr() {
        let found = SocketAddrV4::new(Ipv4Addr::new(239, 0, 0, 1), 27999);
        assert_eq!(parse(b"239.0.0.1:27999"), Ok(found));
        for (text, wrong) in [
            ("abc", Wrong::NoPort),
            ("1.2.3.4", Wrong::NoPort),
            ("27999", Wrong::NoHost),
            (":27999", Wrong::Syntax),
            ("1.2.3.4:0", Wrong::Syntax),
            ("1.2.3.4:99999", Wrong::Syntax),
            ("1.2.3.4:", Wrong::NoPort),
            ("[::1]:99", Wrong::Unknown),
            ("[fe80::1%lo]:99", Wrong::Unknown),
            ("[::1:99", Wrong::Syntax),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(wrong), "{text}");
        }
    }
}
