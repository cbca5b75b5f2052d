//! The deadlines of one loop, for ten thousand connections that move theirs with every request.
//!
//! A connection owns a slot. Moving its deadline writes one number into the slot; the queue is
//! touched only if the new deadline precedes the slot's entry in it. An entry that comes due reads
//! the slot, and is queued again if the deadline has moved. A request thus costs no queue
//! operation, and one tokio timer serves the whole loop.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::clock::{Clock, ceil_ms};
use crate::reactor::LoopState;

/// Deadlines at least this far away are rounded up to [`COARSE_STEP_MS`]; nearer ones are exact.
const COARSE_FROM_MS: u64 = 1000;
/// The resolution of far deadlines, so that many of them share one wake-up.
const COARSE_STEP_MS: u64 = 50;
/// Slots for which room is made at least.
const SLOTS_MIN: usize = 64;
/// The longest sleep of the loop's timer; if nothing is due then, it sleeps again.
const SLEEP_MAX_MS: u64 = 3_600_000;

/// A point in time on the loop's monotonic clock, in ms. Made by [`Handle::deadline`].
///
/// [`Handle::deadline`]: crate::Handle::deadline
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// A deadline that never passes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The deadline at `ms` on the loop's monotonic clock ([`Clock::now_ms`]).
    pub const fn at_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// The deadline, in ms on the loop's monotonic clock.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The deadline `delay` after the cached time of `clock`.
    pub fn after(clock: &Clock, delay: Duration) -> Self {
        Self(clock.now_us().div_ceil(1000).saturating_add(ceil_ms(delay)))
    }

    /// Whether the cached time of `clock` has reached the deadline.
    pub fn has_passed(self, clock: &Clock) -> bool {
        self.0 <= clock.now_ms()
    }
}

/// The deadlines of one loop.
#[derive(Default)]
pub(crate) struct Timers {
    inner: RefCell<Queue>,
}

#[derive(Default)]
struct Queue {
    slots: Vec<Slot>,
    free: Vec<u32>,
    entries: BinaryHeap<Reverse<(u64, u32)>>,
    due: Vec<Waker>,
    driver: Option<Waker>,
    /// When the driver wakes next, in ms.
    driver_due: u64,
    /// The slot at which [`Timers::rouse`] starts.
    rouse_from: usize,
}

struct Slot {
    deadline: u64,
    /// The due time of the slot's only valid entry; `u64::MAX` without one.
    scheduled: u64,
    waker: Option<Waker>,
}

/// A slot in [`Timers`], returned by [`Timers::release`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotId(u32);

impl Timers {
    /// Allocates a slot for one connection or sleeper.
    pub fn acquire(&self) -> SlotId {
        let mut queue = self.inner.borrow_mut();
        if let Some(id) = queue.free.pop() {
            return SlotId(id);
        }
        queue.make_slots();
        queue.slots.push(Slot { deadline: u64::MAX, scheduled: u64::MAX, waker: None });
        SlotId(u32::try_from(queue.slots.len() - 1).unwrap_or(u32::MAX))
    }

    /// Frees a slot. Its queue entry stays, for the slot's next owner.
    pub fn release(&self, id: SlotId) {
        let waker = {
            let mut queue = self.inner.borrow_mut();
            queue.free.push(id.0);
            let slot = &mut queue.slots[id.0 as usize];
            slot.deadline = u64::MAX;
            slot.waker.take()
        };
        // Dropped after the borrow: it may be the last reference to a task that owns timers.
        drop(waker);
    }

    /// Wakes `waker` once `deadline` has passed; replaces the slot's previous waker.
    pub fn arm(&self, id: SlotId, deadline: Deadline, waker: &Waker, now_ms: u64) {
        let mut queue = self.inner.borrow_mut();
        let slot = &mut queue.slots[id.0 as usize];
        slot.deadline = deadline.0;
        let old = match &slot.waker {
            Some(known) if known.will_wake(waker) => None,
            _ => slot.waker.replace(waker.clone()),
        };
        let mut driver = None;
        if deadline.0 < slot.scheduled {
            driver = queue.schedule(id.0, deadline.0, now_ms);
        }
        drop(queue);
        drop(old);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Wakes up to `count` waiters before their deadlines, continuing with others at the next call.
    pub fn rouse(&self, count: usize) {
        let roused: Vec<Waker> = {
            let mut queue = self.inner.borrow_mut();
            let from = queue.rouse_from.min(queue.slots.len());
            let (before, behind) = queue.slots.split_at(from);
            let mut seen = 0;
            let wakers = behind.iter().chain(before).inspect(|_| seen += 1);
            let roused = wakers.filter_map(|slot| slot.waker.clone()).take(count).collect();
            queue.rouse_from = (from + seen) % queue.slots.len().max(1);
            roused
        };
        roused.into_iter().for_each(Waker::wake);
    }

    /// Wakes all waiters whose deadline is at or before `now_ms`; returns the next due time, in ms.
    fn fire(&self, now_ms: u64) -> u64 {
        let mut due = {
            let mut queue = self.inner.borrow_mut();
            queue.collect_due(now_ms);
            std::mem::take(&mut queue.due)
        };
        for waker in due.drain(..) {
            waker.wake();
        }
        let mut queue = self.inner.borrow_mut();
        queue.due = due;
        queue.driver_due = queue.entries.peek().map_or(u64::MAX, |entry| entry.0.0);
        queue.driver_due
    }
}

impl Queue {
    /// Queues an entry for the slot; returns the driver's waker if the driver would wake too late.
    fn schedule(&mut self, id: u32, deadline: u64, now_ms: u64) -> Option<Waker> {
        if deadline == u64::MAX {
            return None;
        }
        let due = if deadline.saturating_sub(now_ms) >= COARSE_FROM_MS {
            deadline.next_multiple_of(COARSE_STEP_MS)
        } else {
            deadline
        };
        // An entry that is due no later than the rounded time is early enough.
        if due >= self.slots[id as usize].scheduled {
            return None;
        }
        self.slots[id as usize].scheduled = due;
        self.make_room();
        self.entries.push(Reverse((due, id)));
        if due < self.driver_due { self.driver.clone() } else { None }
    }

    fn collect_due(&mut self, now_ms: u64) {
        while let Some(&Reverse((due, id))) = self.entries.peek() {
            if due > now_ms {
                return;
            }
            self.entries.pop();
            let slot = &mut self.slots[id as usize];
            if slot.scheduled != due {
                continue;
            }
            slot.scheduled = u64::MAX;
            if slot.deadline <= now_ms {
                slot.deadline = u64::MAX;
                self.due.extend(slot.waker.take());
            } else {
                let deadline = slot.deadline;
                self.schedule(id, deadline, now_ms);
            }
        }
    }

    /// Makes room for another slot, for a quarter more of them where there is none: twice as many
    /// would cost each of many idle connections the room of another.
    fn make_slots(&mut self) {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact((self.slots.len() / 4).max(SLOTS_MIN));
        }
    }

    /// Removes outdated entries instead of growing the queue, if at least a third are outdated: an
    /// idle connection then pays for one entry, not for those of its past deadlines.
    fn make_room(&mut self) {
        let is_full = self.entries.len() == self.entries.capacity();
        if !is_full || self.entries.len() < self.slots.len() + self.slots.len() / 2 {
            return;
        }
        let slots = &self.slots;
        self.entries.retain(|entry| slots[entry.0.1 as usize].scheduled == entry.0.0);
    }
}

/// The task that owns the loop's only tokio timer.
pub(crate) async fn drive(state: Rc<LoopState>) {
    let mut sleep = pin!(tokio::time::sleep(Duration::from_millis(SLEEP_MAX_MS)));
    std::future::poll_fn(move |cx| {
        state.timers.inner.borrow_mut().driver = Some(cx.waker().clone());
        loop {
            let now_ms = state.clock.refresh() / 1000;
            let due = state.timers.fire(now_ms);
            let wait = due.saturating_sub(now_ms).min(SLEEP_MAX_MS);
            if wait == 0 {
                continue;
            }
            sleep.as_mut().reset(tokio::time::Instant::now() + Duration::from_millis(wait));
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::<()>::Pending;
            }
        }
    })
    .await;
}

/// Resolves when its deadline has passed. Made by [`Handle::sleep_until`].
///
/// [`Handle::sleep_until`]: crate::Handle::sleep_until
pub struct Sleep {
    state: Rc<LoopState>,
    slot: SlotId,
    deadline: Deadline,
}

impl Sleep {
    pub(crate) fn new(state: Rc<LoopState>, deadline: Deadline) -> Self {
        let slot = state.timers.acquire();
        Self { state, slot, deadline }
    }

    /// Moves the deadline; takes effect at the next poll.
    pub fn reset(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.deadline.has_passed(&self.state.clock) {
            return Poll::Ready(());
        }
        self.state.timers.arm(self.slot, self.deadline, cx.waker(), self.state.clock.now_ms());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.state.timers.release(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_deadlines_keep_the_queue_small() {
        let timers = Timers::default();
        let slots: Vec<SlotId> = (0..10).map(|_| timers.acquire()).collect();
        for now in 0..100_000_u64 {
            // Alternates later and earlier deadlines, as Timeout and KeepAliveTimeout do.
            let delay = if now % 2 == 0 { 60_000 } else { 5_000 };
            let slot = slots[usize::try_from(now % 10).unwrap()];
            timers.arm(slot, Deadline::at_ms(now + delay), Waker::noop(), now);
            timers.fire(now);
        }
        assert!(timers.inner.borrow().entries.capacity() <= 2 * slots.len());
        let first_again = timers.inner.borrow().slots.len();
        for slot in slots {
            timers.release(slot);
        }
        timers.acquire();
        assert_eq!(timers.inner.borrow().slots.len(), first_again);
    }

    #[test]
    fn far_deadlines_share_a_wake_up_and_near_ones_are_exact() {
        let timers = Timers::default();
        let [far, farther, near] = [timers.acquire(), timers.acquire(), timers.acquire()];
        timers.arm(far, Deadline::at_ms(5_001), Waker::noop(), 0);
        timers.arm(farther, Deadline::at_ms(5_049), Waker::noop(), 0);
        assert_eq!(timers.fire(0), 5_050);
        timers.arm(near, Deadline::at_ms(999), Waker::noop(), 0);
        assert_eq!(timers.fire(0), 999);
        assert_eq!(timers.fire(999), 5_050);
        assert_eq!(timers.fire(5_050), u64::MAX);
    }

    /// Counts its wake-ups.
    #[derive(Default)]
    struct Woken(std::sync::atomic::AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[test]
    fn some_are_roused_and_then_others() {
        let timers = Timers::default();
        timers.rouse(3);
        let woken: Vec<std::sync::Arc<Woken>> = (0..4).map(|_| Default::default()).collect();
        for woken in &woken {
            let waker = Waker::from(woken.clone());
            timers.arm(timers.acquire(), Deadline::at_ms(1000), &waker, 0);
        }
        let counts = || woken.iter().map(|w| w.0.load(std::sync::atomic::Ordering::Relaxed));
        timers.rouse(3);
        assert_eq!(counts().collect::<Vec<_>>(), [1, 1, 1, 0]);
        timers.rouse(3);
        assert_eq!(counts().collect::<Vec<_>>(), [2, 2, 1, 1]);
        timers.rouse(99);
        assert_eq!(counts().sum::<usize>(), 10);
    }

    #[test]
    fn a_deadline_that_never_comes_is_not_queued() {
        let timers = Timers::default();
        let slot = timers.acquire();
        timers.arm(slot, Deadline::NEVER, Waker::noop(), 0);
        assert_eq!(timers.fire(u64::MAX - 1), u64::MAX);
        assert!(timers.inner.borrow().entries.is_empty());
    }
}
