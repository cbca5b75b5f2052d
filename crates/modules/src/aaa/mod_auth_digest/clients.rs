//! What all processes know of clients whose requests are counted, in a ring: a new client takes the
//! place of the oldest.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use server::host::Server;

use super::{AuthDigest, ServerConfig, nonce};

/// The words of a client: its number, how far its newest nonce has been counted, and the last nonce
/// for one request that it has used.
const WORDS: usize = 3;
/// Bytes of a client.
pub(super) const CLIENT_BYTES: usize = WORDS * 8;
/// The default of `AuthDigestShmemSize`, bytes. Apache's 1,000 are for a dozen clients.
const MEMORY_BYTES: usize = 64 * 1024;
/// The most memory, bytes.
const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The words in front of the clients: the number of the last client, and of the last nonce for one
/// request; when the memory was made.
const HEAD: usize = 3;

static RING: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// Makes the memory before the fork.
pub(super) fn share(server: &Server, shared: &mpm::Shared) -> Result<(), String> {
    let Some(slot) = server.registry.slot_of::<AuthDigest>() else { return Ok(()) };
    if !nonce::prepare() {
        return Err("mod_auth_digest: the system has no random bytes".to_owned());
    }
    let config = server.main().server.get::<ServerConfig>(slot);
    let bytes = config.map_or(MEMORY_BYTES, |config| config.memory_bytes.or(MEMORY_BYTES));
    let count = HEAD + bytes.min(MEMORY_BYTES_MAX) / 8 / WORDS * WORDS;
    let words = shared.words("auth_digest", count);
    let words = words.map_err(|error| format!("mod_auth_digest: no shared memory: {error}"))?;
    if RING.set(words).is_ok()
        && let Some(made) = words.get(2)
    {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        made.store(u64::try_from(since.as_micros()).unwrap_or(0), Ordering::Relaxed);
    }
    Ok(())
}

fn ring() -> &'static [AtomicU64] {
    RING.get().copied().unwrap_or_default()
}

fn next(at: usize) -> Option<u64> {
    Some(ring().get(at)?.fetch_add(1, Ordering::Relaxed) + 1)
}

/// A number for a nonce that counts for one request.
pub(super) fn next_once() -> Option<u64> {
    next(1)
}

/// A client of which something is known.
#[derive(Clone, Copy)]
pub(super) struct Client {
    /// Its number.
    pub number: u64,
    /// The newest nonce, and how far it has been counted: [`packed`].
    state: &'static AtomicU64,
    /// The number of the newest nonce for one request that was used.
    used: &'static AtomicU64,
}

/// The words of a client's place.
fn place(number: u64) -> Option<(&'static AtomicU64, Client)> {
    let clients = ring().get(HEAD..)?;
    let count = u64::try_from(clients.len() / WORDS).ok().filter(|count| *count > 0)?;
    let at = usize::try_from(number % count).ok()? * WORDS;
    let (state, used) = (clients.get(at + 1)?, clients.get(at + 2)?);
    Some((clients.get(at)?, Client { number, state, used }))
}

impl Client {
    /// A new client.
    pub fn new() -> Option<Client> {
        let number = next(0)?;
        let (owner, client) = place(number)?;
        client.state.store(0, Ordering::Relaxed);
        client.used.store(0, Ordering::Relaxed);
        owner.store(number, Ordering::Release);
        Some(client)
    }

    /// A client that is still known.
    pub fn find(number: u64) -> Option<Client> {
        let (owner, client) = place(number)?;
        let is_it = number != 0 && owner.load(Ordering::Acquire) == number;
        is_it.then_some(client)
    }

    /// Uses up a nonce that counts for one request, and all before it; returns whether it was still
    /// to be used.
    pub fn use_once(&self, nonce: u64) -> bool {
        let last = ring().get(1).map_or(0, |last| last.load(Ordering::Relaxed));
        nonce <= last && self.used.fetch_max(nonce, Ordering::Relaxed) < nonce
    }

    /// Counts a request with a nonce.
    pub fn count(&self, nonce: u64, count: u64) -> Counted {
        let new = packed(nonce, count);
        let before = self.state.fetch_max(new, Ordering::Relaxed);
        let is_of_this = before >> COUNT_BITS == new >> COUNT_BITS;
        match before & COUNT_MAX {
            COUNT_MAX if is_of_this => Counted::TooOften,
            // Or there is a newer nonce.
            highest if before >= new => Counted::NotAbove(highest),
            _ => Counted::Higher,
        }
    }
}

/// How a request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Higher than those before.
    Higher,
    /// Not above this one: a replay.
    NotAbove(u64),
    /// The nonce can't be counted any further.
    TooOften,
}

/// The highest count of requests with a nonce.
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const COUNT_BITS: u32 = 20;
/// The resolution of a nonce's time, shorter than any round trip. The bits beside the count last
/// for eight years.
const SLICE_US: u64 = 16;

/// A nonce's time in slices since the memory was made, followed by a count of requests.
fn packed(nonce_us: u64, count: u64) -> u64 {
    let made_us = ring().get(2).map_or(0, |made| made.load(Ordering::Relaxed));
    (nonce_us.saturating_sub(made_us) / SLICE_US) << COUNT_BITS | count.min(COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_and_forgotten() {
        let words: Vec<AtomicU64> = (0..HEAD + 2 * WORDS).map(|_| AtomicU64::new(0)).collect();
        RING.set(words.leak()).unwrap();
        let one = Client::new().unwrap();
        assert_eq!(one.count(10_000_000, 1), Counted::Higher);
        assert_eq!(one.count(10_000_000, 1), Counted::NotAbove(1));
        assert_eq!(one.count(10_000_000, 3), Counted::Higher);
        assert_eq!(one.count(10_000_000, 2), Counted::NotAbove(3));
        assert_eq!(one.count(11_000_000, 1), Counted::Higher);
        assert_eq!(one.count(10_000_000, 9), Counted::NotAbove(1));
        assert_eq!(one.count(11_000_100, 1), Counted::Higher);
        assert_eq!(one.count(11_000_100, u64::MAX), Counted::Higher);
        assert_eq!(one.count(11_000_100, u64::MAX), Counted::TooOften);
        let two = Client::new().unwrap();
        assert!(!two.use_once(1));
        let last = std::iter::repeat_with(next_once).take(9).last().flatten();
        assert_eq!(last, Some(9));
        assert!(two.use_once(5) && !two.use_once(4) && !two.use_once(5) && !two.use_once(0));
        assert!(two.use_once(9) && !two.use_once(7) && !two.use_once(10));
        assert!(Client::find(one.number).is_some());
        let three = Client::new().unwrap();
        assert!(Client::find(one.number).is_none() && Client::find(three.number).is_some());
        assert!(Client::find(0).is_none() && Client::find(99).is_none());
    }
}
