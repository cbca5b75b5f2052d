//! Ports for servers under test, shared by the tests of this crate and of the program.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// An unused port. Not from the ephemeral range (from 32768 by default): the local end of some
/// client's connection could take it before the server does.
pub fn free_port() -> u16 {
    const FIRST: usize = 10_240;
    const COUNT: usize = 22_000;
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    // Concurrent test programs each start at a different port.
    let start = std::process::id() as usize * 97;
    let next = || FIRST + (start + TAKEN.fetch_add(1, Ordering::Relaxed)) % COUNT;
    let mut ports = (0..COUNT).filter_map(|_| u16::try_from(next()).ok());
    ports.find(|port| is_free(*port)).unwrap()
}

/// Whether a server could bind the port. The probing socket never listens: a program that another
/// test starts meanwhile holds a copy of it until it executes, and a listening copy would block the
/// port.
fn is_free(port: u16) -> bool {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).is_ok()
}
