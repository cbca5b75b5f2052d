//! The names in a directory, so that one that is not there needs no look at the file system.
//!
//! A scanner, or a crawler on a site that rewrites, asks for names that were never asked for. After
//! a few of them the directory is listed, a part with each further one, so that a large directory
//! does not stall a loop. The listing holds short hashes: a name whose hash is in it is looked up.
//!
//! A listing stays valid name by name. It notes the generations of all classes of names
//! ([`rt::class_of`]) before it begins; a change of one name voids it for that name's class.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use hashbrown::{DefaultHashBuilder, HashTable};
use rt::{NAME_CLASSES, Watcher, class_of};
use rustix::fs::RawDir;

use super::directory::Directory;
use super::fact::Seen;
use crate::files::path;

/// Most bytes of all listings of a process.
pub const LISTINGS_BYTES_LIMIT: usize = 16 * 1024 * 1024;
/// Most names of a listing.
const NAMES_MAX: usize = 1_000_000;
/// The number of missing names after which a directory is first listed.
const MISSES_FIRST: usize = 3;
/// A directory is listed again after a number of missing names that is this fraction of its names:
/// a listing then costs no more than the preceding look-ups.
const MISSES_PART: usize = 4;
/// The least such number.
const MISSES_LEAST: usize = 8;
/// Bytes of directory entries read at a time: about a thousand names, 0.2 ms.
const PART_BYTES: usize = 32 * 1024;
/// The longest name (NAME_MAX): the system's error for longer ones differs.
const NAME_BYTES_MAX: usize = 255;

/// The known names in a directory.
#[derive(Default)]
pub(super) struct Names(Mutex<State>);

#[derive(Default)]
struct State {
    /// Missing names that were looked up since the last listing.
    misses: usize,
    listing: Option<Listing>,
    reading: Option<Reading>,
    /// Whether it has too many names.
    is_refused: bool,
}

struct Listing {
    /// The generation of each class, from before the directory was read.
    generations: [u64; NAME_CLASSES],
    /// Hashes of the names, by class.
    classes: Box<[HashTable<u32>; NAME_CLASSES]>,
    count: usize,
    account: Account,
}

/// A listing in progress.
struct Reading {
    directory: OwnedFd,
    listing: Listing,
}

/// The listings of a process: their total size, and the listings in order of age.
pub(super) struct Listings {
    hasher: DefaultHashBuilder,
    bytes: Arc<AtomicUsize>,
    limit: usize,
    all: Mutex<VecDeque<Weak<Directory>>>,
}

/// The size of a listing, subtracted when it is dropped.
struct Account {
    bytes: usize,
    total: Arc<AtomicUsize>,
}

impl Account {
    fn set(&mut self, bytes: usize) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Listings {
    pub fn new(limit: usize) -> Listings {
        Listings {
            hasher: DefaultHashBuilder::default(),
            bytes: Arc::default(),
            limit,
            all: Mutex::default(),
        }
    }

    fn hash(&self, name: &[u8]) -> u32 {
        (self.hasher.hash_one(name) >> 32) as u32
    }

    /// The counter of a name that a listing lacks, with its generation at that time.
    pub fn lacks(&self, directory: &Directory, watcher: &Watcher, name: &[u8]) -> Option<Seen> {
        if name.len() > NAME_BYTES_MAX || name.contains(&0) {
            return None;
        }
        let state = directory.names.lock();
        let listing = state.listing.as_ref()?;
        let class = class_of(name);
        let (id, generation) = watcher.name_in(directory.watch, name)?;
        let is_valid = listing.generations.get(class) == Some(&generation);
        let hash = self.hash(name);
        let has = |names: &HashTable<u32>| names.find(spread(hash), |it| *it == hash).is_some();
        (is_valid && !has(listing.classes.get(class)?)).then_some((id, generation))
    }

    /// Notes that a name was looked up and is missing; lists the directory if that is due, or
    /// continues.
    pub fn missed(&self, directory: &Arc<Directory>, watcher: &Watcher) {
        // Another thread is doing this.
        let Ok(mut state) = directory.names.0.try_lock() else { return };
        state.misses += 1;
        if state.reading.is_none() && state.is_due() {
            state.misses = 0;
            state.reading = self.begin(directory, watcher);
        }
        let Some(mut reading) = state.reading.take() else { return };
        match self.read_part(&mut reading) {
            Some(true) => state.reading = Some(reading),
            Some(false) => {
                let is_first = state.listing.replace(reading.listing).is_none();
                drop(state);
                if is_first {
                    self.add(directory);
                }
            }
            None => {
                let Listing { count, account, .. } = &reading.listing;
                state.is_refused = *count > NAMES_MAX || account.bytes > self.limit;
                state.listing = None;
            }
        }
    }

    fn add(&self, directory: &Arc<Directory>) {
        let mut all = self.all();
        all.retain(|directory| directory.strong_count() > 0);
        all.push_back(Arc::downgrade(directory));
    }

    fn begin(&self, directory: &Directory, watcher: &Watcher) -> Option<Reading> {
        let generations = watcher.classes_of(directory.watch)?;
        let file = regular::open_directory(&*directory.path).ok()?;
        let info = path::info(&rustix::fs::fstat(&file).ok()?);
        let listing = Listing {
            generations,
            classes: Box::new([const { HashTable::new() }; NAME_CLASSES]),
            count: 0,
            account: Account { bytes: 0, total: self.bytes.clone() },
        };
        let is_it = (info.device, info.inode) == directory.identity;
        is_it.then_some(Reading { directory: file, listing })
    }

    /// Reads some names. Returns whether there are more; `None` if there are too many, or on an
    /// error.
    fn read_part(&self, reading: &mut Reading) -> Option<bool> {
        let mut buffer = Vec::new();
        buffer.resize_with(PART_BYTES, MaybeUninit::uninit);
        let mut entries = RawDir::new(&reading.directory, &mut buffer);
        let mut has_more = false;
        while let Some(entry) = entries.next() {
            has_more = true;
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            reading.listing.add(class_of(name), self.hash(name));
            if entries.is_buffer_empty() {
                break;
            }
        }
        let listing = &mut reading.listing;
        listing.account.set(listing.bytes());
        let fits = listing.count <= NAMES_MAX && self.make_room();
        fits.then_some(has_more)
    }

    /// Drops the oldest listings until all fit.
    fn make_room(&self) -> bool {
        while self.bytes.load(Ordering::Relaxed) > self.limit {
            let Some(oldest) = self.all().pop_front() else { return false };
            if let Some(directory) = oldest.upgrade() {
                match directory.names.0.try_lock() {
                    Ok(mut state) => state.listing = None,
                    // It is in use. Do not wait for it while holding another lock.
                    Err(TryLockError::WouldBlock) => return false,
                    Err(TryLockError::Poisoned(_)) => {}
                }
            }
        }
        true
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Weak<Directory>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Names {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            *state = State::default();
            self.0.clear_poison();
            state
        })
    }
}

impl State {
    fn is_due(&self) -> bool {
        let count = self.listing.as_ref().map(|listing| listing.count);
        let due = match count {
            None => MISSES_FIRST,
            Some(count) => (count / MISSES_PART).max(MISSES_LEAST),
        };
        self.misses >= due && !self.is_refused
    }
}

impl Listing {
    fn add(&mut self, class: usize, hash: u32) {
        if let Some(names) = self.classes.get_mut(class) {
            names.insert_unique(spread(hash), hash, |hash| spread(*hash));
            self.count += 1;
        }
    }

    fn bytes(&self) -> usize {
        let tables = self.classes.iter().map(HashTable::allocation_size).sum::<usize>();
        size_of::<Listing>() + size_of_val(&*self.classes) + tables
    }
}

/// Expands a stored short hash for tables.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
