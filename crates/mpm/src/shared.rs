//! Memory that the supervisor and all children share, made before the first fork and kept across
//! generations.

#![expect(unsafe_code, reason = "memory shared between processes")]

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// No region is larger than this (1 GiB), so that a slip in a configuration is an error and not
/// an exhausted machine.
pub const REGION_BYTES_MAX: usize = 1 << 30;

/// A type that shared memory may hold: built of atomics only, and valid when all its bytes are 0.
///
/// # Safety
/// All-zero bytes must be a valid value, every field must be an atomic (or padding), and nothing
/// in it may need dropping.
pub(crate) unsafe trait Cells: Sync {}

// SAFETY: atomics of plain integers; zero is a value of each.
unsafe impl Cells for AtomicU8 {}
// SAFETY: as above.
unsafe impl Cells for AtomicU32 {}
// SAFETY: as above.
unsafe impl Cells for AtomicU64 {}

/// Maps `count` zeroed cells of anonymous memory that children made by fork share. The mapping
/// lasts as long as the process.
pub(crate) fn map_cells<T: Cells>(count: usize) -> io::Result<&'static [T]> {
    let bytes = count
        .checked_mul(size_of::<T>())
        .filter(|bytes| *bytes <= REGION_BYTES_MAX)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    if bytes == 0 {
        return Ok(&[]);
    }
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory
    // that anybody else uses.
    let start = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            // Room that is never used is not to be paid for, not even as a promise.
            MapFlags::SHARED | MapFlags::NORESERVE,
        )?
    };
    // SAFETY: the mapping is page-aligned (no cell needs more than 64), `bytes` long, zeroed and
    // never unmapped; `Cells` promises that zero is valid and that all access is atomic.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<T>(), count) })
}

/// Named regions of shared memory (TLS ticket keys, the session cache).
///
/// Ask for a region in [`Program::load`](crate::Program::load) or
/// [`Program::open_logs`](crate::Program::open_logs); what a child asks for first is its own
/// and shared with nobody. A region is found again by name and size at every restart; one
/// asked for with another size is a new one, empty, and children of the old generation keep the
/// old one.
#[derive(Clone, Default)]
pub struct Shared {
    regions: Arc<Mutex<BTreeMap<(String, usize), Region>>>,
}

#[derive(Clone, Copy)]
enum Region {
    Words(&'static [AtomicU64]),
    Bytes(&'static [AtomicU8]),
}

impl Shared {
    /// No regions yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The region `name` of `count` 64-bit words, all 0 when new. Fails when memory can't be
    /// mapped, or when a region of that name and count holds bytes.
    pub fn words(&self, name: &str, count: usize) -> io::Result<&'static [AtomicU64]> {
        match self.region(name, count, || map_cells(count).map(Region::Words))? {
            Region::Words(words) => Ok(words),
            Region::Bytes(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The region `name` of `count` bytes, all 0 when new. Fails when memory can't be
    /// mapped, or when a region of that name and count holds words.
    pub fn bytes(&self, name: &str, count: usize) -> io::Result<&'static [AtomicU8]> {
        match self.region(name, count, || map_cells(count).map(Region::Bytes))? {
            Region::Bytes(bytes) => Ok(bytes),
            Region::Words(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn region(
        &self,
        name: &str,
        count: usize,
        make: impl FnOnce() -> io::Result<Region>,
    ) -> io::Result<Region> {
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), count);
        if let Some(region) = regions.get(&key) {
            return Ok(*region);
        }
        let region = make()?;
        regions.insert(key, region);
        Ok(region)
    }
}

/// Bytes in shared words behind a sequence counter: a reader sees what one writer wrote, whole,
/// or sees that it could not. The first word is the counter and the length, the others the bytes.
///
/// Writers exclude each other by the counter itself: a writer that finds it odd gives up. So a
/// writer that was killed in the middle leaves the cell unreadable until [`SeqBytes::reset`].
#[derive(Clone, Copy)]
pub struct SeqBytes {
    words: &'static [AtomicU64],
}

/// How often a reader tries again before it reports that the cell is being written.
const READ_TRIES_MAX: usize = 64;

impl SeqBytes {
    /// A cell over `words`, which takes up to `8 * (words.len() - 2)` bytes.
    pub fn new(words: &'static [AtomicU64]) -> Self {
        Self { words }
    }

    /// How many bytes fit.
    pub fn capacity_bytes(&self) -> usize {
        self.words.len().saturating_sub(2) * 8
    }

    /// Writes `bytes`, cut to the capacity. False when another writer is at it.
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

    /// The bytes last written, or `None` while they are being written (or never finished).
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

    /// Changes at every write; 0 when never written. For readers that keep a decoded copy.
    pub fn version(&self) -> u64 {
        self.words.first().map_or(0, |counter| counter.load(Ordering::Acquire))
    }

    /// Makes the cell writable again after its writer died. Only for the supervisor, when it has
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

/// Stores length and bytes into `body`, cut to what fits. Torn for readers unless guarded by a
/// sequence counter.
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

/// The bytes that [`store_bytes`] stored.
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
