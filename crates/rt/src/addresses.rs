//! Addresses of names, kept for a time; and connections to the first one that accepts.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::blocking::{PoolError, Work};
use crate::names::{self, Unresolved};
use crate::reactor::Handle;
use crate::stream::{ConnectOptions, Remote, Stream};

/// The most names kept; beyond that all are forgotten.
pub const NAMES_MAX: usize = 1024;
/// The most addresses of a name that are tried.
pub const ADDRESSES_MAX: usize = 32;
/// How long a failure is kept: requests that wait for the same name don't ask one after the other.
const FAILURE_KEPT: Duration = Duration::from_secs(1);

/// Finds the addresses of a name; may block.
pub type Resolver = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name has no address, or the resolver fails.
    #[error("the name has no address")]
    Unknown(Unresolved),
    /// The look-up could not be made.
    #[error("{0}")]
    Pool(#[from] PoolError),
    /// None of the addresses accepts; the error of the last one.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The addresses of names, for the loops of a process. The lock is held for a look-up in memory.
pub struct Addresses {
    resolver: Arc<Resolver>,
    names: Mutex<HashMap<Box<str>, Name>>,
}

#[derive(Default)]
struct Name {
    /// Held by the one that asks; the others wait for its result.
    asking: Arc<tokio::sync::Mutex<()>>,
    known: Option<Known>,
}

struct Known {
    addresses: Result<Arc<[IpAddr]>, Unresolved>,
    /// Without, they are kept for as long as the process lives.
    until: Option<Instant>,
}

/// The addresses of one name.
struct Found {
    addresses: Arc<[IpAddr]>,
    /// Looked up by this call.
    is_fresh: bool,
}

impl Default for Addresses {
    /// Asks the system's resolver.
    fn default() -> Self {
        Self::of_resolver(Arc::new(names::addresses_of))
    }
}

impl Addresses {
    /// Asks `resolver`, on the blocking pool of the asking loop.
    pub fn of_resolver(resolver: Arc<Resolver>) -> Self {
        Self { resolver, names: Mutex::default() }
    }

    /// Connects to the first address of `name` that accepts, in the resolver's order; each has
    /// `timeout`. If none accepts, the name is looked up once more, and new addresses are tried.
    ///
    /// Addresses are kept for `ttl`, or without one until the process ends.
    pub async fn connect(
        &self,
        (name, port): (&str, u16),
        ttl: Option<Duration>,
        options: &ConnectOptions,
        timeout: Duration,
    ) -> Result<Stream, ConnectError> {
        let handle = Handle::current().ok_or(io::Error::from(io::ErrorKind::NotConnected))?;
        if let Ok(address) = name.parse() {
            return Ok(connect_first(&handle, &[address], port, options, timeout).await?);
        }
        let found = self.find(&handle, name, ttl).await?;
        let outcome = connect_first(&handle, &found.addresses, port, options, timeout).await;
        let error = match outcome {
            Err(error) if !found.is_fresh => error,
            other => return Ok(other?),
        };
        self.forget(name, &found.addresses);
        let again = self.find(&handle, name, ttl).await?;
        if again.addresses == found.addresses {
            return Err(error.into());
        }
        Ok(connect_first(&handle, &again.addresses, port, options, timeout).await?)
    }

    /// The addresses of `name`, which may be one itself; kept as by [`Addresses::connect`].
    ///
    /// # Errors
    /// Those of the resolver.
    pub async fn look_up(
        &self,
        name: &str,
        ttl: Option<Duration>,
    ) -> Result<Arc<[IpAddr]>, ConnectError> {
        if let Ok(address) = name.parse::<IpAddr>() {
            return Ok(Arc::from([address]));
        }
        let handle = Handle::current().ok_or(io::Error::from(io::ErrorKind::NotConnected))?;
        Ok(self.find(&handle, name, ttl).await?.addresses)
    }

    /// The number of names that are kept.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    async fn find(
        &self,
        handle: &Handle,
        name: &str,
        ttl: Option<Duration>,
    ) -> Result<Found, ConnectError> {
        let asking = match self.known(name)? {
            Ok(addresses) => return Ok(Found { addresses, is_fresh: false }),
            Err(asking) => asking,
        };
        let _asking = asking.lock().await;
        if let Ok(addresses) = self.known(name)? {
            return Ok(Found { addresses, is_fresh: true });
        }
        let (resolver, asked) = (self.resolver.clone(), name.to_owned());
        let answer = handle.blocking().run(Work::Name, move || resolver(&asked)).await?;
        let addresses: Result<Arc<[IpAddr]>, Unresolved> = match answer {
            Ok(all) if all.is_empty() => Err(Unresolved::NoAddress),
            Ok(mut all) => {
                all.truncate(ADDRESSES_MAX);
                Ok(Arc::from(all))
            }
            Err(error) => Err(Unresolved::of(&error)),
        };
        let kept = if addresses.is_ok() { ttl } else { Some(FAILURE_KEPT) };
        let until = kept.and_then(|kept| Instant::now().checked_add(kept));
        self.keep(name, Known { addresses: addresses.clone(), until });
        let addresses = addresses.map_err(ConnectError::Unknown)?;
        Ok(Found { addresses, is_fresh: true })
    }

    /// What is known of a name; if nothing, the lock to hold while asking.
    #[allow(clippy::type_complexity)]
    fn known(
        &self,
        name: &str,
    ) -> Result<Result<Arc<[IpAddr]>, Arc<tokio::sync::Mutex<()>>>, ConnectError> {
        let mut names = self.lock();
        let Some(entry) = names.get(name) else {
            make_room(&mut names);
            return Ok(Err(names.entry(name.into()).or_default().asking.clone()));
        };
        match &entry.known {
            Some(known) if known.is_current() => {
                known.addresses.clone().map(Ok).map_err(ConnectError::Unknown)
            }
            _ => Ok(Err(entry.asking.clone())),
        }
    }

    fn keep(&self, name: &str, known: Known) {
        let mut names = self.lock();
        if !names.contains_key(name) {
            make_room(&mut names);
        }
        names.entry(name.into()).or_default().known = Some(known);
    }

    /// Forgets `addresses`, unless others have been found since.
    fn forget(&self, name: &str, addresses: &Arc<[IpAddr]>) {
        if let Some(entry) = self.lock().get_mut(name) {
            let is_same = |known: &Known| {
                known.addresses.as_ref().is_ok_and(|all| Arc::ptr_eq(all, addresses))
            };
            entry.known = entry.known.take().filter(|known| !is_same(known));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Name>> {
        // Nothing panics under the lock.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_current(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

fn make_room(names: &mut HashMap<Box<str>, Name>) {
    if names.len() >= NAMES_MAX {
        names.retain(|_, name| name.known.as_ref().is_some_and(Known::is_current));
    }
    if names.len() >= NAMES_MAX {
        names.clear();
    }
}

/// Connects to the first address that accepts; the error of the last one.
async fn connect_first(
    handle: &Handle,
    addresses: &[IpAddr],
    port: u16,
    options: &ConnectOptions,
    timeout: Duration,
) -> io::Result<Stream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        let remote = Remote::Tcp(SocketAddr::new(*address, port));
        match Stream::connect(&remote, options, handle.deadline(timeout)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests;
