//! SSLSessionCache: TLS sessions in memory shared by all children, so that a client may resume at
//! any of them. Slots are claimed by compare-and-swap only: a child that dies halfway costs its one
//! slot for [`STALE_SECONDS`], and nothing else.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslsessioncache>

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use aws_lc_rs::digest::{Context, SHA256};
use rustls::server::StoresServerSessions;

use crate::Finding;
use crate::tickets::unix_seconds;

const DIRECTIVE: &str = "SSLSessionCache";

/// The size for `shmcb:path` without one, as in mod_socache_shmcb.
pub const DEFAULT_BYTES: usize = 512 * 1024;

/// Smaller sizes are refused, as in mod_socache_shmcb.
pub const MIN_BYTES: usize = 8192;

/// Larger sizes are refused.
pub const MAX_BYTES: usize = 1 << 30;

/// A slot that has been in writing for this long belongs to a child that died.
pub const STALE_SECONDS: u64 = 10;

/// A quarter of the memory is for sessions with client certificates, which are large.
const LARGE_SHARE: usize = 4;
const SMALL_WORDS: usize = HEAD_WORDS + 448 / 8;
const LARGE_WORDS: usize = HEAD_WORDS + 4096 / 8;
const HEAD_WORDS: usize = 5;
/// The number of slots that a session may occupy.
const PROBES: usize = 8;

/// The value of SSLSessionCache. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionCache {
    /// `none` and `nonenotnull`.
    #[default]
    None,
    /// `shmcb:/path(size)`. The path only names the memory; no file is created.
    Shared {
        /// The path as written.
        path: Vec<u8>,
        /// Bytes of shared memory.
        bytes: usize,
    },
}

impl SessionCache {
    /// Parses the directive's argument.
    ///
    /// # Errors
    /// A store other than shmcb, or a size out of bounds.
    pub fn parse(argument: &str) -> Result<Self, Finding> {
        if argument.eq_ignore_ascii_case("none") || argument.eq_ignore_ascii_case("nonenotnull") {
            return Ok(Self::None);
        }
        let (name, rest) = argument.split_once(':').unwrap_or((argument, ""));
        if name != "shmcb" && name != "default" {
            let message = format!(
                "'{name}' session cache not supported (known names: shmcb,default). Maybe you \
                 need to load the appropriate socache module (mod_socache_{name}?)."
            );
            return Err(Finding::error(DIRECTIVE, message));
        }
        let (path, bytes) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
            Some((path, size)) => (path, Some(size)),
            None => (rest, None),
        };
        let bytes = match bytes.map(str::parse::<usize>) {
            None => DEFAULT_BYTES,
            Some(Ok(bytes)) if bytes < MIN_BYTES => return Err(out_of_bounds(">=", MIN_BYTES)),
            Some(Ok(bytes)) if bytes <= MAX_BYTES => bytes,
            Some(_) => return Err(out_of_bounds("<=", MAX_BYTES)),
        };
        Ok(Self::Shared { path: path.into(), bytes })
    }

    /// Words of shared memory that it needs; 0 for none.
    pub fn words(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Shared { bytes, .. } => bytes / 8,
        }
    }
}

fn out_of_bounds(relation: &str, limit: usize) -> Finding {
    Finding::error(DIRECTIVE, format!("Invalid argument: size has to be {relation} {limit} bytes"))
}

/// What binds a host's sessions: its name and everything that determines which clients it trusts.
/// Sessions of another host, or from before a change of the configuration, are not resumed.
pub fn context(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut context = [0; 32];
    context.copy_from_slice(hash.finish().as_ref());
    context
}

/// One host's view of the shared session memory.
#[derive(Clone, Copy)]
pub struct SharedSessions {
    small: Slots,
    large: Slots,
    context: [u8; 32],
    timeout_seconds: u64,
}

impl fmt::Debug for SharedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSessions").field("slots", &self.capacity()).finish_non_exhaustive()
    }
}

impl SharedSessions {
    /// `words` is the region, all zero when new and common to all hosts; `timeout_seconds` is
    /// SSLSessionCacheTimeout.
    pub fn new(words: &'static [AtomicU64], context: [u8; 32], timeout_seconds: u64) -> Self {
        let (large, small) = words.split_at(words.len() / LARGE_SHARE);
        Self {
            small: Slots { words: small, size: SMALL_WORDS },
            large: Slots { words: large, size: LARGE_WORDS },
            context,
            timeout_seconds,
        }
    }

    /// The number of sessions that fit.
    pub fn capacity(&self) -> usize {
        self.small.count() + self.large.count()
    }

    /// The number of sessions of all hosts that have not expired: for mod_status.
    pub fn occupied(&self) -> usize {
        let now = unix_seconds();
        [self.small, self.large].iter().map(|slots| slots.occupied(now)).sum()
    }

    fn tag(&self, key: &[u8]) -> Tag {
        let hash = context(&[&self.context, key]);
        let word = |range: std::ops::Range<usize>| {
            hash.get(range).into_iter().flatten().fold(0, |word, byte| word << 8 | u64::from(*byte))
        };
        Tag(word(0..8), word(8..16))
    }

    /// Stores an object of another kind than a session, which lasts as many seconds; false if it
    /// is too long, or if other writers have all the slots where it may be.
    pub fn store_for(&self, key: &[u8], value: &[u8], seconds: u64) -> bool {
        let (now, tag) = (unix_seconds(), self.tag(key));
        if !self.small.holds(value.len()) {
            // An earlier, short one would be found first.
            self.small.find(tag, now, true);
        }
        self.store_until(key, value, now, seconds)
    }

    /// Finds such an object.
    pub fn look_up(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.find(key, unix_seconds(), false)
    }

    fn store(&self, key: &[u8], value: &[u8], now: u64) -> bool {
        self.store_until(key, value, now, self.timeout_seconds)
    }

    fn store_until(&self, key: &[u8], value: &[u8], now: u64, seconds: u64) -> bool {
        let tag = self.tag(key);
        [self.small, self.large]
            .into_iter()
            .find(|slots| slots.holds(value.len()))
            .is_some_and(|slots| slots.put(tag, value, now, now.saturating_add(seconds)))
    }

    fn find(&self, key: &[u8], now: u64, remove: bool) -> Option<Vec<u8>> {
        let tag = self.tag(key);
        [self.small, self.large].into_iter().find_map(|slots| slots.find(tag, now, remove))
    }
}

impl StoresServerSessions for SharedSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.store(&key, &value, unix_seconds())
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.find(key, unix_seconds(), false)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.find(key, unix_seconds(), true)
    }

    fn can_cache(&self) -> bool {
        self.capacity() > 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Tag(u64, u64);

/// An array of slots of one size.
#[derive(Clone, Copy)]
struct Slots {
    words: &'static [AtomicU64],
    size: usize,
}

/// The first word of a slot: its kind of content, a version, and the time of the last change.
#[derive(Clone, Copy)]
struct State(u64);

const FREE: u64 = 0;
const FULL: u64 = 1;
const BUSY: u64 = 2;

impl State {
    fn kind(self) -> u64 {
        self.0 & 3
    }

    fn since(self) -> u64 {
        self.0 >> 32
    }

    /// The next state: increments the version in bits 2 to 31, so that an old reader notices the
    /// change.
    fn next(self, kind: u64, now: u64) -> Self {
        let version = (self.0 >> 2).wrapping_add(1) & 0x3fff_ffff;
        Self(now << 32 | version << 2 | kind)
    }

    fn is_stale(self, now: u64) -> bool {
        self.kind() == BUSY && now.saturating_sub(self.since()) > STALE_SECONDS
    }
}

impl Slots {
    fn count(self) -> usize {
        self.words.len() / self.size
    }

    fn holds(self, bytes: usize) -> bool {
        self.count() > 0 && bytes <= (self.size - HEAD_WORDS) * 8
    }

    fn slot(self, index: usize) -> Option<Slot> {
        let start = index.checked_mul(self.size)?;
        let [state, low, high, expiry, length, data @ ..] =
            self.words.get(start..start + self.size)?
        else {
            return None;
        };
        Some(Slot { state, low, high, expiry, length, data })
    }

    /// The slots that a session may occupy, in the order of the search.
    fn candidates(self, tag: Tag) -> impl Iterator<Item = Slot> {
        let count = self.count();
        let start = if count == 0 { 0 } else { (tag.0 % count as u64) as usize };
        (0..PROBES.min(count)).filter_map(move |step| self.slot((start + step) % count))
    }

    fn put(self, tag: Tag, value: &[u8], now: u64, expiry: u64) -> bool {
        // Prefers the same session, then a free slot, then the one that expires first.
        let best = self
            .candidates(tag)
            .map(|slot| (slot.preference(tag, now), slot))
            .filter_map(|(preference, slot)| Some((preference?, slot)))
            .min_by_key(|((rank, _), _)| *rank);
        best.is_some_and(|((_, state), slot)| slot.fill(state, tag, value, now, expiry))
    }

    fn find(self, tag: Tag, now: u64, remove: bool) -> Option<Vec<u8>> {
        self.candidates(tag).find_map(|slot| slot.read(tag, now, remove))
    }

    fn occupied(self, now: u64) -> usize {
        let live = |slot: &Slot| {
            State(slot.state.load(Ordering::Relaxed)).kind() == FULL
                && slot.expiry.load(Ordering::Relaxed) > now
        };
        (0..self.count()).filter_map(|index| self.slot(index)).filter(live).count()
    }
}

struct Slot {
    state: &'static AtomicU64,
    low: &'static AtomicU64,
    high: &'static AtomicU64,
    expiry: &'static AtomicU64,
    length: &'static AtomicU64,
    data: &'static [AtomicU64],
}

impl Slot {
    fn load(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }

    fn tag(&self) -> Tag {
        Tag(self.low.load(Ordering::Relaxed), self.high.load(Ordering::Relaxed))
    }

    /// The preference for overwriting this slot (lower first), and the state it is based on.
    fn preference(&self, tag: Tag, now: u64) -> Option<(u64, State)> {
        let state = self.load();
        let expiry = self.expiry.load(Ordering::Relaxed);
        let rank = match state.kind() {
            FULL if self.tag() == tag => 0,
            FREE => 1,
            FULL if expiry <= now => 1,
            FULL => 2 + expiry,
            _ if state.is_stale(now) => 1,
            _ => return None,
        };
        Some((rank, state))
    }

    fn change(&self, from: State, to: State) -> bool {
        self.state.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn fill(&self, from: State, tag: Tag, value: &[u8], now: u64, expiry: u64) -> bool {
        let busy = from.next(BUSY, now);
        if !self.change(from, busy) {
            return false;
        }
        fence(Ordering::Release);
        self.low.store(tag.0, Ordering::Relaxed);
        self.high.store(tag.1, Ordering::Relaxed);
        self.expiry.store(expiry, Ordering::Relaxed);
        self.length.store(value.len() as u64, Ordering::Relaxed);
        for (word, bytes) in self.data.iter().zip(value.chunks(8)) {
            let packed = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            word.store(packed, Ordering::Relaxed);
        }
        self.change(busy, busy.next(FULL, now))
    }

    fn read(&self, tag: Tag, now: u64, remove: bool) -> Option<Vec<u8>> {
        let state = self.load();
        if state.kind() != FULL || self.tag() != tag || self.expiry.load(Ordering::Relaxed) <= now {
            return None;
        }
        let length = usize::try_from(self.length.load(Ordering::Relaxed)).ok()?;
        if length > self.data.len() * 8 {
            return None;
        }
        let words = self.data.iter().take(length.div_ceil(8));
        let mut value: Vec<u8> =
            words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        value.truncate(length);
        fence(Ordering::Acquire);
        // The state is unchanged, so the copied bytes are one session. Only one remover succeeds.
        let whole = match remove {
            true => self.change(state, state.next(FREE, now)),
            false => self.state.load(Ordering::Relaxed) == state.0,
        };
        whole.then_some(value)
    }
}

#[cfg(test)]
mod tests;
