//! Ports for servers under test, for the tests of this crate and of the program.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// A port that nobody uses. Not one of those that the kernel gives away (from 32768 on, where
/// nobody has changed that): some client's end of a connection could have it before the server.
pub fn free_port() -> u16 {
    const FIRST: usize = 10_240;
    const COUNT: usize = 22_000;
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    // Where test programs run side by side each begins elsewhere.
    let start = std::process::id() as usize * 97;
    let next = || FIRST + (start + TAKEN.fetch_add(1, Ordering::Relaxed)) % COUNT;
    let mut ports = (0..COUNT).filter_map(|_| u16::try_from(next()).ok());
    ports.find(|port| is_free(*port)).unwrap()
}

/// Whether a server could bind the port. The socket that finds out never listens: a program that
/// another test starts meanwhile holds a copy of it until it is executed, and a copy that listened
/// would keep the server from its port.
fn is_free(port: u16) -> bool {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).is_ok()
}
