//! Memory shared by the supervisor and all children, created before the first fork and kept across
//! generations.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

mod mapping;

pub use mapping::REGION_BYTES_MAX;
pub(crate) use mapping::{Cells, map_cells, map_file_cells};

/// A region on its way to the next executable (`-k upgrade`).
#[derive(Clone, Debug)]
pub(crate) struct HandedRegion {
    pub name: String,
    /// A region of 64-bit words; otherwise of bytes.
    pub is_words: bool,
    pub count: usize,
    pub file: Arc<OwnedFd>,
}

/// Named regions of shared memory (TLS ticket keys, the session cache).
///
/// Request regions in [`Program::load`](crate::Program::load) or
/// [`Program::open_logs`](crate::Program::open_logs): a region first requested in a child is
/// private to that child. At a restart a region is found by its name and size. If the size differs,
/// the region is new and empty; children of the old generation keep the old one.
///
/// Regions also outlive the executable (`-k upgrade`): if a program changes the layout of a region,
/// it must change its name.
#[derive(Clone, Default)]
pub struct Shared {
    regions: Arc<Mutex<BTreeMap<(String, usize), Held>>>,
}

#[derive(Clone, Copy)]
enum Region {
    Words(&'static [AtomicU64]),
    Bytes(&'static [AtomicU8]),
}

#[derive(Clone)]
struct Held {
    region: Region,
    /// `None` if the system has no memfd: such a region can't be handed over.
    file: Option<Arc<OwnedFd>>,
}

impl Held {
    fn map(is_words: bool, count: usize, file: Option<OwnedFd>) -> io::Result<Self> {
        let held = |(region, file): (Region, OwnedFd)| Self { region, file: Some(Arc::new(file)) };
        match is_words {
            true => map_file_cells(count, file).map(|(words, file)| (Region::Words(words), file)),
            false => map_file_cells(count, file).map(|(bytes, file)| (Region::Bytes(bytes), file)),
        }
        .map(held)
    }

    /// Creates a region.
    fn make(is_words: bool, count: usize) -> io::Result<Self> {
        Self::map(is_words, count, None).or_else(|_| {
            let region = match is_words {
                true => Region::Words(map_cells(count)?),
                false => Region::Bytes(map_cells(count)?),
            };
            Ok(Self { region, file: None })
        })
    }
}

impl Shared {
    /// No regions.
    pub fn new() -> Self {
        Self::default()
    }

    /// The region `name` of `count` 64-bit words, all 0 if new. Fails if memory can't be mapped, or
    /// if a region of that name and count holds bytes.
    pub fn words(&self, name: &str, count: usize) -> io::Result<&'static [AtomicU64]> {
        match self.region(name, count, true)? {
            Region::Words(words) => Ok(words),
            Region::Bytes(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The region `name` of `count` bytes, all 0 if new. Fails if memory can't be mapped, or if a
    /// region of that name and count holds words.
    pub fn bytes(&self, name: &str, count: usize) -> io::Result<&'static [AtomicU8]> {
        match self.region(name, count, false)? {
            Region::Bytes(bytes) => Ok(bytes),
            Region::Words(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn region(&self, name: &str, count: usize, is_words: bool) -> io::Result<Region> {
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), count);
        if let Some(held) = regions.get(&key) {
            return Ok(held.region);
        }
        let held = Held::make(is_words, count)?;
        let region = held.region;
        regions.insert(key, held);
        Ok(region)
    }

    /// Takes over the predecessor's regions. One that can't be mapped is left out and will be new.
    pub(crate) fn adopt(handed: Vec<HandedRegion>) -> Self {
        let mut regions = BTreeMap::new();
        for HandedRegion { name, is_words, count, file } in handed {
            let held = Arc::into_inner(file).map(|file| Held::map(is_words, count, Some(file)));
            if let Some(Ok(held)) = held {
                regions.insert((name, count), held);
            }
        }
        Self { regions: Arc::new(Mutex::new(regions)) }
    }

    /// The regions to hand over to the next executable.
    pub(crate) fn to_hand_on(&self) -> Vec<HandedRegion> {
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let handed = regions.iter().filter_map(|((name, count), held)| {
            let is_words = matches!(held.region, Region::Words(_));
            let file = Arc::clone(held.file.as_ref()?);
            Some(HandedRegion { name: name.clone(), is_words, count: *count, file })
        });
        handed.collect()
    }
}

impl AsFd for HandedRegion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Bytes in shared words, guarded by a sequence counter: a reader sees the complete bytes of one
/// writer, or fails. The first word holds the counter and the length, the others the bytes.
///
/// The counter also excludes writers from each other: a writer that finds it odd gives up. A writer
/// that was killed halfway therefore leaves the cell unreadable until [`SeqBytes::reset`].
#[derive(Clone, Copy)]
pub struct SeqBytes<'w> {
    words: &'w [AtomicU64],
}

/// How often a read is retried before it reports that the cell is being written.
const READ_TRIES_MAX: usize = 64;

impl<'w> SeqBytes<'w> {
    /// A cell over `words`; its capacity is `8 * (words.len() - 2)` bytes.
    pub fn new(words: &'w [AtomicU64]) -> Self {
        Self { words }
    }

    /// The capacity in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.words.len().saturating_sub(2) * 8
    }

    /// Writes `bytes`, truncated to the capacity. False if another writer is active.
    pub fn write(&self, bytes: &[u8]) -> bool {
        let Some((counter, body)) = self.words.split_first() else { return false };
        let before = counter.load(Ordering::Relaxed);
        if before % 2 == 1
            || counter
                .compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return false;
        }
        fence(Ordering::Release);
        store_bytes(body, bytes);
        counter.store(before + 2, Ordering::Release);
        true
    }

    /// The bytes last written, or `None` while a write is in progress (or was never finished).
    pub fn read(&self) -> Option<Vec<u8>> {
        let (counter, body) = self.words.split_first()?;
        for _ in 0..READ_TRIES_MAX {
            let before = counter.load(Ordering::Acquire);
            if before % 2 == 0 {
                let bytes = load_bytes(body);
                fence(Ordering::Acquire);
                if counter.load(Ordering::Relaxed) == before {
                    return Some(bytes);
                }
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Changes with every write; 0 if never written. For readers that cache a decoded copy.
    pub fn version(&self) -> u64 {
        self.words.first().map_or(0, |counter| counter.load(Ordering::Acquire))
    }

    /// Makes the cell writable again after its writer died. Only for the supervisor, once it has
    /// reaped the writer.
    pub fn reset(&self) {
        if let Some(counter) = self.words.first()
            && counter.load(Ordering::Relaxed) % 2 == 1
        {
            if let Some(length) = self.words.get(1) {
                length.store(0, Ordering::Relaxed);
            }
            counter.fetch_add(1, Ordering::Release);
        }
    }
}

/// Stores length and bytes in `body`, truncated to fit. Without a sequence counter, readers may see
/// a torn value.
pub(crate) fn store_bytes(body: &[AtomicU64], bytes: &[u8]) {
    let Some((length, words)) = body.split_first() else { return };
    let fitting = bytes.len().min(words.len() * 8);
    length.store(fitting as u64, Ordering::Relaxed);
    for (word, chunk) in words.iter().zip(bytes.chunks(8)) {
        let mut eight = [0u8; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
    }
}

/// Loads the bytes that [`store_bytes`] stored.
pub(crate) fn load_bytes(body: &[AtomicU64]) -> Vec<u8> {
    let Some((length, words)) = body.split_first() else { return Vec::new() };
    let length = usize::try_from(length.load(Ordering::Relaxed)).unwrap_or(0);
    let length = length.min(words.len() * 8);
    let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
    for word in &words[..length.div_ceil(8)] {
        bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_found_again_by_name_and_size() {
        let shared = Shared::new();
        let words = shared.words("tickets", 4).unwrap();
        words[3].store(9, Ordering::Relaxed);
        assert_eq!(shared.words("tickets", 4).unwrap()[3].load(Ordering::Relaxed), 9);
        assert_eq!(shared.words("tickets", 5).unwrap()[3].load(Ordering::Relaxed), 0);
        assert!(shared.bytes("tickets", 4).is_err());
        assert!(shared.bytes("huge", REGION_BYTES_MAX + 1).is_err());
        assert_eq!(shared.bytes("empty", 0).unwrap().len(), 0);
    }

    #[test]
    fn regions_are_handed_on_with_what_is_in_them() {
        let shared = Shared::new();
        let words = shared.words("tickets", 4).unwrap();
        words[1].store(7, Ordering::Relaxed);
        let handed = || {
            let mut handed = shared.to_hand_on();
            for region in &mut handed {
                region.file = Arc::new(region.file.try_clone().unwrap());
            }
            handed
        };
        let next = Shared::adopt(handed());
        let seen = next.words("tickets", 4).unwrap();
        assert_eq!(seen[1].load(Ordering::Relaxed), 7);
        seen[2].store(9, Ordering::Relaxed);
        assert_eq!(words[2].load(Ordering::Relaxed), 9, "it is the same memory");
        // A file that is too short is not mapped.
        let mut wrong = handed();
        wrong[0].count = 4096;
        assert!(Shared::adopt(wrong).regions.lock().unwrap().is_empty());
    }

    #[test]
    fn sequence_guards_against_torn_text() {
        let cell = SeqBytes::new(map_cells(4).unwrap());
        assert_eq!(cell.capacity_bytes(), 16);
        assert_eq!(cell.read().unwrap(), b"");
        assert!(cell.write(b"0123456789abcdefXYZ"));
        assert_eq!(cell.read().unwrap(), b"0123456789abcdef");
        cell.words[0].fetch_add(1, Ordering::Relaxed);
        assert_eq!(cell.read(), None);
        assert!(!cell.write(b"x"));
        cell.reset();
        assert_eq!(cell.read().unwrap(), b"");
        assert!(cell.write(b"abc"));
        assert_eq!(cell.read().unwrap(), b"abc");
    }

    #[test]
    fn readers_never_see_a_mix_of_two_writes() {
        let cell = SeqBytes::new(map_cells(16).unwrap());
        let writer = std::thread::spawn(move || {
            for round in 0..20_000u32 {
                let letter = b'a' + (round % 26) as u8;
                cell.write(&[letter; 100]);
            }
        });
        while !writer.is_finished() {
            if let Some(bytes) = cell.read() {
                assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]), "torn: {bytes:?}");
            }
        }
        writer.join().unwrap();
    }
}
