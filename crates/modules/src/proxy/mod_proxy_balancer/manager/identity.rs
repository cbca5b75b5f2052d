//! What Apache calls the shared memory of a host's balancers. Source: `make_server_id`,
//! `ap_proxy_hashfunc`, `ap_pstr2_alnum`.

use std::fmt::Write;

use md5::{Digest, Md5};
use server::request::Request;

/// The host's part of the name.
pub(super) fn of(request: &Request) -> String {
    let mut digest = Md5::new();
    match request.host.addresses.first() {
        // The main server: no address, any address, port 0.
        None => {
            digest.update(b"0.0.0.0");
            digest.update(0u16.to_ne_bytes());
        }
        Some(address) => {
            let text = &address.text;
            let port = text.iter().rposition(|byte| *byte == b':');
            let (name, port) = text.split_at(port.unwrap_or(text.len()));
            digest.update(name);
            digest.update(name);
            let port = std::str::from_utf8(port.get(1..).unwrap_or_default()).ok();
            let port: u16 = port.and_then(|port| port.parse().ok()).unwrap_or(0);
            digest.update(port.to_ne_bytes());
        }
    }
    digest.update(request.host.name());
    let mut text = String::new();
    for byte in digest.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    format!("p{:x}", hash(text.as_bytes()))
}

/// SDBM's hash.
fn hash(text: &[u8]) -> u32 {
    text.iter().fold(0u32, |hash, byte| {
        let shifted = (hash << 6).wrapping_add(hash << 16);
        u32::from(*byte).wrapping_add(shifted).wrapping_sub(hash)
    })
}

/// The name for a balancer.
pub(super) fn of_balancer(host: &str, name: &[u8]) -> String {
    let plain = |byte: &u8| if byte.is_ascii_alphanumeric() { char::from(*byte) } else { '_' };
    let name: String = name.iter().map(plain).collect();
    format!("{host}_{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_letters_and_digits() {
        assert_eq!(of_balancer("p1", b"my-b.2"), "p1_my_b_2");
        assert_eq!((hash(b""), hash(b"a")), (0, 97));
    }
}
