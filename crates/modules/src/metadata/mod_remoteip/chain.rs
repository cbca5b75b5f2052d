//! The addresses in a header such as `X-Forwarded-For`, from the nearest on: each is reported by
//! the one before, and counts if that is a trusted proxy.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::proxies::Proxy;

/// A header's value, and its sender.
pub(super) struct Chain<'c> {
    value: &'c [u8],
    sender: IpAddr,
    proxies: &'c [Proxy],
}

/// A name that was looked up.
pub(super) struct Looked {
    pub name: Vec<u8>,
    pub address: Option<IpAddr>,
}

/// The result of a chain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The client, if it is not the sender.
    pub client: Option<IpAddr>,
    /// The value without the accepted elements; `None` if nothing is left.
    pub remaining: Option<Vec<u8>>,
    /// The proxies that were passed and are not internal, separated by commas.
    pub proxies: String,
    /// The element that was rejected although its proxy is trusted.
    pub refused: Option<Refused>,
}

/// An element that is not the address of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub value: Vec<u8>,
    /// It is an address, but not a public one.
    pub is_private: bool,
}

impl<'c> Chain<'c> {
    pub fn new(value: &'c [u8], sender: IpAddr, proxies: &'c [Proxy]) -> Chain<'c> {
        Chain { value, sender, proxies }
    }

    /// Follows the chain. `Err` has a name that has to be looked up first.
    pub fn follow(&self, looked: &[Looked]) -> Result<Outcome, Vec<u8>> {
        let mut outcome = Outcome { remaining: Some(self.value.to_vec()), ..Outcome::default() };
        let (mut rest, mut address) = (Some(self.value), self.sender);
        // A proxy behind one that is not internal is not internal either, whatever its address.
        let mut all_internal = true;
        while let Some(list) = rest {
            let Some(internal) = self.trusts(address) else { break };
            all_internal &= internal;
            let (before, element) = last_element(list);
            let next = match look(element, looked)? {
                Look::Nothing => None,
                Look::Address(next) if all_internal || is_of_internet(next) => Some(next),
                other => {
                    let is_private = matches!(other, Look::Address(_));
                    outcome.refused = Some(Refused { value: element.to_vec(), is_private });
                    None
                }
            };
            let Some(next) = next else {
                outcome.remaining = Some(up_to(list, before, element));
                return Ok(outcome);
            };
            if !all_internal {
                let separator = if outcome.proxies.is_empty() { "" } else { ", " };
                let _ = write!(outcome.proxies, "{separator}{address}");
            }
            outcome.client = Some(next);
            outcome.remaining = before.map(<[u8]>::to_vec);
            (rest, address) = (before, next);
        }
        Ok(outcome)
    }

    /// Whether a proxy is internal; `None` if it is not trusted. Without a list all are trusted,
    /// and none is internal.
    fn trusts(&self, address: IpAddr) -> Option<bool> {
        if self.proxies.is_empty() {
            return Some(false);
        }
        let found = self.proxies.iter().find(|proxy| proxy.network.contains(address));
        found.map(|proxy| proxy.is_internal)
    }
}

/// The text before the last comma, if there is one, and the element after it without blanks.
fn last_element(list: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let (before, element) = match list.iter().rposition(|byte| *byte == b',') {
        Some(comma) => (list.get(..comma), list.get(comma + 1..).unwrap_or_default()),
        None => (None, list),
    };
    let start = element.iter().position(|byte| *byte != b' ').unwrap_or(element.len());
    let end = element.iter().rposition(|byte| *byte != b' ').map_or(start, |last| last + 1);
    (before, element.get(start..end).unwrap_or_default())
}

/// The rest of a list whose last element is rejected: without blanks at its end, and at its
/// beginning if that element is the only one.
fn up_to(list: &[u8], before: Option<&[u8]>, element: &[u8]) -> Vec<u8> {
    if before.is_none() {
        return element.to_vec();
    }
    if element.is_empty() {
        return list.to_vec();
    }
    let end = list.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    list.get(..end).unwrap_or_default().to_vec()
}

/// The kind of an element.
enum Look {
    Address(IpAddr),
    Unknown,
    Nothing,
}

/// An element's address. As in Apache, it may be a name.
fn look(element: &[u8], looked: &[Looked]) -> Result<Look, Vec<u8>> {
    if element.is_empty() {
        return Ok(Look::Nothing);
    }
    let parsed: Option<IpAddr> = std::str::from_utf8(element).ok().and_then(|it| it.parse().ok());
    if let Some(address) = parsed {
        return Ok(Look::Address(address.to_canonical()));
    }
    match looked.iter().find(|known| known.name == element) {
        Some(Looked { address: Some(address), .. }) => Ok(Look::Address(*address)),
        Some(_) => Ok(Look::Unknown),
        None => Err(element.to_vec()),
    }
}

/// Whether an address is public: outside private networks (RFC 3330), or global unicast in IPv6
/// (RFC 4291).
fn is_of_internet(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let is_local = |address: Ipv4Addr| {
                address.is_private() || address.is_loopback() || address.is_link_local()
            };
            !is_local(address)
        }
        IpAddr::V6(address) => is_global_unicast(address),
    }
}

fn is_global_unicast(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xe000 == 0x2000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(network: &str, is_internal: bool) -> Proxy {
        let network = conf::values::Subnet::parse(network.as_bytes()).unwrap();
        Proxy { network, is_internal }
    }

    fn follow(value: &str, proxies: &[Proxy]) -> (Option<String>, Option<String>, String) {
        let sender = IpAddr::from([127, 0, 0, 1]);
        let outcome = Chain::new(value.as_bytes(), sender, proxies).follow(&[]).unwrap();
        let rest = outcome.remaining.map(|rest| String::from_utf8(rest).unwrap());
        (outcome.client.map(|client| client.to_string()), rest, outcome.proxies)
    }

    fn is(
        client: &str,
        rest: Option<&str>,
        proxies: &str,
    ) -> (Option<String>, Option<String>, String) {
        let client = Some(client.to_owned()).filter(|client| !client.is_empty());
        (client, rest.map(str::to_owned), proxies.to_owned())
    }

    #[test]
    fn without_a_list_every_proxy_is_believed() {
        assert_eq!(follow("8.8.8.8", &[]), is("8.8.8.8", None, "127.0.0.1"));
        assert_eq!(follow("8.8.8.8, 9.9.9.9", &[]), is("8.8.8.8", None, "127.0.0.1, 9.9.9.9"));
        let private = follow("10.0.0.1  , 8.8.8.8", &[]);
        assert_eq!(private, is("8.8.8.8", Some("10.0.0.1"), "127.0.0.1"));
        assert_eq!(follow("8.8.8.8, 10.0.0.1", &[]).0, None);
        let gap = follow("8.8.8.8, ,9.9.9.9", &[]);
        assert_eq!(gap, is("9.9.9.9", Some("8.8.8.8, "), "127.0.0.1"));
        assert_eq!(follow(",8.8.8.8", &[]), is("8.8.8.8", Some(""), "127.0.0.1"));
        assert_eq!(follow("::ffff:8.8.8.8", &[]), is("8.8.8.8", None, "127.0.0.1"));
        assert_eq!(follow("fe80::1", &[]).0, None);
    }

    #[test]
    fn only_proxies_of_a_list_are_believed() {
        let proxies = [proxy("9.9.9.0/24", false), proxy("127.0.0.1", true)];
        let of = |value: &str| follow(value, &proxies);
        assert_eq!(of("1.1.1.1, 8.8.8.8"), is("8.8.8.8", Some("1.1.1.1"), ""));
        assert_eq!(of("1.1.1.1, 8.8.8.8, 9.9.9.9"), is("8.8.8.8", Some("1.1.1.1"), "9.9.9.9"));
        assert_eq!(of("10.0.0.1"), is("10.0.0.1", None, ""));
        assert_eq!(of("10.0.0.1, 9.9.9.9"), is("9.9.9.9", Some("10.0.0.1"), ""));
        assert_eq!(follow("8.8.8.8", &[proxy("10.0.0.0/8", true)]).0, None);
    }

    #[test]
    fn nothing_behind_a_trusted_proxy_is_internal() {
        let proxies = [proxy("127.0.0.1", false), proxy("9.9.9.9", true)];
        let outcome = follow("10.0.0.1, 9.9.9.9", &proxies);
        assert_eq!(outcome, is("9.9.9.9", Some("10.0.0.1"), "127.0.0.1"));
    }

    #[test]
    fn a_name_is_looked_up_when_it_counts() {
        let sender = IpAddr::from([127, 0, 0, 1]);
        let chain = Chain::new(b"one, two", sender, &[]);
        assert_eq!(chain.follow(&[]), Err(b"two".to_vec()));
        let two = Looked { name: b"two".to_vec(), address: Some(IpAddr::from([8, 8, 8, 8])) };
        assert_eq!(chain.follow(std::slice::from_ref(&two)), Err(b"one".to_vec()));
        let one = Looked { name: b"one".to_vec(), address: None };
        let outcome = chain.follow(&[two, one]).unwrap();
        assert_eq!(outcome.client, Some(IpAddr::from([8, 8, 8, 8])));
        assert_eq!(outcome.refused.map(|refused| refused.is_private), Some(false));
    }
}
