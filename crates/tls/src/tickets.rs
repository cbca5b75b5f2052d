//! Session tickets (RFC 5077, RFC 8446 section 4.6.1). All children share the keys, which are in
//! shared memory: only the supervisor writes and rotates them, and every child reads them.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslsessionticketkeyfile>

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;

use crate::{Finding, certs};

/// The newest key encrypts, all of them decrypt.
pub const KEYS: usize = 3;

/// The shortest time between rotations.
const MIN_ROTATION_SECONDS: u64 = 3600;

/// How often the supervisor should call [`KeyRing::rotate`], so that a ticket of this lifetime can
/// always be decrypted and no key is kept longer than that requires.
pub fn rotation_seconds(lifetime_seconds: u64) -> u64 {
    lifetime_seconds.div_ceil(KEYS as u64 - 1).max(MIN_ROTATION_SECONDS)
}

/// Words of shared memory that a [`KeyRing`] needs.
pub const REGION_WORDS: usize = 1 + KEYS * KEY_WORDS;

/// The exact size of an SSLSessionTicketKeyFile: name, HMAC secret and AES secret, 16 bytes each.
pub const KEY_FILE_BYTES: usize = 48;

const KEY_FILE: &str = "SSLSessionTicketKeyFile";
const KEY_WORDS: usize = 6;
const NAME_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
const TIME_BYTES: usize = 8;
const HEAD_BYTES: usize = NAME_BYTES + NONCE_BYTES + TIME_BYTES;

/// A reader gives up after this many collisions with the writer: a supervisor that died while
/// writing costs tickets, not handshakes.
const READ_TRIES: usize = 10_000;

/// One key: its public name and its secret.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    name: [u8; NAME_BYTES],
    secret: [u8; 32],
}

/// The keys in shared memory, guarded by a sequence lock: word 0 is odd while the supervisor
/// writes.
#[derive(Clone, Copy)]
pub struct KeyRing {
    words: &'static [AtomicU64],
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

impl KeyRing {
    /// The ring in a region of at least [`REGION_WORDS`] words, all zero when new.
    pub fn new(words: &'static [AtomicU64]) -> Option<Self> {
        words.get(..REGION_WORDS).map(|words| Self { words })
    }

    /// Makes a new key the current one and drops the oldest. For the supervisor only, which calls
    /// it before the first fork and periodically after it (tickets live for at most [`KEYS`] - 1
    /// periods). Returns false, without a change, if the system has no random bytes.
    pub fn rotate(&self) -> bool {
        let mut key = Key { name: [0; NAME_BYTES], secret: [0; 32] };
        if rand::fill(&mut key.name).is_err() || rand::fill(&mut key.secret).is_err() {
            return false;
        }
        let mut keys = self.keys();
        keys.insert(0, key);
        self.write(&keys);
        true
    }

    fn write(&self, keys: &[Key]) {
        let Some((sequence, rest)) = self.words.split_first() else { return };
        let before = sequence.load(Ordering::Relaxed) | 1;
        sequence.store(before, Ordering::Relaxed);
        fence(Ordering::Release);
        for (slot, key) in rest.chunks_exact(KEY_WORDS).zip(keys) {
            let bytes = key.name.iter().chain(&key.secret).copied().collect::<Vec<u8>>();
            for (word, bytes) in slot.iter().zip(bytes.chunks_exact(8)) {
                word.store(word_of(bytes), Ordering::Relaxed);
            }
        }
        sequence.store(before.wrapping_add(1), Ordering::Release);
    }

    /// The keys, newest first; none if the ring is empty or its writer died.
    fn keys(&self) -> Vec<Key> {
        let Some((sequence, rest)) = self.words.split_first() else { return Vec::new() };
        for _ in 0..READ_TRIES {
            let before = sequence.load(Ordering::Acquire);
            if before % 2 == 1 {
                std::hint::spin_loop();
                continue;
            }
            let words: Vec<u64> = rest.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            fence(Ordering::Acquire);
            if sequence.load(Ordering::Relaxed) == before {
                return words.chunks_exact(KEY_WORDS).filter_map(Key::of_words).collect();
            }
        }
        Vec::new()
    }
}

impl Key {
    fn of_words(words: &[u64]) -> Option<Self> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (name, secret) = bytes.split_at_checked(NAME_BYTES)?;
        let key = Self { name: name.try_into().ok()?, secret: secret.try_into().ok()? };
        (key.secret != [0; 32]).then_some(key)
    }

    /// The key of an SSLSessionTicketKeyFile.
    fn of_file(text: &[u8]) -> Option<Self> {
        let (name, secrets) = text.get(..KEY_FILE_BYTES)?.split_at_checked(NAME_BYTES)?;
        let derived = Salt::new(HKDF_SHA256, b"session ticket key file").extract(secrets);
        let mut secret = [0; 32];
        derived.expand(&[name], HKDF_SHA256).ok()?.fill(&mut secret).ok()?;
        Some(Self { name: name.try_into().ok()?, secret })
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM_SIV, &self.secret).ok().map(LessSafeKey::new)
    }
}

/// The source of a host's ticket keys.
#[derive(Clone)]
enum Source {
    Shared(KeyRing),
    File(Key),
}

/// Encrypts and decrypts one host's tickets.
pub struct Ticketer {
    source: Source,
    context: [u8; 32],
    lifetime_seconds: u32,
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticketer").field("lifetime", &self.lifetime_seconds).finish_non_exhaustive()
    }
}

impl Ticketer {
    /// Tickets with the shared keys. `context` ([`crate::sessions::context`]) binds them to the
    /// host: a session is not resumed at another host that verifies clients differently.
    /// `lifetime_seconds` is SSLSessionCacheTimeout.
    pub fn shared(ring: KeyRing, context: [u8; 32], lifetime_seconds: u32) -> Self {
        Self { source: Source::Shared(ring), context, lifetime_seconds }
    }

    /// Tickets with the key in an SSLSessionTicketKeyFile.
    ///
    /// # Errors
    /// The file can't be read or is shorter than [`KEY_FILE_BYTES`].
    pub fn of_file(path: &[u8], context: [u8; 32], lifetime_seconds: u32) -> Result<Self, Finding> {
        let text = certs::read(KEY_FILE, path).map_err(|finding| finding.numbered(2286))?;
        let key = Key::of_file(&text).ok_or_else(|| {
            let path = String::from_utf8_lossy(path);
            let message = format!(
                "Failed to read {KEY_FILE_BYTES} bytes from {path}: (70014) End of file found"
            );
            Finding::error(KEY_FILE, message).numbered(2287)
        })?;
        Ok(Self { source: Source::File(key), context, lifetime_seconds })
    }

    fn keys(&self) -> Vec<Key> {
        match &self.source {
            Source::Shared(ring) => ring.keys(),
            Source::File(key) => vec![key.clone()],
        }
    }

    fn seal(&self, plain: &[u8], now: u64) -> Option<Vec<u8>> {
        let key = self.keys().into_iter().next()?;
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).ok()?;
        let head = [&key.name[..], &nonce, &now.to_be_bytes()].concat();
        let mut body = plain.to_vec();
        key.cipher()?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from([&self.context[..], &head].concat()),
                &mut body,
            )
            .ok()?;
        Some([head, body].concat())
    }

    fn open(&self, ticket: &[u8], now: u64) -> Option<Vec<u8>> {
        let (head, body) = ticket.split_at_checked(HEAD_BYTES)?;
        let (name, rest) = head.split_at_checked(NAME_BYTES)?;
        let (nonce, time) = rest.split_at_checked(NONCE_BYTES)?;
        let age = now.checked_sub(u64::from_be_bytes(time.try_into().ok()?))?;
        if age >= u64::from(self.lifetime_seconds) {
            return None;
        }
        let key = self.keys().into_iter().find(|key| key.name == name)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut body = body.to_vec();
        let aad = Aad::from([&self.context[..], head].concat());
        let plain = key.cipher()?.open_in_place(nonce, aad, &mut body).ok()?;
        Some(plain.to_vec())
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime_seconds
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain, unix_seconds())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(cipher, unix_seconds())
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> KeyRing {
        let words: Vec<AtomicU64> = (0..REGION_WORDS).map(|_| AtomicU64::new(0)).collect();
        KeyRing::new(Vec::leak(words)).unwrap()
    }

    #[test]
    fn a_ticket_survives_two_rotations() {
        let ring = ring();
        let ticketer = Ticketer::shared(ring, [1; 32], 300);
        assert_eq!(ticketer.encrypt(b"session"), None, "no key yet");
        assert!(ring.rotate());
        let ticket = ticketer.encrypt(b"session").unwrap();
        for _ in 1..KEYS {
            assert!(ring.rotate());
            assert_eq!(ticketer.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        }
        ring.rotate();
        assert_eq!(ticketer.decrypt(&ticket), None);
    }

    #[test]
    fn another_host_an_old_or_a_changed_ticket_is_refused() {
        let ring = ring();
        ring.rotate();
        let ticketer = Ticketer::shared(ring, [1; 32], 300);
        let mut ticket = ticketer.seal(b"session", 1000).unwrap();
        assert!(ticketer.open(&ticket, 1299).is_some());
        assert!(ticketer.open(&ticket, 1300).is_none());
        assert!(ticketer.open(&ticket, 999).is_none());
        assert!(Ticketer::shared(ring, [2; 32], 300).open(&ticket, 1000).is_none());
        for position in 0..ticket.len() {
            ticket[position] ^= 1;
            assert!(ticketer.open(&ticket, 1000).is_none(), "{position}");
            ticket[position] ^= 1;
        }
        assert!(ticketer.open(&[], 1000).is_none());
    }

    #[test]
    fn a_ticket_lives_no_longer_than_its_key() {
        for lifetime in [15, 300, 86_400, 604_801] {
            assert!(rotation_seconds(lifetime) * (KEYS as u64 - 1) >= lifetime);
        }
        assert_eq!(rotation_seconds(300), 3600);
    }

    #[test]
    fn key_files() {
        let path = std::env::temp_dir().join(format!("tls-tickets-{}", std::process::id()));
        let name = path.to_str().unwrap().as_bytes();
        std::fs::write(&path, [7; 48]).unwrap();
        let first = Ticketer::of_file(name, [1; 32], 300).unwrap();
        let second = Ticketer::of_file(name, [1; 32], 300).unwrap();
        let ticket = first.encrypt(b"session").unwrap();
        assert_eq!(second.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        std::fs::write(&path, [7; 47]).unwrap();
        assert_eq!(Ticketer::of_file(name, [1; 32], 300).unwrap_err().number, Some(2287));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Ticketer::of_file(name, [1; 32], 300).unwrap_err().number, Some(2286));
    }

    #[test]
    fn a_writer_that_died_costs_tickets_only() {
        let ring = ring();
        ring.rotate();
        ring.words[0].store(3, Ordering::Relaxed);
        assert_eq!(Ticketer::shared(ring, [1; 32], 300).encrypt(b"x"), None);
    }
}
