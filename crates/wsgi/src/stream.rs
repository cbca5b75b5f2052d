//! Bytes in one direction, between a loop and the worker that has its slot.
#![expect(unsafe_code, reason = "memory shared between processes")]

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

/// The other side's counter is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn;

/// One direction of a slot. Counters only grow, and wrap around; each side keeps its own, and
/// believes the other's only within the capacity.
#[derive(Debug)]
pub struct Stream<'r> {
    pub(crate) written: &'r AtomicU32,
    pub(crate) read: &'r AtomicU32,
    pub(crate) data: &'r Ring,
    /// Where in the ring the counters begin.
    pub(crate) start: u32,
}

/// The bytes of a stream, which the other side may change at any time.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: [std::cell::UnsafeCell<u8>],
}

impl Ring {
    /// # Safety
    /// `start` must be valid for reads and writes of `len` bytes for `'r`, in memory that this
    /// process accesses by raw copies only. `len` must be a power of two.
    pub(crate) unsafe fn from_raw<'r>(start: *mut u8, len: usize) -> &'r Ring {
        let slice = std::ptr::slice_from_raw_parts_mut(start, len);
        // SAFETY: as the caller promises; `Ring` is a slice of cells of bytes.
        unsafe { &*(slice as *const Ring) }
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The two parts that `count` bytes from a counter on are in.
    fn parts(&self, counter: u32, count: usize) -> (usize, usize) {
        let start = counter as usize & (self.len() - 1);
        (start, count.min(self.len() - start))
    }

    fn put(&self, counter: u32, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.len());
        let (start, first) = self.parts(counter, bytes.len());
        let base = self.bytes.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: both parts are within the ring: `first` ends at its end at the latest, and the
        // rest is shorter than the ring. The bytes are of this process alone.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(start), first);
            std::ptr::copy_nonoverlapping(bytes.as_ptr().add(first), base, bytes.len() - first);
        }
    }

    /// Fills `out`, which is no longer than the ring.
    fn copy(&self, counter: u32, out: &mut [MaybeUninit<u8>]) {
        debug_assert!(out.len() <= self.len());
        let (start, first) = self.parts(counter, out.len());
        let base = self.bytes.as_ptr().cast::<u8>();
        let room = out.as_mut_ptr().cast::<u8>();
        // SAFETY: as above for the ring; both parts together are as long as `out`.
        unsafe {
            std::ptr::copy_nonoverlapping(base.add(start), room, first);
            std::ptr::copy_nonoverlapping(base, room.add(first), out.len() - first);
        }
    }
}

impl Stream<'_> {
    /// How many bytes fit, for a writer that has written `written`.
    ///
    /// # Errors
    /// [`Torn`]
    pub fn room(&self, written: u32) -> Result<usize, Torn> {
        let used = written.wrapping_sub(self.read.load(Ordering::Acquire)) as usize;
        self.data.len().checked_sub(used).ok_or(Torn)
    }

    /// Writes as many of these bytes as fit, and counts them in `written`.
    ///
    /// # Errors
    /// [`Torn`]
    pub fn put(&self, written: &mut u32, bytes: &[u8]) -> Result<usize, Torn> {
        let count = self.room(*written)?.min(bytes.len());
        let bytes = bytes.get(..count).unwrap_or_default();
        if !bytes.is_empty() {
            self.data.put(written.wrapping_add(self.start), bytes);
            *written = written.wrapping_add(u32::try_from(count).unwrap_or(0));
            self.written.store(*written, Ordering::Release);
        }
        Ok(count)
    }

    /// How many bytes there are, for a reader that has read `read`.
    ///
    /// # Errors
    /// [`Torn`]
    pub fn available(&self, read: u32) -> Result<usize, Torn> {
        let count = self.written.load(Ordering::Acquire).wrapping_sub(read) as usize;
        if count > self.data.len() { Err(Torn) } else { Ok(count) }
    }

    /// Appends at most `most` of the bytes that there are, and counts them in `read`.
    ///
    /// # Errors
    /// [`Torn`]
    pub fn take(&self, read: &mut u32, most: usize, out: &mut Vec<u8>) -> Result<usize, Torn> {
        let count = self.available(*read)?.min(most);
        out.reserve(count);
        let room = out.spare_capacity_mut().get_mut(..count).unwrap_or_default();
        let count = self.take_into(read, room)?;
        // SAFETY: there is room for so many, and they are written.
        unsafe { out.set_len(out.len() + count) };
        Ok(count)
    }

    /// Writes as many of the bytes that there are as fit to the beginning of `out`, and counts them
    /// in `read`.
    ///
    /// # Errors
    /// [`Torn`]
    pub fn take_into(&self, read: &mut u32, out: &mut [MaybeUninit<u8>]) -> Result<usize, Torn> {
        let count = self.available(*read)?.min(out.len());
        if let Some(out) = out.get_mut(..count)
            && count > 0
        {
            self.data.copy(read.wrapping_add(self.start), out);
            *read = read.wrapping_add(u32::try_from(count).unwrap_or(0));
            self.read.store(*read, Ordering::Release);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEN: usize = 16;

    proptest! {
        #[test]
        fn bytes_come_in_order(pieces: Vec<(Vec<u8>, usize)>, start: u32, place: u32) {
            let mut memory = [0u8; LEN];
            let (written, read) = (AtomicU32::new(start), AtomicU32::new(start));
            // SAFETY: the memory outlives the ring, and is used through it alone.
            let data = unsafe { Ring::from_raw(memory.as_mut_ptr(), LEN) };
            let stream = Stream { written: &written, read: &read, data, start: place };
            let (mut own_written, mut own_read) = (start, start);
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for (piece, most) in pieces {
                let count = stream.put(&mut own_written, &piece).unwrap();
                sent.extend_from_slice(&piece[..count]);
                stream.take(&mut own_read, most % 20, &mut received).unwrap();
                prop_assert!(received.len() <= sent.len() && sent.len() - received.len() <= LEN);
            }
            stream.take(&mut own_read, LEN, &mut received).unwrap();
            prop_assert_eq!(sent, received);
        }

        #[test]
        fn an_impossible_counter_is_refused(own: u32, other: u32) {
            let mut memory = [0u8; LEN];
            let word = AtomicU32::new(other);
            let mine = AtomicU32::new(own);
            // SAFETY: as above.
            let data = unsafe { Ring::from_raw(memory.as_mut_ptr(), LEN) };
            let mut out = Vec::new();
            let reader = Stream { written: &word, read: &mine, data, start: 0 };
            let taken = reader.take(&mut own.clone(), 100, &mut out);
            prop_assert_eq!(taken.is_err(), other.wrapping_sub(own) as usize > LEN);
            let writer = Stream { written: &mine, read: &word, data, start: 0 };
            let put = writer.put(&mut own.clone(), &[1; 100]);
            prop_assert_eq!(put.is_err(), own.wrapping_sub(other) as usize > LEN);
        }
    }
}
