//! The PROXY protocol, versions 1 and 2: what a proxy sends before the first byte of a connection
//! to name its client.
//!
//! Specification: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>. Malformed headers
//! are treated as in Apache, except for addresses that it would look up as names.

mod v1;
mod v2;

use std::net::SocketAddr;

/// The number of bytes that distinguish the versions (`MIN_HDR_LEN`).
const FIRST_BYTES: usize = 15;

/// The longest header, bytes (`sizeof(proxy_v2)`).
pub const HEADER_BYTES_MAX: usize = 232;

/// The progress of decoding a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All bytes belong to a header, and more are needed.
    NeedMore,
    /// The header is complete.
    Done {
        /// Its length in bytes.
        consumed: usize,
        /// The client; `None` if it is the connection's own.
        client: Option<SocketAddr>,
    },
    /// The bytes are not a header: the connection has to be closed.
    Refused(Refusal),
}

/// Why a header is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Apache's number of the message; 0 if it logs none.
    pub log_number: u32,
    /// The message.
    pub message: String,
    /// Whether the address is of another family than the header names.
    pub is_of_other_family: bool,
}

impl Refusal {
    fn refuse(log_number: u32, message: impl Into<String>) -> Progress {
        Progress::Refused(Refusal { log_number, message: message.into(), ..Refusal::default() })
    }
}

/// Decodes the header at the beginning of `input`, the bytes of a connection so far
/// (`remoteip_input_filter`). Bytes after the header may have arrived as well.
pub fn decode(input: &[u8]) -> Progress {
    match input.first_chunk::<FIRST_BYTES>() {
        None => Progress::NeedMore,
        Some(first) if v2::begins(first) => v2::decode(input),
        Some(first) if v1::begins(first) => v1::decode(input),
        Some(_) => Progress::Refused(Refusal::default()),
    }
}

#[cfg(test)]
mod tests;
