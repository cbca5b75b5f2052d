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
pub fn name_of(address: IpAddr) -> Result<Vec<u8>, Unresolved> {
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
        return Err(Unresolved::of_code(failed));
    }
    let name = CStr::from_bytes_until_nul(&name).map_err(|_| Unresolved::Failed)?;
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

/// Why a name has no address (`EAI_…`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unresolved {
    /// There is no such name.
    #[default]
    NoName,
    /// The name server does not respond.
    TryAgain,
    /// The name server has failed.
    Failed,
    /// The name has no address.
    NoAddress,
}

impl Unresolved {
    /// The reason in an error of [`addresses_of`].
    pub fn of(error: &io::Error) -> Unresolved {
        // The standard library keeps the resolver's text alone.
        let text = error.to_string();
        let said = |why: &Unresolved| text.ends_with(why.text());
        [Unresolved::TryAgain, Unresolved::Failed, Unresolved::NoAddress]
            .into_iter()
            .find(said)
            .unwrap_or_default()
    }

    fn of_code(code: libc::c_int) -> Unresolved {
        match code {
            libc::EAI_AGAIN => Unresolved::TryAgain,
            libc::EAI_FAIL => Unresolved::Failed,
            _ => Unresolved::NoName,
        }
    }

    /// The resolver's number, without its sign.
    pub const fn number(self) -> u32 {
        match self {
            Unresolved::NoName => 2,
            Unresolved::TryAgain => 3,
            Unresolved::Failed => 4,
            Unresolved::NoAddress => 5,
        }
    }

    /// The resolver's text (`gai_strerror`).
    pub const fn text(self) -> &'static str {
        match self {
            Unresolved::NoName => "Name or service not known",
            Unresolved::TryAgain => "Temporary failure in name resolution",
            Unresolved::Failed => "Non-recoverable failure in name resolution",
            Unresolved::NoAddress => "No address associated with hostname",
        }
    }
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
