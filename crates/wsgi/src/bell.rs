//! Who is woken when something has happened, by words that a dead process can leave wrong: those
//! of a place and of a lane are cleared when their process has ended.

use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;

use rustix::thread::futex;

use crate::geometry::DOWN_BYTES;
use crate::region::Region;

/// How long a thread with a request waits before it looks by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// A worker process's words.
struct Place {
    /// What its threads sleep on.
    bell: usize,
    /// How many sleep.
    sleepers: usize,
    /// Whether one is on its way.
    waking: usize,
}

impl Region {
    fn place(&self, process: u32) -> Place {
        let at = self.geometry().place(process);
        Place { bell: at, sleepers: at + 4, waking: at + 8 }
    }

    /// Wakes a thread of the process of which most sleep, unless one is on its way there. Those
    /// that run look by themselves when they are done. False if all are busy.
    pub fn wake_worker(&self) -> bool {
        // What was queued before must be seen by a thread that is not seen here to sleep.
        fence(SeqCst);
        let mut best: Option<(u32, Place)> = None;
        let mut is_waking = false;
        for process in 0..self.geometry().processes() {
            let place = self.place(process);
            let sleepers = self.word(place.sleepers).load(SeqCst);
            if sleepers == 0 {
                continue;
            }
            if self.word(place.waking).load(SeqCst) != 0 {
                is_waking = true;
            } else if best.as_ref().is_none_or(|(most, _)| sleepers > *most) {
                best = Some((sleepers, place));
            }
        }
        let Some((_, place)) = best else { return is_waking };
        if self.word(place.waking).swap(1, SeqCst) == 0 {
            self.word(place.bell).fetch_add(1, SeqCst);
            let _ = futex::wake(self.word(place.bell), futex::Flags::empty(), 1);
        }
        true
    }

    /// Whether a thread sleeps, or was woken and is not yet up.
    pub fn has_sleepers(&self) -> bool {
        let sleepers = |process| self.word(self.place(process).sleepers).load(SeqCst);
        (0..self.geometry().processes()).any(|process| sleepers(process) > 0)
    }

    /// Sleeps until a thread of this process is woken, unless `is_needed`.
    pub fn sleep(&self, process: u32, is_needed: impl Fn() -> bool) {
        let place = self.place(process);
        // Before it counts as one that sleeps: who wakes it from then on changes the bell, and it
        // must not sleep on, or `waking` would stay set and all others would count on it.
        let seen = self.word(place.bell).load(SeqCst);
        self.word(place.sleepers).fetch_add(1, SeqCst);
        fence(SeqCst);
        // Or it was chosen while it was up, by the count of when it slept before.
        let is_chosen = self.word(place.waking).load(SeqCst) != 0;
        if !is_chosen && !is_needed() {
            let _ = futex::wait(self.word(place.bell), futex::Flags::empty(), seen, None);
        }
        let left = |sleepers: u32| sleepers.checked_sub(1);
        let _ = self.word(place.sleepers).fetch_update(SeqCst, SeqCst, left);
    }

    /// A thread of this process is up, and about to look for a request.
    pub fn is_up(&self, process: u32) {
        let waking = self.word(self.place(process).waking);
        if waking.load(SeqCst) != 0 {
            waking.store(0, SeqCst);
        }
        fence(SeqCst);
    }

    /// Wakes all threads of this process.
    pub fn wake_all(&self, process: u32) {
        let bell = self.word(self.place(process).bell);
        bell.fetch_add(1, SeqCst);
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX.cast_unsigned());
    }

    pub(crate) fn clear_place(&self, process: u32) {
        let place = self.place(process);
        for at in [place.sleepers, place.waking] {
            self.word(at).store(0, SeqCst);
        }
    }

    /// Something has happened in a slot of a loop; true if its bell must be rung.
    pub fn tell_loop(&self, lane: u16, slot: u32) -> bool {
        self.add_news(lane, slot) && self.rings(u32::from(lane))
    }

    /// The same if more may happen soon. False also if the loop looks by itself: its bell may wait
    /// until [`Region::must_ring`].
    pub fn tell_loop_soon(&self, lane: u16, slot: u32) -> bool {
        let lane_word = u32::from(lane);
        // The slot is in the set before it is asked whether the loop looks: one that ceases to look
        // says so before it looks for the last time.
        self.add_news(lane, slot)
            && self.word(self.geometry().looks(lane_word)).load(SeqCst) == 0
            && self.rings(lane_word)
    }

    /// Whether the set of a loop has slots that the loop has not seen, and its bell must be rung.
    pub fn must_ring(&self, lane: u16) -> bool {
        let lane = u32::from(lane);
        let has_news = |word| self.long(self.geometry().set_word(lane, word)).load(SeqCst) != 0;
        lane < self.geometry().lanes()
            && (0..self.geometry().set_words()).any(has_news)
            && self.rings(lane)
    }

    /// Puts a slot into the set of a loop; false if there is no such lane.
    fn add_news(&self, lane: u16, slot: u32) -> bool {
        let (lane, word) = (u32::from(lane), slot as usize / 64);
        if lane >= self.geometry().lanes() {
            return false;
        }
        self.long(self.geometry().set_word(lane, word)).fetch_or(1 << (slot % 64), SeqCst);
        true
    }

    fn rings(&self, lane: u32) -> bool {
        self.word(self.geometry().rung(lane)).swap(1, SeqCst) == 0
    }

    /// Says whether the loop looks by itself from time to time. If it ceases to, it must look once
    /// more afterwards.
    pub fn set_looks(&self, lane: u16, looks: bool) {
        self.word(self.geometry().looks(u32::from(lane))).store(u32::from(looks), SeqCst);
        fence(SeqCst);
    }

    /// Calls `each` with the slots of a loop in which something has happened. From now on its bell
    /// is rung again.
    pub fn collect(&self, lane: u16, mut each: impl FnMut(u32)) {
        let lane = u32::from(lane);
        self.word(self.geometry().rung(lane)).store(0, SeqCst);
        for (word, base) in (0..self.geometry().set_words()).zip((0u32..).step_by(64)) {
            let set = self.long(self.geometry().set_word(lane, word));
            let mut bits = if set.load(SeqCst) == 0 { 0 } else { set.swap(0, SeqCst) };
            while bits != 0 {
                each(base + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    pub(crate) fn clear_lane(&self, lane: u32) {
        self.word(self.geometry().rung(lane)).store(0, SeqCst);
        self.word(self.geometry().looks(lane)).store(0, SeqCst);
        for word in 0..self.geometry().set_words() {
            self.long(self.geometry().set_word(lane, word)).store(0, SeqCst);
        }
    }

    /// A number that changes when the loop has changed something in a slot.
    pub fn changes(&self, slot: u32) -> u32 {
        self.word(self.geometry().loop_words(slot) + 8).load(Acquire)
    }

    /// Waits, in the worker that has a slot, until [`Region::changes`] is another one, or for some
    /// seconds.
    pub fn wait_for_change(&self, slot: u32, seen: u32) {
        let waits = self.word(self.geometry().worker_words(slot) + 8);
        waits.store(1, SeqCst);
        let changes = self.word(self.geometry().loop_words(slot) + 8);
        let timeout = futex::Timespec::try_from(PATIENCE).ok();
        let _ = futex::wait(changes, futex::Flags::empty(), seen, timeout.as_ref());
        waits.store(0, SeqCst);
    }

    /// The loop has changed something in a slot: wakes the worker if it waits for that.
    pub fn nudge(&self, slot: u32) {
        let changes = self.word(self.geometry().loop_words(slot) + 8);
        changes.fetch_add(1, SeqCst);
        if self.word(self.geometry().worker_words(slot) + 8).load(SeqCst) != 0 {
            let _ = futex::wake(changes, futex::Flags::empty(), 1);
        }
    }

    /// The loop waits for room in the stream to the worker.
    pub fn wait_for_room(&self, slot: u32) {
        self.word(self.geometry().loop_words(slot) + 12).fetch_or(FULL, SeqCst);
        // The worker either sees this flag, or has made the room that is looked for next.
        fence(SeqCst);
    }

    /// Whether the loop waits for room, which it does no more. The reader has read `read`: the loop
    /// waits on until half of the stream is room, since each wake costs both sides a switch.
    pub fn takes_wait_for_room(&self, slot: u32, read: u32) -> bool {
        if self.down(slot).available(read).is_ok_and(|left| left > DOWN_BYTES as usize / 2) {
            return false;
        }
        let flags = self.word(self.geometry().loop_words(slot) + 12);
        // What was read before must be seen by a loop that is not seen here to wait.
        fence(SeqCst);
        flags.load(SeqCst) & FULL != 0 && flags.fetch_and(!FULL, SeqCst) & FULL != 0
    }

    /// The loop writes nothing more to the worker, which must not take what it has for all.
    pub fn close_down(&self, slot: u32) {
        self.word(self.geometry().loop_words(slot) + 12).fetch_or(CLOSED, SeqCst);
        self.nudge(slot);
    }

    /// Whether the loop writes nothing more.
    pub fn is_down_closed(&self, slot: u32) -> bool {
        self.word(self.geometry().loop_words(slot) + 12).load(SeqCst) & CLOSED != 0
    }

    /// Whether this loop is to look after requests that wait: none has done so for `pause_ms`.
    /// `now_ms` is the time, which may go round.
    pub fn is_to_look(&self, now_ms: u32, pause_ms: u32) -> bool {
        let looked = self.word(self.geometry().looked());
        let before = looked.load(SeqCst);
        now_ms.wrapping_sub(before) >= pause_ms
            && looked.compare_exchange(before, now_ms, SeqCst, SeqCst).is_ok()
    }

    /// Requests wait, and no thread is idle; true if that is news.
    pub fn is_starving(&self) -> bool {
        self.word(self.geometry().starving()).swap(1, SeqCst) == 0
    }

    /// From now on it is news again.
    pub fn forget_starving(&self) {
        self.word(self.geometry().starving()).store(0, SeqCst);
    }
}

/// Flags of a slot.
const FULL: u32 = 1;
const CLOSED: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;

    #[test]
    fn a_loop_that_looks_is_not_rung_for_each_end() {
        let region = Region::create(Geometry::new(128, 4, 2)).unwrap();
        region.set_looks(2, true);
        assert!(!region.tell_loop_soon(2, 5) && !region.tell_loop_soon(2, 70));
        assert!(region.must_ring(2) && !region.must_ring(2), "once until it has looked");
        let mut seen = Vec::new();
        region.collect(2, |slot| seen.push(slot));
        assert_eq!(seen, [5, 70]);
        assert!(!region.must_ring(2), "there is nothing to tell");
        region.set_looks(2, false);
        assert!(region.tell_loop_soon(2, 5) && !region.tell_loop_soon(2, 6));
        assert!(!region.tell_loop_soon(4, 1) && !region.must_ring(4), "no such lane");
        region.bury_lane(2);
        assert!(!region.must_ring(2));
    }
}
