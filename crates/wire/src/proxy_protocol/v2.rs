//! Version 2: binary.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{FIRST_BYTES, HEADER_BYTES_MAX, Progress, Refusal};

/// The bytes of every header (`v2sig`).
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The bytes before the addresses.
const FIXED_BYTES: usize = 16;

/// The version, in the upper half of its byte.
const VERSION: u8 = 0x20;

/// Commands, in the lower half of the same byte.
const LOCAL: u8 = 0;
const PROXY: u8 = 1;

/// Families with their protocols.
const TCP_V4: u8 = 0x11;
const TCP_V6: u8 = 0x21;

/// Whether the bytes are the beginning of such a header.
pub(super) fn begins(first: &[u8; FIRST_BYTES]) -> bool {
    first.starts_with(&SIGNATURE) && first.get(12).is_some_and(|byte| byte & 0xf0 == VERSION)
}

/// Source: `remoteip_process_v2_header`.
pub(super) fn decode(input: &[u8]) -> Progress {
    let Some(fixed) = input.first_chunk::<FIXED_BYTES>() else { return Progress::NeedMore };
    let [.., command, family, high, low] = *fixed;
    let consumed = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if consumed > HEADER_BYTES_MAX {
        return Refusal::refuse(10186, "RemoteIPProxyProtocol protocol header length too long");
    }
    let Some(addresses) = input.get(FIXED_BYTES..consumed) else { return Progress::NeedMore };
    match (command & 0xf, family) {
        (LOCAL, _) => Progress::Done { consumed, client: None },
        (PROXY, TCP_V4) => match addresses {
            [a, b, c, d, _, _, _, _, high, low, _, _, ..] => {
                let address = Ipv4Addr::new(*a, *b, *c, *d).into();
                let port = u16::from_be_bytes([*high, *low]);
                Progress::Done { consumed, client: Some(SocketAddr::new(address, port)) }
            }
            _ => too_short(10597, addresses.len(), "TCPv4"),
        },
        (PROXY, TCP_V6) => match (addresses.first_chunk::<16>(), addresses.get(32..36)) {
            (Some(address), Some([high, low, ..])) => {
                let address = IpAddr::V6(Ipv6Addr::from(*address)).to_canonical();
                let port = u16::from_be_bytes([*high, *low]);
                Progress::Done { consumed, client: Some(SocketAddr::new(address, port)) }
            }
            _ => too_short(10598, addresses.len(), "TCPv6"),
        },
        (PROXY, _) => refused(10183, "protocol", family),
        _ => refused(3507, "command", command),
    }
}

fn refused(log_number: u32, what: &str, byte: u8) -> Progress {
    Refusal::refuse(log_number, format!("RemoteIPProxyProtocol: unsupported {what} {byte:02x}"))
}

fn too_short(log_number: u32, length: usize, what: &str) -> Progress {
    let message = format!("RemoteIPProxyProtocol: address length {length} too short for {what}");
    Refusal::refuse(log_number, message)
}
