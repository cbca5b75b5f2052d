//! Which remote proxy a request goes through: ProxyRemote, ProxyRemoteMatch and NoProxy.
//!
//! Source: `proxy_handler`, `ap_proxy_is_ipaddr` and what follows it (proxy_util.c).

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use server::request::Request;

use super::backend::Place;
use super::target::{default_port, split_at_text};
use super::{RemoteProxy, Settings, unasked};

/// A host, domain, network or word of NoProxy (`dirconn_entry`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direct {
    /// A network: address and mask.
    Network(u32, u32),
    /// `.domain`, in lower case.
    Domain(Vec<u8>),
    /// A host that the name server knows, in lower case.
    Host(Vec<u8>),
    /// A part of a name.
    Word(Vec<u8>),
}

impl Direct {
    /// Reads a word of NoProxy; `is_known` tells whether the name server knows a host.
    pub fn parse(text: &[u8], is_known: impl Fn(&str) -> bool) -> Direct {
        if let Some(network) = Network::parse(text) {
            return Direct::Network(network.address & network.mask(), network.mask());
        }
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let bare = || {
            let end = text.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
            text.get(..end).unwrap_or_default().to_ascii_lowercase()
        };
        match (text.first(), text.iter().all(is_name)) {
            (Some(b'.'), true) => Direct::Domain(bare()),
            (Some(_), true) if std::str::from_utf8(text).is_ok_and(is_known) => {
                Direct::Host(bare())
            }
            _ => Direct::Word(text.to_vec()),
        }
    }

    /// Whether an address is in the network.
    fn has(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Direct::Network(network, mask), IpAddr::V4(own)) => u32::from(own) & mask == *network,
            _ => false,
        }
    }

    /// Whether a host is reached directly.
    fn covers(&self, host: &[u8]) -> bool {
        let end = host.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
        let bare = host.get(..end).unwrap_or_default();
        match self {
            Direct::Network(address, mask) => {
                let text = std::str::from_utf8(host).unwrap_or_default();
                let own = text.parse::<Ipv4Addr>().map(u32::from);
                own.is_ok_and(|own| own & mask == *address)
            }
            Direct::Domain(domain) => {
                let start = bare.len().checked_sub(domain.len()).filter(|start| *start > 0);
                let rest = start.and_then(|start| bare.get(start..));
                rest.is_some_and(|rest| rest.eq_ignore_ascii_case(domain))
            }
            Direct::Host(name) => bare.eq_ignore_ascii_case(name),
            Direct::Word(word) => {
                word.is_empty() || host.windows(word.len()).any(|window| window == word)
            }
        }
    }
}

/// An address with up to four numbers, and the length of its mask.
struct Network {
    address: u32,
    bits: u32,
    /// Whether the length follows from the zeros at the end.
    is_guessed: bool,
}

impl Network {
    fn parse(text: &[u8]) -> Option<Network> {
        let text = std::str::from_utf8(text).ok()?;
        let (numbers, bits) = match text.split_once('/') {
            Some((numbers, bits)) => (numbers, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let numbers = numbers.strip_suffix('.').unwrap_or(numbers);
        let quads: Vec<u8> =
            numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        if quads.is_empty() || quads.len() > 4 {
            return None;
        }
        let mut octets = [0; 4];
        for (octet, quad) in octets.iter_mut().zip(&quads) {
            *octet = *quad;
        }
        let given = quads.iter().rposition(|quad| *quad != 0).map_or(0, |last| last + 1);
        let is_guessed = bits.is_none();
        let bits = bits.unwrap_or(8 * given as u32);
        let address = u32::from_be_bytes(octets);
        (1..=32).contains(&bits).then_some(Network { address, bits, is_guessed })
    }

    fn mask(&self) -> u32 {
        u32::MAX << (32 - self.bits)
    }
}

/// Apache's remarks about a word of NoProxy that is a network.
pub(super) fn remarks(text: &[u8]) -> Vec<String> {
    let Some(network) = Network::parse(text) else { return Vec::new() };
    let shown = |address: u32| format!("{}/{}", Ipv4Addr::from(address), network.bits);
    let (own, masked) = (network.address, network.address & network.mask());
    let mut remarks = Vec::new();
    if network.is_guessed && network.bits != 32 {
        let shown = shown(own);
        let text = "Warning: NetMask not supplied with IP-Addr; guessing";
        remarks.push(format!("AH00900: {text}: {shown}"));
    }
    if own != masked {
        let (own, masked) = (shown(own), shown(masked));
        remarks.push(format!("AH00901: Warning: NetMask and IP-Addr disagree in {own}"));
        remarks.push(format!("AH00902:          Set to {masked}"));
    }
    remarks
}

/// Whether NoProxy names the host of a request, or a network with one of its addresses
/// (`proxy_match_ipaddr`).
pub(super) async fn is_direct(request: &Request, settings: &Settings) -> bool {
    let Some(host) = request.hostname.as_deref().filter(|_| !settings.direct.is_empty()) else {
        return false;
    };
    if settings.direct.iter().any(|direct| direct.covers(host)) {
        return true;
    }
    let has_networks = settings.direct.iter().any(|direct| matches!(direct, Direct::Network(..)));
    if !has_networks || settings.remotes.is_empty() {
        return false;
    }
    let host = String::from_utf8_lossy(host);
    let found = unasked::look_up(request, &host, None).await;
    found.is_ok_and(|found| {
        found.iter().any(|address| settings.direct.iter().any(|direct| direct.has(*address)))
    })
}

/// The value of Proxy-Authorization for `user:password` (RFC 7617).
pub(super) fn authorization(credentials: &[u8]) -> Vec<u8> {
    format!("Basic {}", STANDARD.encode(credentials)).into_bytes()
}

impl RemoteProxy {
    /// Where it listens.
    pub fn place(&self) -> Place<'_> {
        let default = default_port(&self.scheme).and_then(|port| u16::try_from(port).ok());
        let port = self.port.or(default).unwrap_or(80);
        Place { host: Cow::Borrowed(&self.host), port }
    }

    /// Whether it handles requests to a URL.
    pub(super) fn handles(&self, url: &[u8]) -> bool {
        let scheme = split_at_text(url, b":").map_or(url, |(scheme, _)| scheme);
        if self.matches == b"*" {
            return true;
        }
        if let Some(regex) = &self.regex {
            // One that takes too long counts as no match.
            return regex.quick(url, None).unwrap_or(false);
        }
        match self.matches.contains(&b':') {
            true => url
                .get(..self.matches.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(&self.matches)),
            false => scheme.eq_ignore_ascii_case(&self.matches),
        }
    }
}

/// A word of ProxyBlock, with the addresses that it had when the configuration was read.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// A part of a host's name, or `*`.
    pub word: Vec<u8>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_reached_directly() {
        let known = |name: &str| name == "known.test";
        let is =
            |text: &str, host: &str| Direct::parse(text.as_bytes(), known).covers(host.as_bytes());
        assert!(is(".example.test", "a.Example.TEST."));
        assert!(!is(".example.test", ".example.test"));
        assert!(is("known.test", "KNOWN.test"));
        assert!(!is("known.test", "a.known.test"));
        assert!(is("intra", "my.intra.net"));
        assert!(is("10.0.0.0/8", "10.1.2.3") && !is("10.0.0.0/8", "11.1.2.3"));
        assert!(is("192.168", "192.168.7.7") && is("127.0.0.1", "127.0.0.1"));
        assert!(!is("127.0.0.1", "localhost"));
    }
}
