//! AJP 1.3 as the web server speaks it: a request and its body are written as packets, the packets
//! of the response are decoded as bytes arrive.
//!
//! A packet to the container begins with 0x1234, one from it with `AB`; then a length of 2 bytes
//! and the content, whose first byte is its kind. Numbers have the high byte first. A string is a
//! length of 2 bytes, the bytes, and NUL; the length 0xFFFF means none. Usual names are codes.
//!
//! Specification: <https://tomcat.apache.org/connectors-doc/ajp/ajpv13a.html>. Source: ajp_msg.c,
//! ajp_header.c, ajp_link.c and mod_proxy_ajp.c. `recorded.txt` has Apache's answers.

mod codes;
mod decode;
mod encode;
mod fault;
mod overflow;
#[cfg(test)]
mod tests;

pub use decode::{AjpEvent, PacketDecoder, SendHeaders};
pub use encode::{CPING, END_OF_BODY, ForwardRequest, Ssl, body_header};
pub use fault::{AjpFault, Cut, LogLine, NoText};
pub use overflow::AjpOverflow;

/// Largest packet unless `ProxyIOBufferSize` says otherwise, bytes (`AJP_MSG_BUFFER_SZ`).
pub const PACKET_BYTES: usize = 8192;

/// Largest packet that can be configured, bytes (`AJP_MAX_BUFFER_SZ`).
pub const PACKET_BYTES_MAX: usize = 65_536;

/// Length of a packet's header, bytes.
pub const HEADER_BYTES: usize = 4;

/// What of a packet is not body, in those that carry it to the container, bytes.
pub const BODY_HEADER_BYTES: usize = 6;
