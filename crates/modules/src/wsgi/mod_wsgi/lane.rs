//! A loop's part of the memory that it shares with the workers of an application group.

mod slot;

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ::wsgi::Region;
use rt::{Alarm, Bell, Deadline, Handle, Pipe};
use rustix::net::{SendFlags, send};

pub(super) use self::slot::Slot;

/// How long a request waits before another thread is woken.
const LOOK_AFTER: Duration = Duration::from_millis(5);

/// A loop that has looked later than this ago goes on to do so, and the others need not.
const LOOKED_MS: u32 = 4;

/// How often the others check that one does.
const CHECK_AFTER: Duration = Duration::from_millis(100);

/// How long requests of a loop wait for others that come at the same time before it wakes workers.
/// One that is woken takes the CPU from this loop, where they share one.
const TOGETHER: Duration = Duration::from_micros(100);

/// How often a loop looks for ends of requests as long as there are some.
const LISTEN_AFTER: Duration = Duration::from_millis(1);

/// What the companion tells by a lease: no more requests are taken, or a process has ended.
pub(super) const RETIRED: u8 = b'R';
pub(super) const LOST: u8 = b'L';

thread_local! {
    /// The lanes of this thread's loop, by the place of their process group in memory, and the name
    /// of their application group.
    static LANES: RefCell<Vec<(usize, Vec<u8>, Rc<Lane>)>> = const { RefCell::new(Vec::new()) };
}

/// A lane.
pub(super) struct Lane {
    region: Region,
    number: u16,
    bell: Bell,
    /// The other end is the companion's: it sees the end of this loop, and this loop its end.
    lease: RefCell<Pipe>,
    /// Slots that this loop has given back: they are free, unless another one uses them.
    free: RefCell<Vec<u32>>,
    /// Who waits for what happens in a slot.
    wakers: RefCell<Vec<Option<Waker>>>,
    is_gone: Cell<bool>,
    /// Its workers take no more requests, and finish those that they have.
    is_retired: Cell<bool>,
    /// Whether the companion starts processes while requests wait.
    grows: bool,
    /// Whether a task looks for requests that no process takes.
    is_looking: Cell<bool>,
    /// Whether something has happened in a slot since it looked.
    has_news: Cell<bool>,
    /// Requests for which no worker was woken yet.
    untold: Cell<u32>,
    /// The task that wakes workers.
    teller: RefCell<Option<Waker>>,
}

/// The lane to an application group of a process group, if this loop has one.
pub(super) fn find(group: usize, application: &[u8]) -> Option<Rc<Lane>> {
    LANES.with_borrow(|lanes| {
        let is_it = |(other, name, _): &&(usize, Vec<u8>, Rc<Lane>)| {
            *other == group && name.as_slice() == application
        };
        lanes.iter().find(is_it).map(|(.., lane)| lane.clone())
    })
}

impl Lane {
    /// Begins to use a lane of this loop: its region, number, bell and lease. The companion may
    /// start processes if it `grows`.
    pub fn open(
        (group, application): (usize, &[u8]),
        (region, number): (Region, u16),
        (bell, lease): (Bell, Pipe),
        grows: bool,
    ) -> Rc<Lane> {
        if let Some(other) = find(group, application) {
            // Another request of this loop was faster.
            return other;
        }
        let handle = lease.handle();
        let slots = region.geometry().slots() as usize;
        let lane = Rc::new(Lane {
            region,
            number,
            bell,
            lease: RefCell::new(lease),
            free: RefCell::default(),
            wakers: RefCell::new(vec![None; slots]),
            is_gone: Cell::new(false),
            is_retired: Cell::new(false),
            grows,
            is_looking: Cell::new(false),
            has_news: Cell::new(false),
            untold: Cell::new(0),
            teller: RefCell::default(),
        });
        let entry = (group, application.to_vec(), lane.clone());
        LANES.with_borrow_mut(|lanes| lanes.push(entry));
        let (driven, telling) = (lane.clone(), lane.clone());
        handle.spawn_local(async move {
            std::future::poll_fn(|cx| driven.poll_gone(cx)).await;
            driven.go();
        });
        handle.spawn_local(async move { telling.tell().await });
        lane
    }

    /// Puts a request into a slot, with the first of these bytes of its head; returns how many they
    /// are. `None` if there is no free slot.
    pub fn send(self: &Rc<Self>, handle: &Handle, head: &[u8]) -> Option<(Slot, usize)> {
        let region = &self.region;
        let known = self.free.borrow_mut().pop();
        let (number, state) = region.fill(self.number, known)?;
        let lane = self.clone();
        let mut slot = Slot { lane, number, state, written: 0, read: 0, alarm: Alarm::new(handle) };
        let taken = region.down(number).put(&mut slot.written, head).ok()?;
        slot.state = region.publish(number, state)?;
        self.wake_workers_later();
        if !self.is_looking.replace(true) {
            region.set_looks(self.number, true);
            let lane = self.clone();
            let own = handle.clone();
            handle.spawn_local(async move { lane.look(&own).await });
        }
        Some((slot, taken))
    }

    /// Wakes workers once the requests of this turn have been put into their slots.
    fn wake_workers_later(&self) {
        let untold = self.untold.get();
        self.untold.set(untold + 1);
        match &*self.teller.borrow() {
            Some(teller) if untold == 0 => teller.wake_by_ref(),
            Some(_) => {}
            None => self.wake_workers(),
        }
    }

    /// Wakes workers for requests, until the companion has gone: once the sockets have no more of
    /// them, since each worker that is woken may take the CPU from this loop.
    async fn tell(&self) {
        while std::future::poll_fn(|cx| self.poll_untold(cx)).await {
            let began = Instant::now();
            loop {
                let seen = self.untold.get();
                rt::after_sockets().await;
                if self.untold.get() == seen || began.elapsed() >= TOGETHER {
                    break;
                }
            }
            self.wake_workers();
        }
    }

    /// Waits for requests of which no worker knows; false once the companion has gone.
    fn poll_untold(&self, cx: &Context<'_>) -> Poll<bool> {
        let mut teller = self.teller.borrow_mut();
        if !teller.as_ref().is_some_and(|teller| teller.will_wake(cx.waker())) {
            *teller = Some(cx.waker().clone());
        }
        match (self.is_gone.get(), self.untold.get()) {
            (true, _) => Poll::Ready(false),
            (false, 0) => Poll::Pending,
            (false, _) => Poll::Ready(true),
        }
    }

    fn wake_workers(&self) {
        let most = self.region.geometry().processes();
        for _ in 0..self.untold.take().min(most) {
            // One that was woken may have taken all of them meanwhile, and sleep again.
            if self.region.queued() == 0 {
                return;
            }
            if !self.region.wake_worker() {
                return self.tell_starving();
            }
        }
    }

    /// A thread that was woken may not come to run: another one of its process does not give up the
    /// lock, or the process is about to end. As long as requests wait, others are woken, too: by
    /// one loop for all, since hundreds of children may have requests that wait.
    ///
    /// As long as requests end, their workers need not ring the bell: it looks often enough.
    async fn look(&self, handle: &Handle) {
        let mut pause = LISTEN_AFTER;
        loop {
            handle.sleep(pause).await;
            self.collect();
            let is_over = self.is_retired.get() || self.region.queued() == 0;
            let has_news = self.has_news.take();
            self.region.set_looks(self.number, has_news && !is_over);
            if is_over || !has_news {
                // What a worker has told before it could see that.
                self.collect();
            }
            if is_over {
                break self.is_looking.set(false);
            }
            let now_ms = (handle.clock().wall_us() / 1000) as u32;
            let is_to_look = self.region.is_to_look(now_ms, LOOKED_MS);
            pause = match (has_news, is_to_look) {
                (true, _) => LISTEN_AFTER,
                (false, true) => LOOK_AFTER,
                (false, false) => CHECK_AFTER,
            };
            if is_to_look {
                self.region.wake_worker();
                self.tell_starving();
            }
        }
    }

    /// Wakes who waits for a slot in which something has happened.
    fn collect(&self) {
        self.region.collect(self.number, |slot| {
            self.has_news.set(true);
            self.wake(slot);
        });
    }

    /// The companion may start more processes.
    fn tell_starving(&self) {
        if self.grows && self.region.is_starving() {
            let _ = send(self.lease.borrow().as_fd(), b"s", SendFlags::NOSIGNAL);
        }
    }

    /// How many requests wait, from all loops.
    pub fn waiting(&self) -> usize {
        self.region.queued()
    }

    /// Wakes tasks that wait for a slot in which something has happened; ready when the companion
    /// has gone.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.bell.poll_rung(cx) {
                Poll::Ready(Ok(())) => {
                    self.collect();
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        loop {
            let mut notice = Vec::with_capacity(8);
            match self.lease.borrow_mut().poll_read(cx, &mut notice, Deadline::NEVER) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) if notice.first() == Some(&RETIRED) => self.retire(),
                // Requests may be lost.
                Poll::Ready(Ok(1..)) => self.wake_all(),
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
    }

    /// New requests ask for another lane.
    fn retire(&self) {
        self.is_retired.set(true);
        LANES.with_borrow_mut(|lanes| lanes.retain(|(.., lane)| !std::ptr::eq(&**lane, self)));
        self.wake_all();
    }

    fn wake_all(&self) {
        let count = self.wakers.borrow().len();
        (0..count).filter_map(|slot| u32::try_from(slot).ok()).for_each(|slot| self.wake(slot));
    }

    fn wake(&self, slot: u32) {
        let waker = self.wakers.borrow_mut().get_mut(slot as usize).and_then(Option::take);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The companion has died, and its workers with it.
    fn go(&self) {
        self.is_gone.set(true);
        if let Some(teller) = self.teller.take() {
            teller.wake();
        }
        self.retire();
    }
}
