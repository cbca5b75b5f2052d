//! What servers have said, in memory that all processes share.
//!
//! Source: `hm_slotmem_update_stat`, `hm_slotmem_remove_stat`.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use mpm::shared::SeqBytes;
use server::host::Server;

use super::message::Heartbeat;
use super::settings;

/// The words of a server: a text of up to 112 bytes.
const WORDS: usize = 16;
/// The most servers.
const SERVERS_MAX: usize = 65_536;

/// The servers' words behind that of the listener's lease; unset before the server runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(Arc<OnceLock<&'static [AtomicU64]>>);

/// Makes the memory before the fork.
pub(super) fn share(server: &Server, shared: &mpm::Shared) -> Result<(), String> {
    let Some(settings) = settings(server) else { return Ok(()) };
    let words = shared.words("heartmonitor", 1 + settings.count().min(SERVERS_MAX) * WORDS);
    let words = words.map_err(|error| format!("mod_heartmonitor: no shared memory: {error}"))?;
    let _ = settings.slots.0.0.set(words);
    Ok(())
}

impl Slots {
    /// The word of the listener's lease.
    pub fn lease(&self) -> Option<&'static AtomicU64> {
        self.0.get()?.first()
    }

    /// Whether servers are kept here instead of in a file.
    pub fn is_used(&self) -> bool {
        self.cells().next().is_some()
    }

    fn cells(&self) -> impl Iterator<Item = SeqBytes<'static>> {
        let words = self.0.get().and_then(|words| words.get(1..)).unwrap_or_default();
        words.chunks_exact(WORDS).map(SeqBytes::new)
    }

    /// All servers.
    pub fn all(&self) -> impl Iterator<Item = Heartbeat> {
        self.cells().filter_map(|cell| parse(&cell.read()?))
    }

    /// Keeps what a server has said, if there is room. Another process that writes the same cell at
    /// the same time wins: the next heartbeat is a second away.
    pub fn put(&self, server: &Heartbeat) {
        let of = |cell: &SeqBytes<'_>| cell.read().and_then(|text| parse(&text));
        let is_same = |cell: &SeqBytes<'_>| of(cell).is_some_and(|other| other.ip == server.ip);
        let is_free = |cell: &SeqBytes<'_>| cell.read().is_some_and(|text| text.is_empty());
        if let Some(cell) = self.cells().find(is_same).or_else(|| self.cells().find(is_free)) {
            cell.write(&text(server));
        }
    }

    /// Forgets a server.
    pub fn remove(&self, ip: &[u8]) {
        let is_it = |text: Vec<u8>| parse(&text).is_some_and(|other| other.ip == ip);
        for cell in self.cells().filter(|cell| cell.read().is_some_and(is_it)) {
            cell.write(b"");
        }
    }
}

fn text(server: &Heartbeat) -> Vec<u8> {
    let Heartbeat { ip, ready, busy, port, seen_s } = server;
    [&ip[..], format!(" {ready} {busy} {port} {seen_s}").as_bytes()].concat()
}

fn parse(text: &[u8]) -> Option<Heartbeat> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ');
    Some(Heartbeat {
        ip: words.next().filter(|ip| !ip.is_empty())?.into(),
        ready: words.next()?.parse().ok()?,
        busy: words.next()?.parse().ok()?,
        port: words.next()?.parse().ok()?,
        seen_s: words.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_cell_each() {
        let words: Vec<AtomicU64> = (0..1 + 2 * WORDS).map(|_| AtomicU64::new(0)).collect();
        let slots = Slots::default();
        assert!(!slots.is_used());
        slots.0.set(words.leak()).unwrap();
        let server = |ip: &str, ready| {
            let ip = ip.as_bytes().to_vec();
            Heartbeat { ip, ready, busy: -1, port: 80, seen_s: 7 }
        };
        let all = || slots.all().map(|one| (one.ip, one.ready)).collect::<Vec<_>>();
        for one in [server("10.0.0.1", 1), server("10.0.0.2", 2), server("10.0.0.3", 3)] {
            slots.put(&one);
        }
        slots.put(&server("10.0.0.1", 4));
        assert_eq!(all(), [(b"10.0.0.1".to_vec(), 4), (b"10.0.0.2".to_vec(), 2)]);
        slots.remove(b"10.0.0.1");
        slots.put(&server("10.0.0.3", 3));
        assert_eq!(all(), [(b"10.0.0.3".to_vec(), 3), (b"10.0.0.2".to_vec(), 2)]);
        assert_eq!(slots.all().next(), Some(server("10.0.0.3", 3)));
    }
}
