//! Names of addresses, from the system's resolver.
//!
//! Its calls block, for as long as a name server says nothing. [`ask`] makes them on the blocking
//! pool, so that no loop waits, and few at a time, so that work on files finds threads there.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::blocking::BlockingPool;

/// The longest name (`NI_MAXHOST`), in bytes with the NUL at its end.
const NAME_BYTES: usize = 1025;

/// Look-ups of a process that run at the same time: half of the pool's threads.
const LOOKUPS: usize = 8;

/// How long somebody waits for an answer, in a queue or of a name server: a little more than the
/// resolver itself takes for one server that is silent (resolv.conf(5): 2 attempts of 5 s).
const ANSWER_WAIT: Duration = Duration::from_secs(12);

/// The places for look-ups, of all loops of the process, as the pool is.
static PLACES: Semaphore = Semaphore::const_new(LOOKUPS);

/// Runs a look-up for `address` on the pool; `None` if it takes too long or can't be run. One that
/// nobody waits for any more keeps its place until it ends.
pub async fn ask<T: Send + 'static>(
    pool: &BlockingPool,
    look_up: impl FnOnce(IpAddr) -> T + Send + 'static,
    address: IpAddr,
) -> Option<T> {
    ask_within(ANSWER_WAIT, pool, look_up, address).await
}

async fn ask_within<T: Send + 'static>(
    wait: Duration,
    pool: &BlockingPool,
    look_up: impl FnOnce(IpAddr) -> T + Send + 'static,
    address: IpAddr,
) -> Option<T> {
    let answer = async {
        let place = PLACES.acquire().await.ok()?;
        let job = move || {
            let answer = look_up(address.to_canonical());
            drop(place);
            answer
        };
        pool.run(job).await.ok()
    };
    tokio::time::timeout(wait, answer).await.ok().flatten()
}

/// The name of an address (`getnameinfo`), as the resolver writes it. Blocks.
///
/// # Errors
/// The address has no name, or the resolver fails.
pub fn name_of(address: IpAddr) -> io::Result<Vec<u8>> {
    let address = socket2::SockAddr::from(SocketAddr::new(address, 0));
    let mut name = [0u8; NAME_BYTES];
    #[allow(unsafe_code)]
    // SAFETY: `address` is a socket address of the length given; `name` can hold as many bytes as
    // are announced, and no service is asked for.
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

/// Whether a name has an address (`getaddrinfo`). Blocks.
pub fn has_address(name: &[u8], address: IpAddr) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let address = address.to_canonical();
    (name, 0).to_socket_addrs().is_ok_and(|mut all| all.any(|of| of.ip().to_canonical() == address))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn look_ups_leave_threads_to_others_and_are_given_up() {
        let pool = Arc::new(BlockingPool::default());
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..LOOKUPS + 2 {
            let (pool, held) = (pool.clone(), held.clone());
            let silent = move |_| held.lock().unwrap().recv().is_ok();
            let address = IpAddr::from([192, 0, 2, 1]);
            asked.spawn(async move {
                ask_within(Duration::from_millis(20), &pool, silent, address).await
            });
        }
        while let Some(answer) = asked.join_next().await {
            assert_eq!(answer.unwrap(), None);
        }
        assert!(pool.load().0 <= LOOKUPS);
        assert_eq!(pool.run(|| 1).await, Ok(1));
        drop(release);
        // Where the machine stands still for as long as one of them waits, the next is answered.
        let address = IpAddr::from([127, 0, 0, 1]);
        for _ in 0..4 {
            if ask(&pool, |address| address, address).await == Some(address) {
                return;
            }
        }
        assert_eq!(ask(&pool, |address| address, address).await, Some(address));
    }

    #[test]
    fn loopback_has_a_name_that_has_the_address() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let name = name_of(address).unwrap();
        assert!(has_address(&name, address), "{name:?}");
        assert!(!has_address(&name, IpAddr::from([192, 0, 2, 1])));
        assert!(!has_address(b"\xff", address));
    }
}
