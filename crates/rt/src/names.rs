//! Host names of addresses, from the system's resolver.
//!
//! The resolver blocks while a name server does not respond. [`ask`] runs it on the blocking pool,
//! so that no loop waits.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::blocking::{BlockingPool, Work};

/// The longest name (`NI_MAXHOST`), in bytes, including the terminating NUL.
const NAME_BYTES: usize = 1025;

/// Runs a look-up for `address` on the pool; `None` if it times out or can't be run. A look-up that
/// timed out occupies its thread until it ends.
pub async fn ask<T: Send + 'static>(
    pool: &BlockingPool,
    look_up: impl FnOnce(IpAddr) -> T + Send + 'static,
    address: IpAddr,
) -> Option<T> {
    pool.run(Work::Name, move || look_up(address.to_canonical())).await.ok()
}

/// The name of an address (`getnameinfo`), as the resolver spells it. Blocks.
///
/// # Errors
/// The address has no name, or the resolver fails.
pub fn name_of(address: IpAddr) -> io::Result<Vec<u8>> {
    let address = socket2::SockAddr::from(SocketAddr::new(address, 0));
    let mut name = [0u8; NAME_BYTES];
    #[allow(unsafe_code)]
    // SAFETY: `address` is a socket address of the given length; `name` holds as many bytes as are
    // announced, and no service is requested.
    let failed = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr().cast(),
            NAME_BYTES as libc::socklen_t,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if failed != 0 {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    let name = CStr::from_bytes_until_nul(&name).map_err(io::Error::other)?;
    Ok(name.to_bytes().to_vec())
}

/// Whether a name resolves to an address (`getaddrinfo`). Blocks.
pub fn has_address(name: &[u8], address: IpAddr) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let address = address.to_canonical();
    (name, 0).to_socket_addrs().is_ok_and(|mut all| all.any(|of| of.ip().to_canonical() == address))
}

/// The first address of a name (`getaddrinfo`), IPv4 if there is one. Blocks.
pub fn address_of(name: &[u8]) -> Option<IpAddr> {
    let all = addresses_of(std::str::from_utf8(name).ok()?).ok()?;
    all.iter().find(|address| address.is_ipv4()).or(all.first()).map(IpAddr::to_canonical)
}

/// All addresses of a name in the resolver's order, each once. Blocks.
///
/// # Errors
/// The name has none, or the resolver fails.
pub fn addresses_of(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut all: Vec<IpAddr> = Vec::new();
    for address in (name, 0).to_socket_addrs()?.map(|of| of.ip()) {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_a_name_that_has_the_address() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let name = name_of(address).unwrap();
        assert!(has_address(&name, address), "{name:?}");
        assert!(!has_address(&name, IpAddr::from([192, 0, 2, 1])));
        assert!(!has_address(b"\xff", address));
    }
}
