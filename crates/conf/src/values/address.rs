//! Addresses and ports of `Listen`, `<VirtualHost>` and `Require ip`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The host of an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VirtualHostName {
    /// `*` or `_default_`.
    Any,
    /// An address, IPv6 in brackets.
    Ip(IpAddr),
    /// A name that has to be resolved.
    Name(String),
}

/// The address of a `Listen` line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListenAddress {
    /// The host; `Any` if only the port is given.
    pub host: VirtualHostName,
    /// The port.
    pub port: u16,
    /// The interface after the `%` of a link-local IPv6 address.
    pub scope: Option<String>,
}

impl ListenAddress {
    /// Parses `80`, `*:80`, `127.0.0.1:80`, `[::1]:80`, `name:80`.
    ///
    /// # Errors
    /// Apache's messages, from `set_listener`.
    pub fn parse(text: &[u8]) -> Result<ListenAddress, &'static str> {
        let parts = split(text).ok_or("Invalid address or port")?;
        let port = parts.port.ok_or("Port must be specified")?;
        let host = parts.host.unwrap_or(VirtualHostName::Any);
        Ok(ListenAddress { host, port, scope: parts.scope })
    }
}

/// One address of a `<VirtualHost>` line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VirtualHostAddress {
    /// The host.
    pub host: VirtualHostName,
    /// The port; `None` for all, which is written as `*` or omitted.
    pub port: Option<u16>,
    /// The interface after the `%` of a link-local IPv6 address.
    pub scope: Option<String>,
}

impl VirtualHostAddress {
    /// Parses `*:80`, `*`, `_default_:*`, `10.0.0.1`, `[::1]:443`, `name:80`.
    ///
    /// # Errors
    /// Apache's messages, from `get_addresses` of vhost.c.
    pub fn parse(text: &[u8]) -> Result<VirtualHostAddress, &'static str> {
        let (address, any_port) = match text.strip_suffix(b":*") {
            Some(address) => (address, true),
            None => (text, false),
        };
        let parts = split(address).ok_or("The address or port is invalid")?;
        let host = parts.host.ok_or("Missing address for VirtualHost")?;
        let port = parts.port.filter(|_| !any_port);
        Ok(VirtualHostAddress { host, port, scope: parts.scope })
    }
}

/// A network: an address and the number of its significant bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subnet {
    network: u128,
    mask: u128,
    is_v6: bool,
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubnetError {
    /// Neither an address nor the beginning of one.
    #[error("the specified IP address is invalid")]
    Address,
    /// The mask is neither a number of bits nor an address of the same family.
    #[error("the specified network mask is invalid")]
    Mask,
}

impl Subnet {
    /// Parses `10.1.2.3`, `10.1` (whole octets), `10.0.0.0/8`, `10.0.0.0/255.0.0.0`,
    /// `2001:db8::/32`.
    ///
    /// Bits outside of the mask are ignored. Source: `apr_ipsubnet_create`.
    ///
    /// # Errors
    /// [`SubnetError`], which names the invalid part.
    pub fn parse(text: &[u8]) -> Result<Subnet, SubnetError> {
        let text = std::str::from_utf8(text).map_err(|_| SubnetError::Address)?;
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let (address, octets) = match address.parse::<IpAddr>() {
            // APR requires the IPv4 form.
            Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
                return Err(SubnetError::Address);
            }
            Ok(address) => (address, None),
            Err(_) => partial_v4(address).map(|(ip, n)| (IpAddr::V4(ip), Some(n)))?,
        };
        let (mask, is_v6) = match (address, mask, octets) {
            (IpAddr::V4(_), Some(mask), None) => (mask_bits(mask, 32)?, false),
            (IpAddr::V6(_), Some(mask), None) => (mask_bits(mask, 128)?, true),
            (_, Some(_), Some(_)) => return Err(SubnetError::Address),
            (_, None, Some(octets)) => (prefix(octets * 8, 32), false),
            (IpAddr::V4(_), None, None) => (prefix(32, 32), false),
            (IpAddr::V6(_), None, None) => (prefix(128, 128), true),
        };
        Ok(Subnet { network: bits(address) & mask, mask, is_v6 })
    }

    /// Whether the network contains the address. An IPv4-mapped IPv6 address (`::ffff:1.2.3.4`)
    /// counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = if self.is_v6 { address } else { address.to_canonical() };
        address.is_ipv6() == self.is_v6 && bits(address) & self.mask == self.network
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// A mask of the `count` highest of `width` bits.
fn prefix(count: u32, width: u32) -> u128 {
    let all = u128::MAX >> (128 - width);
    all & !all.checked_shr(count).unwrap_or(0)
}

fn mask_bits(mask: &str, width: u32) -> Result<u128, SubnetError> {
    if let Ok(count) = mask.parse::<u32>() {
        // 0 bits would match every address; APR refuses it.
        let usable = (1..=width).contains(&count);
        return usable.then(|| prefix(count, width)).ok_or(SubnetError::Mask);
    }
    if width == 32 {
        let mask: Ipv4Addr = mask.parse().map_err(|_| SubnetError::Mask)?;
        return Ok(u128::from(u32::from(mask)));
    }
    Err(SubnetError::Mask)
}

/// Parses `10.1` or `10.1.`: the first octets of an address.
fn partial_v4(text: &str) -> Result<(Ipv4Addr, u32), SubnetError> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let mut octets = [0u8; 4];
    let mut count = 0;
    for (slot, part) in octets.iter_mut().zip(text.split('.')) {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *slot = part.parse().ok().filter(|_| is_number).ok_or(SubnetError::Address)?;
        count += 1;
    }
    if count != text.split('.').count() {
        return Err(SubnetError::Address);
    }
    let count = u32::try_from(count).map_err(|_| SubnetError::Address)?;
    Ok((Ipv4Addr::from(octets), count))
}

struct Parts {
    host: Option<VirtualHostName>,
    port: Option<u16>,
    scope: Option<String>,
}

/// Splits host and port as `apr_parse_addr_port` does: a bare number is a port; otherwise the port
/// follows the last colon, if it is all digits. The rest is not examined.
fn split(text: &[u8]) -> Option<Parts> {
    let text = std::str::from_utf8(text).ok()?;
    let host_end = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if host_end.is_empty() {
        return Some(Parts { host: None, port: Some(port(text)?), scope: None });
    }
    let has_port = host_end.len() < text.len() && host_end.ends_with(':');
    let (name, port) = match host_end.strip_suffix(':').filter(|_| has_port) {
        Some(name) => (name, Some(port(text.get(host_end.len()..)?)?)),
        None => (text, None),
    };
    if let Some(inner) = name.strip_prefix('[') {
        let address = inner.strip_suffix(']')?;
        let (address, scope) = match address.split_once('%') {
            Some((address, scope)) => (address, Some(scope.to_owned())),
            None => (address, None),
        };
        let address: Ipv6Addr = address.parse().ok()?;
        let host = Some(VirtualHostName::Ip(IpAddr::V6(address)));
        return Some(Parts { host, port, scope });
    }
    Some(Parts { host: Some(host_name(name)?), port, scope: None })
}

fn host_name(name: &str) -> Option<VirtualHostName> {
    if name == "*" || name.eq_ignore_ascii_case("_default_") {
        return Some(VirtualHostName::Any);
    }
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(VirtualHostName::Ip(IpAddr::V4(address)));
    }
    (!name.is_empty()).then(|| VirtualHostName::Name(name.to_owned()))
}

fn port(digits: &str) -> Option<u16> {
    digits.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_lines() {
        let parse = |text: &str| ListenAddress::parse(text.as_bytes());
        let any = |port| ListenAddress { host: VirtualHostName::Any, port, scope: None };
        assert_eq!(parse("80"), Ok(any(80)));
        assert_eq!(parse("*:8080"), Ok(any(8080)));
        let v6 = parse("[::1]:443").unwrap();
        assert_eq!(v6.host, VirtualHostName::Ip(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(parse("a.example:81").unwrap().host, VirtualHostName::Name("a.example".into()));
        assert_eq!(parse("127.0.0.1"), Err("Port must be specified"));
        assert_eq!(parse("70000"), Err("Invalid address or port"));
        assert_eq!(parse("0"), Err("Invalid address or port"));
        assert_eq!(parse(":80"), Err("Invalid address or port"));
        assert_eq!(parse("1x"), Err("Port must be specified"));
        assert_eq!(parse("[::1"), Err("Invalid address or port"));
        assert_eq!(parse("[fe80::1%eth0]:80").unwrap().scope.as_deref(), Some("eth0"));
    }

    #[test]
    fn virtual_host_lines() {
        let parse = |text: &str| VirtualHostAddress::parse(text.as_bytes());
        let any = |port| VirtualHostAddress { host: VirtualHostName::Any, port, scope: None };
        assert_eq!(parse("*:80"), Ok(any(Some(80))));
        assert_eq!(parse("*"), Ok(any(None)));
        assert_eq!(parse("_default_:*"), Ok(any(None)));
        assert_eq!(parse("80"), Err("Missing address for VirtualHost"));
        assert_eq!(parse("*:0"), Err("The address or port is invalid"));
        assert_eq!(parse("a:b:*").unwrap().host, VirtualHostName::Name("a:b".into()));
        assert_eq!(parse("10.0.0.1").unwrap().port, None);
    }

    #[test]
    fn subnets() {
        let within = |net: &str, ip: &str| {
            Subnet::parse(net.as_bytes()).unwrap().contains(ip.parse().unwrap())
        };
        assert!(within("10.1", "10.1.255.3") && !within("10.1", "10.2.0.1"));
        assert!(within("192.168.0.0/255.255.0.0", "192.168.9.9"));
        assert!(within("10.1.2.3/8", "10.9.9.9") && !within("10.1.2.3", "10.1.2.4"));
        assert!(within("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(within("2001:db8::/32", "2001:db8:1::1") && !within("::1", "127.0.0.1"));
        assert_eq!(Subnet::parse(b"10.0.0.0/33"), Err(SubnetError::Mask));
        assert_eq!(Subnet::parse(b"10.0.0.256"), Err(SubnetError::Address));
        assert_eq!(Subnet::parse(b"example.com"), Err(SubnetError::Address));
        assert_eq!(Subnet::parse(b"1.2.3.4.5"), Err(SubnetError::Address));
    }
}
