//! The mapping of a region, and the states of its slots.
#![expect(unsafe_code, reason = "memory shared between processes")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::geometry::{DOWN_BYTES, Geometry, UP_BYTES};
use crate::state::{Kind, State};
use crate::stream::{Ring, Stream};

/// How far the first bytes of a stream are from where those of the slot before are, beyond the
/// stream's length. At a distance of a power of two all of them would compete for the same few
/// lines of the processor's caches.
const DOWN_STEP: u32 = 33 * 64;
const UP_STEP: u32 = 5 * 64;

/// A mapped region.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    geometry: Geometry,
    file: OwnedFd,
}

// SAFETY: all access is by atomics, or by copies that no reference outlives.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region. Its size can't be changed any more: an access beyond it would be fatal.
    ///
    /// # Errors
    /// Those of memfd_create(2) and mmap(2).
    pub fn create(geometry: Geometry) -> io::Result<Region> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(c"wsgi", flags)?;
        ftruncate(&file, geometry.bytes() as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Region::map(file, geometry)
    }

    /// Maps a region that another process has created.
    ///
    /// # Errors
    /// `InvalidData` if it has another size; those of mmap(2).
    pub fn map(file: OwnedFd, geometry: Geometry) -> io::Result<Region> {
        let bytes = geometry.bytes();
        if u64::try_from(fstat(&file)?.st_size).ok() != Some(bytes as u64) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel overlaps no memory in use.
        let start =
            unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0)? };
        let base = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Region { base, geometry, file })
    }

    /// Its size.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// A word of 32 bits at a place that the geometry has computed.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at.is_multiple_of(4) && at + 4 <= self.geometry.bytes());
        // SAFETY: the geometry's places are within the mapping and aligned; any bytes are valid
        // for an atomic, which is the only way that this memory is accessed.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// A word of 64 bits.
    pub(crate) fn long(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at + 8 <= self.geometry.bytes());
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    fn ring(&self, at: usize, len: u32) -> &Ring {
        // SAFETY: the geometry's streams are within the mapping, which `self` keeps; they are
        // copied only, and their lengths are powers of two.
        unsafe { Ring::from_raw(self.base.as_ptr().add(at), len as usize) }
    }

    /// The stream from the loop to the worker. The slot must exist.
    pub fn down(&self, slot: u32) -> Stream<'_> {
        let (own, other) = (self.geometry.loop_words(slot), self.geometry.worker_words(slot));
        let data = self.ring(self.geometry.down(slot), DOWN_BYTES);
        let start = slot.wrapping_mul(DOWN_STEP);
        Stream { written: self.word(own), read: self.word(other), data, start }
    }

    /// The stream from the worker to the loop. The slot must exist.
    pub fn up(&self, slot: u32) -> Stream<'_> {
        let (own, other) = (self.geometry.loop_words(slot), self.geometry.worker_words(slot));
        let data = self.ring(self.geometry.up(slot), UP_BYTES);
        let start = slot.wrapping_mul(UP_STEP);
        Stream { written: self.word(other + 4), read: self.word(own + 4), data, start }
    }

    /// The state of a slot; `None` if it is none.
    pub fn state(&self, slot: u32) -> Option<State> {
        State::unpack(self.long(self.geometry.state(slot)).load(Ordering::Acquire))
    }

    /// Changes a state, unless it has changed.
    pub fn change(&self, slot: u32, from: State, to: State) -> bool {
        let word = self.long(self.geometry.state(slot));
        let (from, to) = (from.pack(), to.pack());
        word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn words(&self) -> impl Iterator<Item = (u32, u64)> {
        let word = |slot| self.long(self.geometry.state(slot)).load(Ordering::Acquire);
        (0..self.geometry.slots()).map(move |slot| (slot, word(slot)))
    }

    fn states(&self) -> impl Iterator<Item = (u32, State)> {
        self.words().filter_map(|(slot, word)| Some((slot, State::unpack(word)?)))
    }

    /// Takes a free slot for a loop, with empty streams; `None` if there is none. One that was free
    /// before is tried first.
    pub fn fill(&self, lane: u16, before: Option<u32>) -> Option<(u32, State)> {
        let filling = State { kind: Kind::Filling, lane, ..State::FREE };
        let known = before.filter(|slot| self.change(*slot, State::FREE, filling));
        let slot = known.or_else(|| {
            let mut free = self.words().filter(|(_, word)| *word == State::FREE.pack());
            Some(free.find(|(slot, _)| self.change(*slot, State::FREE, filling))?.0)
        })?;
        let (own, other) = (self.geometry.loop_words(slot), self.geometry.worker_words(slot));
        for at in [own, own + 4, own + 12, other, other + 4, other + 8, other + 12] {
            self.word(at).store(0, Ordering::Relaxed);
        }
        Some((slot, filling))
    }

    /// Queues a filled slot; returns its state. A worker should be woken.
    pub fn publish(&self, slot: u32, filled: State) -> Option<State> {
        let ticket = self.word(self.geometry.ticket()).fetch_add(1, Ordering::Relaxed);
        let queued = State { ticket, ..filled.with(Kind::Queued) };
        self.change(slot, filled, queued).then_some(queued)
    }

    /// How many requests wait.
    pub fn queued(&self) -> usize {
        self.words().filter(|(_, word)| State::is_queued(*word)).count()
    }

    /// How many requests workers have, those whose loop has gone included.
    pub fn busy(&self) -> usize {
        let is_busy =
            |(_, state): &(u32, State)| matches!(state.kind, Kind::Taken | Kind::Abandoned);
        self.states().filter(is_busy).count()
    }

    /// Takes the request that has waited longest for a worker, and says whether others wait; `None`
    /// if none waits. `known` are those that were found before, which are tried first: they have
    /// waited longer than any that came later.
    pub fn take(&self, worker: u16, known: &mut Known) -> Option<(u32, State, bool)> {
        // Each failure is another worker's success.
        for _ in 0..self.geometry.slots() {
            while let Some((slot, queued)) = known.0.pop() {
                let taken = State { worker, ..queued.with(Kind::Taken) };
                if self.change(slot, queued, taken) {
                    return Some((slot, taken, !known.0.is_empty()));
                }
            }
            let waiting = self.words().filter(|(_, word)| State::is_queued(*word));
            known.0.extend(waiting.filter_map(|(slot, word)| Some((slot, State::unpack(word)?))));
            let (_, any) = *known.0.first()?;
            // Tickets wrap around, and differ by less than half of their range. The oldest is last.
            known.0.sort_unstable_by_key(|(_, state)| {
                any.ticket.wrapping_sub(state.ticket).cast_signed()
            });
        }
        None
    }

    /// A worker has written all; false if the loop has gone, and the slot is free.
    pub fn finish(&self, slot: u32, taken: State) -> bool {
        if self.change(slot, taken, taken.with(Kind::Done)) {
            return true;
        }
        self.change(slot, taken.with(Kind::Abandoned), State::FREE);
        false
    }

    /// A loop has no more use for a slot; true if its worker should look.
    pub fn release(&self, slot: u32, queued: State) -> bool {
        // The worker, and a death, change it meanwhile.
        for _ in 0..4 {
            let Some(now) = self.state(slot) else { break };
            if now.lane != queued.lane || now.ticket != queued.ticket {
                return false;
            }
            match now.kind {
                Kind::Taken if self.change(slot, now, now.with(Kind::Abandoned)) => return true,
                Kind::Free | Kind::Abandoned => return false,
                Kind::Taken => {}
                _ if self.change(slot, now, State::FREE) => return false,
                _ => {}
            }
        }
        // What a broken worker has made of it would be lost for good.
        self.long(self.geometry.state(slot)).store(State::FREE.pack(), Ordering::Release);
        false
    }

    /// A worker process has died: its requests are lost.
    pub fn bury_worker(&self, worker: u16) {
        for slot in 0..self.geometry.slots() {
            // A loop may change it once meanwhile: from taken to abandoned.
            for _ in 0..2 {
                let Some(now) = self.state(slot).filter(|now| now.worker == worker) else { break };
                let next = match now.kind {
                    Kind::Taken => now.with(Kind::Lost),
                    Kind::Abandoned => State::FREE,
                    _ => break,
                };
                if self.change(slot, now, next) {
                    break;
                }
            }
        }
        self.clear_place(u32::from(worker));
    }

    /// A loop has died: its requests are withdrawn.
    pub fn bury_lane(&self, lane: u16) {
        let own = |(_, state): &(u32, State)| state.lane == lane && state.kind != Kind::Free;
        for (slot, state) in self.states().filter(own) {
            if self.release(slot, state) {
                self.nudge(slot);
            }
        }
        self.clear_lane(u32::from(lane));
    }
}

/// Requests that a worker has seen to wait; the oldest is last.
#[derive(Debug, Default)]
pub struct Known(Vec<(u32, State)>);

impl AsFd for Region {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: nothing borrowed from `self` is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.geometry.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A worker that writes anything anywhere: what the loop does ends, and stays in bounds.
        #[test]
        fn nothing_that_a_worker_writes_harms_a_loop(scribbles: Vec<(u32, u64)>) {
            let region = region();
            let words = region.geometry.bytes() / 8;
            let mut own = Vec::new();
            for (at, value) in scribbles {
                if let Some((slot, filling)) = region.fill(1, None) {
                    let mut written = 0;
                    let _ = region.down(slot).put(&mut written, &[7; 100]);
                    own.extend(region.publish(slot, filling).map(|queued| (slot, queued)));
                }
                // Mostly words of states and streams, and some of all others.
                let place = at as usize % if at % 3 == 0 { words } else { words.min(1200) };
                region.long(place * 8).store(value, Ordering::Relaxed);
                region.wake_worker();
                region.collect(1, |slot| assert!(slot < region.geometry.slots()));
                prop_assert!(region.queued() <= region.geometry.slots() as usize);
                for (slot, _) in &own {
                    let (mut read, mut got) = (0, Vec::new());
                    let _ = region.up(*slot).take(&mut read, usize::MAX, &mut got);
                    prop_assert!(got.len() <= UP_BYTES as usize);
                    region.nudge(*slot);
                }
                if at % 5 == 0 {
                    for (slot, state) in own.drain(..) {
                        region.release(slot, state);
                    }
                }
            }
            region.bury_worker(1);
            region.bury_lane(1);
        }
    }

    fn region() -> Region {
        Region::create(Geometry::new(64, 4, 2)).unwrap()
    }

    fn queue(region: &Region, lane: u16) -> (u32, State) {
        let (slot, filling) = region.fill(lane, None).unwrap();
        (slot, region.publish(slot, filling).unwrap())
    }

    #[test]
    fn the_oldest_request_is_taken_first_and_only_once() {
        let region = region();
        // The counter of tickets wraps around meanwhile.
        region.word(0).store(u32::MAX - 1, Ordering::Relaxed);
        let queued: Vec<u32> = (0..5).map(|lane| queue(&region, lane % 3).0).collect();
        let withdrawn = region.state(queued[2]).unwrap();
        assert!(!region.release(queued[2], withdrawn));
        assert_eq!(region.queued(), 4);
        let mut known = Known::default();
        let taken: Vec<u32> = (0..4).map(|_| region.take(1, &mut known).unwrap().0).collect();
        assert_eq!(taken, [queued[0], queued[1], queued[3], queued[4]]);
        assert_eq!(region.take(1, &mut known), None);
    }

    #[test]
    fn what_was_seen_to_wait_may_be_withdrawn() {
        let region = region();
        let seen: Vec<(u32, State)> = (0..3).map(|_| queue(&region, 1)).collect();
        let mut known = Known::default();
        assert_eq!(region.take(1, &mut known).unwrap().0, seen[0].0);
        assert!(!region.release(seen[1].0, seen[1].1));
        let (last, _) = queue(&region, 1);
        let taken = [(); 2].map(|()| region.take(1, &mut known).unwrap().0);
        assert_eq!(taken, [seen[2].0, last]);
        assert_eq!(region.take(1, &mut known), None);
    }

    #[test]
    fn one_loop_looks_after_all_requests() {
        let region = region();
        let looks = [5, 6, 7, 8, 1].map(|now_ms| region.is_to_look(now_ms, 2));
        assert_eq!(looks, [true, false, true, false, true]);
    }

    #[test]
    fn bytes_pass_in_both_directions() {
        let region = region();
        let (slot, filling) = region.fill(3, None).unwrap();
        let (mut down, mut up) = (0, 0);
        let piece = vec![7; DOWN_BYTES as usize + 1];
        assert_eq!(region.down(slot).put(&mut down, &piece), Ok(DOWN_BYTES as usize));
        let queued = region.publish(slot, filling).unwrap();
        let (_, taken, has_more) = region.take(1, &mut Known::default()).unwrap();
        assert!(!has_more);
        assert_eq!((taken.lane, taken.worker), (3, 1));
        let (mut got, mut read) = (Vec::new(), 0);
        region.down(slot).take(&mut read, usize::MAX, &mut got).unwrap();
        assert_eq!(got, piece[1..]);
        region.up(slot).put(&mut up, b"answer").unwrap();
        assert_eq!((region.queued(), region.busy()), (0, 1));
        assert!(region.tell_loop(3, slot) && !region.tell_loop(3, slot));
        let mut seen = Vec::new();
        region.collect(3, |slot| seen.push(slot));
        region.collect(3, |slot| seen.push(slot));
        assert_eq!(seen, [slot]);
        assert!(region.finish(slot, taken));
        assert_eq!((region.state(slot).unwrap().kind, region.busy()), (Kind::Done, 0));
        assert!(!region.release(slot, queued));
        assert_eq!(region.state(slot), Some(State::FREE));
    }

    #[test]
    fn a_process_that_dies_leaves_nothing_behind() {
        let region = region();
        let slots: Vec<(u32, State)> = (0..4).map(|_| queue(&region, 2)).collect();
        let one = region.take(0, &mut Known::default()).unwrap();
        let other = region.take(1, &mut Known::default()).unwrap();
        region.bury_worker(0);
        assert_eq!(region.state(one.0).unwrap().kind, Kind::Lost);
        assert_eq!(region.state(other.0).unwrap().kind, Kind::Taken);
        assert!(region.release(other.0, other.1), "its worker should look");
        assert!(!region.finish(other.0, other.1));
        assert_eq!(region.state(other.0), Some(State::FREE));
        region.bury_lane(2);
        assert_eq!(
            slots.iter().filter(|slot| region.state(slot.0) != Some(State::FREE)).count(),
            0
        );
        let (slot, _) = queue(&region, 1);
        region.long(region.geometry.state(slot)).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(region.state(slot), None);
    }

    #[test]
    fn a_sleeping_thread_is_woken_once() {
        let region = region();
        assert!(!region.wake_worker() && !region.has_sleepers());
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                region.sleep(1, || region.queued() > 0);
                region.is_up(1);
                region.take(1, &mut Known::default())
            });
            while !region.has_sleepers() {
                std::thread::yield_now();
            }
            queue(&region, 0);
            assert!(region.wake_worker());
            assert!(sleeper.join().unwrap().is_some());
        });
        assert!(!region.wake_worker() && !region.has_sleepers(), "none sleeps any more");
    }

    #[test]
    fn its_size_is_fixed() {
        let region = region();
        assert!(ftruncate(&region.file, 0).is_err());
        let file = region.file.try_clone().unwrap();
        assert!(Region::map(file, Geometry::new(128, 4, 2)).is_err());
    }
}
