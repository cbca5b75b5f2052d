//! Proxies that are trusted: networks, names, and files of them.

use std::net::{IpAddr, ToSocketAddrs};

use bstr::BStr;
use conf::values::{Subnet, SubnetError};

use crate::aaa::line::{self, NumberedLines};

/// A network of proxies.
#[derive(Clone)]
pub(super) struct Proxy {
    pub network: Subnet,
    /// Whether private addresses that they report count, too.
    pub is_internal: bool,
}

/// The maximum size of a list, in bytes.
const LIST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The maximum length of a line in bytes (`MAX_STRING_LEN`); reading ends at a longer one.
const LINE_BYTES_MAX: usize = 8191;

/// The proxies that a word stands for: a network, or all addresses of a name (`proxies_set`).
///
/// # Errors
/// Apache's message.
pub(super) fn parse(word: &[u8], is_internal: bool, directive: &str) -> Result<Vec<Proxy>, String> {
    let shown = BStr::new(word);
    let failed =
        |why: &str| format!("RemoteIP: Error parsing IP {shown} ({why} error) for {directive}");
    let (host, mask) = match word.iter().position(|byte| *byte == b'/') {
        Some(slash) => (word.get(..slash).unwrap_or_default(), word.get(slash + 1..)),
        None => (word, None),
    };
    let looks_like_ip =
        host.contains(&b':') || host.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    if looks_like_ip {
        if host.is_empty() {
            return Err(failed("Invalid argument"));
        }
        let network = Subnet::parse(word).map_err(|why| match why {
            SubnetError::Address => failed("The specified IP address is invalid."),
            SubnetError::Mask => failed("The specified network mask is invalid."),
        })?;
        return Ok(vec![Proxy { network, is_internal }]);
    }
    if let Some(mask) = mask {
        let mask = BStr::new(mask);
        return Err(format!(
            "RemoteIP: Error parsing IP {shown} the subnet /{mask} is invalid for {directive}"
        ));
    }
    let addresses = addresses(host).ok_or_else(|| failed("Name or service not known"))?;
    let networks =
        addresses.iter().filter_map(|address| Subnet::parse(address.to_string().as_bytes()).ok());
    Ok(networks.map(|network| Proxy { network, is_internal }).collect())
}

/// All addresses of a name: those of IPv4, or else of IPv6.
fn addresses(name: &[u8]) -> Option<Vec<IpAddr>> {
    let found = (std::str::from_utf8(name).ok()?, 0).to_socket_addrs().ok()?;
    let mut all: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    if all.iter().any(IpAddr::is_ipv4) {
        all.retain(IpAddr::is_ipv4);
    }
    all.dedup();
    (!all.is_empty()).then_some(all)
}

/// The proxies of a file (`proxylist_read`). The words of a line end at one that begins with `#`.
///
/// # Errors
/// Apache's message.
pub(super) fn read(
    file: &std::path::Path,
    is_internal: bool,
    directive: &str,
) -> Result<Vec<Proxy>, String> {
    let path = file.display();
    let text = regular::read(file, LIST_BYTES_MAX).map_err(|why| {
        let why = why.to_string();
        let why = why.split(" (os error").next().unwrap_or_default();
        format!("{directive}: Could not open file {path}: {why}")
    })?;
    let mut proxies = Vec::new();
    for (number, line) in NumberedLines::new(&text, LINE_BYTES_MAX) {
        for word in line::words(&line).take_while(|word| !word.starts_with(b"#")) {
            let found = parse(&word, is_internal, directive);
            proxies.extend(found.map_err(|why| format!("{why} at line {number} of {path}"))?);
        }
    }
    Ok(proxies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_network_is_told_in_apaches_words() {
        let why = |word: &str| parse(word.as_bytes(), false, "D").err().unwrap();
        let of = |word: &str, why: &str| {
            format!("RemoteIP: Error parsing IP {word} ({why} error) for D")
        };
        assert_eq!(why("10.1/16"), of("10.1/16", "The specified IP address is invalid."));
        assert_eq!(why("1.1.1.1/"), of("1.1.1.1/", "The specified network mask is invalid."));
        assert_eq!(why("/8"), of("/8", "Invalid argument"));
        assert!(why("a/8").ends_with("the subnet /8 is invalid for D"));
        assert_eq!(parse(b"10.1", true, "D").unwrap().len(), 1);
    }
}
