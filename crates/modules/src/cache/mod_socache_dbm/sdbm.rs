//! Files of SDBM, read and written in place: pages of pairs, and a directory of bits that tells
//! which pages were split.
//!
//! Source: APR's `sdbm.c`, `sdbm_pair.c`, `sdbm_hash.c`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::sdbm::{PAGE_BYTES, pairs};

/// The size of a block of the directory (`DBLKSIZ`).
const BLOCK_BYTES: usize = 4096;
/// The most bytes of a key and its value (`PAIRMAX`).
pub(super) const PAIR_BYTES_MAX: usize = 1008;
/// The most splits for a pair (`SPLTMAX`).
const SPLITS_MAX: usize = 10;
/// The largest file of pages, bytes: 2^31 is where its bits end. A larger one gets no new pages.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The two files.
pub(super) struct Sdbm {
    /// The file of pages.
    pub pages: File,
    /// The file of bits.
    pub directory: File,
}

/// The pairs of a page, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page(Vec<(Vec<u8>, Vec<u8>)>);

/// The page of a hash.
struct Place {
    number: u64,
    /// The bit that tells whether the page was split.
    bit: u64,
    /// The bits of the hash that were looked at.
    mask: u64,
}

impl Sdbm {
    /// The value of a key.
    pub fn find(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let page = self.read(self.place(hash(key))?.number)?;
        Ok(page.0.into_iter().find(|(known, _)| known == key).map(|(_, value)| value))
    }

    /// Stores a value; an earlier one is replaced.
    ///
    /// # Errors
    /// `StorageFull` if there is no room for the pair, besides those of the system.
    pub fn store(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if key.len() + value.len() > PAIR_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let hash = hash(key);
        let mut place = self.place(hash)?;
        let mut page = self.read(place.number)?;
        page.0.retain(|(known, _)| known != key);
        page.0.push((key.to_vec(), value.to_vec()));
        for _ in 0..=SPLITS_MAX {
            if page.is_fitting() {
                return self.write(place.number, &page);
            }
            page = self.split(hash, &mut place, page)?;
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Removes the pairs that are not to be kept.
    pub fn retain(&self, keep: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        for number in 0..self.pages.metadata()?.len() / PAGE_BYTES as u64 {
            let mut page = self.read(number)?;
            let before = page.0.len();
            page.0.retain(|(_, value)| keep(value));
            if page.0.len() < before {
                self.write(number, &page)?;
            }
        }
        Ok(())
    }

    /// Divides a page by the next bit of the hashes, and writes the half that is not that of
    /// `hash`; returns the other one. Source: `makroom`.
    fn split(&self, hash: u64, place: &mut Place, page: Page) -> io::Result<Page> {
        let next = place.mask + 1;
        let new = hash & place.mask | next;
        if (new + 1) * PAGE_BYTES as u64 > FILE_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (upper, lower): (Vec<_>, Vec<_>) =
            page.0.into_iter().partition(|(key, _)| self::hash(key) & next != 0);
        let is_upper = hash & next != 0;
        let (own, other) = if is_upper { (upper, lower) } else { (lower, upper) };
        // The other half fits: the page did, before the pair of `hash` came.
        self.write(if is_upper { place.number } else { new }, &Page(other))?;
        self.set_bit(place.bit)?;
        place.number = if is_upper { new } else { place.number };
        place.bit = 2 * place.bit + if is_upper { 2 } else { 1 };
        place.mask |= next;
        Ok(Page(own))
    }

    /// Source: `getpage`.
    fn place(&self, hash: u64) -> io::Result<Place> {
        let bits = self.directory.metadata()?.len() * 8;
        let (mut bit, mut mask) = (0, 0);
        while bit < bits && mask < u64::from(u32::MAX) && self.is_set(bit)? {
            bit = 2 * bit + if hash & (mask + 1) != 0 { 2 } else { 1 };
            mask = mask << 1 | 1;
        }
        Ok(Place { number: hash & mask, bit, mask })
    }

    fn is_set(&self, bit: u64) -> io::Result<bool> {
        let mut byte = [0];
        let read = self.directory.read_at(&mut byte, bit / 8)?;
        Ok(read == 1 && byte[0] & 1 << (bit % 8) != 0)
    }

    fn set_bit(&self, bit: u64) -> io::Result<()> {
        let (at, block) = (bit / 8, BLOCK_BYTES as u64);
        let end = (at / block + 1) * block;
        if self.directory.metadata()?.len() < end {
            self.directory.set_len(end)?;
        }
        let mut byte = [0];
        self.directory.read_at(&mut byte, at)?;
        byte[0] |= 1 << (bit % 8);
        self.directory.write_all_at(&byte, at)
    }

    fn read(&self, number: u64) -> io::Result<Page> {
        let mut bytes = [0; PAGE_BYTES];
        // What is behind the end was never written.
        self.pages.read_at(&mut bytes, number * PAGE_BYTES as u64)?;
        Ok(Page::parse(&bytes))
    }

    fn write(&self, number: u64, page: &Page) -> io::Result<()> {
        self.pages.write_all_at(&page.bytes(), number * PAGE_BYTES as u64)
    }
}

impl Page {
    /// The pairs; none of a page that is not valid.
    fn parse(bytes: &[u8; PAGE_BYTES]) -> Page {
        let text = |place: Range<usize>| bytes.get(place).unwrap_or_default().to_vec();
        let pairs = pairs(bytes).unwrap_or_default().into_iter();
        Page(pairs.map(|(key, value)| (text(key), text(value))).collect())
    }

    /// Whether it has room for its pairs and their offsets (`fitpair`).
    fn is_fitting(&self) -> bool {
        let texts: usize = self.0.iter().map(|(key, value)| key.len() + value.len() + 4).sum();
        texts + 2 <= PAGE_BYTES
    }

    /// The page, which has to be fitting.
    fn bytes(&self) -> [u8; PAGE_BYTES] {
        let mut bytes = [0; PAGE_BYTES];
        let mut put = |at: usize, text: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + text.len()) {
                place.copy_from_slice(text);
            }
        };
        let short = |number: usize| i16::try_from(number).unwrap_or(0).to_ne_bytes();
        put(0, &short(2 * self.0.len()));
        let (mut end, mut at) = (PAGE_BYTES, 2);
        for (key, value) in &self.0 {
            for text in [key, value] {
                end = end.saturating_sub(text.len());
                put(at, &short(end));
                put(end, text);
                at += 2;
            }
        }
        bytes
    }
}

/// Letters are signed, as `char` is where these files come from. Source: `sdbm_hash`.
fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0u64, |hash, byte| {
        let letter = i64::from(byte.cast_signed()).cast_unsigned();
        hash.wrapping_mul(65599).wrapping_add(letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn open(name: &str) -> (PathBuf, Sdbm) {
        let base = std::env::temp_dir().join(format!("tamarack-{name}-{}", std::process::id()));
        let file = |end: &str| {
            let path = base.with_extension(end);
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(true).open(path).unwrap()
        };
        let sdbm = Sdbm { pages: file("pag"), directory: file("dir") };
        (base, sdbm)
    }

    fn remove(base: &std::path::Path) {
        for end in ["pag", "dir"] {
            let _ = std::fs::remove_file(base.with_extension(end));
        }
    }

    #[test]
    fn what_was_stored_is_found_through_splits() {
        let (base, sdbm) = open("sdbm");
        let mut all = BTreeMap::new();
        for number in 0..3000_u32 {
            let key = format!("user{}\u{e4}", number % 2000).into_bytes();
            let value = vec![(number % 251) as u8; (number % 300) as usize];
            sdbm.store(&key, &value).unwrap();
            all.insert(key, value);
        }
        for (key, value) in &all {
            assert_eq!(sdbm.find(key).unwrap().as_ref(), Some(value));
        }
        assert_eq!(sdbm.find(b"unknown").unwrap(), None);
        sdbm.retain(|value| value.len() < 100).unwrap();
        for (key, value) in &all {
            let is_there = sdbm.find(key).unwrap().is_some();
            assert_eq!(is_there, value.len() < 100);
        }
        remove(&base);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let (base, sdbm) = open("sdbm-full");
        assert!(sdbm.store(b"key", &[0; PAIR_BYTES_MAX - 3]).is_ok());
        assert!(sdbm.store(b"key", &[0; PAIR_BYTES_MAX - 2]).is_err());
        assert_eq!(sdbm.find(b"key").unwrap().map(|value| value.len()), Some(PAIR_BYTES_MAX - 3));
        remove(&base);
    }

    /// `htdbm` is a program of Apache's package.
    #[test]
    fn apaches_programs_read_it() {
        let (base, sdbm) = open("sdbm-apr");
        for number in 0..200_u32 {
            let value = format!("{{SHA}}{number:0100}");
            sdbm.store(format!("user{number}").as_bytes(), value.as_bytes()).unwrap();
        }
        let listed =
            std::process::Command::new("htdbm").arg("-TSDBM").arg("-l").arg(&base).output();
        remove(&base);
        let Ok(listed) = listed else {
            return eprintln!("skipped: htdbm is not installed");
        };
        let text = [listed.stdout, listed.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("Total #records : 200"), "{text}");
    }

    proptest::proptest! {
        #[test]
        fn no_page_panics(seed: Vec<u8>) {
            let mut bytes = [0; PAGE_BYTES];
            for (place, byte) in bytes.iter_mut().zip(seed.iter().cycle()) {
                *place = *byte;
            }
            let page = Page::parse(&bytes);
            if page.is_fitting() {
                proptest::prop_assert_eq!(Page::parse(&page.bytes()), page);
            }
        }
    }
}
