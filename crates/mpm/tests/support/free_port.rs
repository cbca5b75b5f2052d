//! Ports for servers under test, for the tests of this crate and of the program.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    ports.find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok()).unwrap()
}
