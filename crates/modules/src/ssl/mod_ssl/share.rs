//! The state that all children share: the keys of session tickets and the session cache.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::server::{ProducesTickets, StoresServerSessions};
use server::host::Server;
use tls::sessions::SharedSessions;
use tls::tickets::{KeyRing, REGION_WORDS, Ticketer, rotation_seconds};

use super::config;
use super::{Ssl, all_built};

/// The shared memory of the ticket keys and the time of their last rotation.
const TICKETS: &str = "ssl-tickets";
/// The shared memory of the session cache.
const SESSIONS: &str = "ssl-sessions";

/// A value that exists once the shared memory does. Until then sessions are not resumed.
pub struct Late<T>(OnceLock<T>);

impl<T> Default for Late<T> {
    fn default() -> Late<T> {
        Late(OnceLock::new())
    }
}

impl<T> fmt::Debug for Late<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("is_there", &self.0.get().is_some()).finish()
    }
}

/// Sets up the hosts' shared memory before the fork. It outlives a configuration, so that sessions
/// are resumed after a graceful restart.
pub fn share(server: &Server, shared: &mpm::Shared) -> Result<(), String> {
    let mut built = all_built(server).peekable();
    if built.peek().is_none() {
        return Ok(());
    }
    let (ring, _) = keys(shared)?;
    let main = server.registry.slot_of::<Ssl>();
    let main = main.and_then(|slot| server.main().server.get::<config::Server>(slot));
    let cache = main.map(|main| main.session_cache.0.words()).unwrap_or_default();
    let cache = shared.words(SESSIONS, cache).map_err(failed)?;
    for (own, built) in built {
        let seconds = own.session_seconds();
        if let Some(late) = &built.sessions {
            let sessions = SharedSessions::new(cache, built.context, u64::from(seconds));
            let _ = late.0.set(sessions);
        }
        if let Some(late) = &built.tickets {
            let _ = late.0.set(Ticketer::shared(ring, built.context, seconds));
        }
    }
    maintain(server, shared);
    Ok(())
}

/// Rotates the ticket keys when due. The supervisor calls this about once a minute.
pub fn maintain(server: &Server, shared: &mpm::Shared) {
    let longest = all_built(server).map(|(own, _)| own.session_seconds()).max();
    let (Some(longest), Ok((ring, changed))) = (longest, keys(shared)) else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let last = changed.load(Ordering::Relaxed);
    // A clock that was set back must not keep a key forever.
    let is_due = last == 0 || now < last || now - last >= rotation_seconds(u64::from(longest));
    if is_due && ring.rotate() {
        changed.store(now, Ordering::Relaxed);
    }
}

/// The ring of ticket keys, and the time of the last rotation in seconds since 1970.
fn keys(shared: &mpm::Shared) -> Result<(KeyRing, &'static AtomicU64), String> {
    let words = shared.words(TICKETS, REGION_WORDS + 1).map_err(failed)?;
    let ring = KeyRing::new(words).zip(words.last());
    ring.ok_or_else(|| "mod_ssl: no room for ticket keys".to_owned())
}

fn failed(error: std::io::Error) -> String {
    format!("mod_ssl: no shared memory: {error}")
}

impl StoresServerSessions for Late<SharedSessions> {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.0.get().is_some_and(|sessions| sessions.put(key, value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get()?.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get()?.take(key)
    }

    fn can_cache(&self) -> bool {
        self.0.get().is_some_and(SharedSessions::can_cache)
    }
}

impl ProducesTickets for Late<Ticketer> {
    fn enabled(&self) -> bool {
        self.0.get().is_some()
    }

    fn lifetime(&self) -> u32 {
        self.0.get().map(Ticketer::lifetime).unwrap_or_default()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.get()?.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.get()?.decrypt(cipher)
    }
}
