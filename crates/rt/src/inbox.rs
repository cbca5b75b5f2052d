//! A bounded queue into a loop, filled by the other loops of its process.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// [`Inbox::waiting`] of a closed inbox.
const CLOSED: usize = usize::MAX;

/// A queue into one loop. Any thread may put an item in, which wakes the loop by its eventfd.
#[derive(Debug)]
pub struct Inbox<T> {
    limit: usize,
    /// The number of queued items, readable without the lock; [`CLOSED`] at the end.
    waiting: AtomicUsize,
    queue: Mutex<Queue<T>>,
}

#[derive(Debug)]
struct Queue<T> {
    things: VecDeque<T>,
    taker: Option<Waker>,
    is_closed: bool,
}

impl<T: Send> Inbox<T> {
    /// Creates an inbox for at most `limit` items.
    pub fn new(limit: usize) -> Self {
        let queue = Queue { things: VecDeque::new(), taker: None, is_closed: false };
        Self { limit, waiting: AtomicUsize::new(0), queue: Mutex::new(queue) }
    }

    /// Queues an item and wakes the loop. Returns the item if the inbox is full or closed.
    pub fn put(&self, thing: T) -> Result<(), T> {
        let mut queue = self.lock();
        if queue.is_closed || queue.things.len() >= self.limit {
            return Err(thing);
        }
        queue.things.push_back(thing);
        self.waiting.store(queue.things.len(), Ordering::Relaxed);
        let taker = queue.taker.take();
        drop(queue);
        if let Some(taker) = taker {
            taker.wake();
        }
        Ok(())
    }

    /// The number of queued items.
    pub fn waiting(&self) -> usize {
        match self.waiting.load(Ordering::Relaxed) {
            CLOSED => 0,
            waiting => waiting,
        }
    }

    /// Whether [`put`](Self::put) would succeed now.
    pub fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < self.limit
    }

    /// Waits for the next item; `None` once the inbox is closed and empty.
    pub async fn take(&self) -> Option<T> {
        std::future::poll_fn(|cx| self.poll_take(cx)).await
    }

    /// The next item, if there is one. Any thread may call this: peers take back what they queued
    /// for a loop that is stuck.
    pub fn take_now(&self) -> Option<T> {
        self.lock_and_pop().1
    }

    /// Refuses new items; queued ones can still be taken.
    pub fn close(&self) {
        let mut queue = self.lock();
        queue.is_closed = true;
        self.waiting.store(CLOSED, Ordering::Relaxed);
        let taker = queue.taker.take();
        drop(queue);
        if let Some(taker) = taker {
            taker.wake();
        }
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let (mut queue, thing) = self.lock_and_pop();
        if thing.is_some() || queue.is_closed {
            return Poll::Ready(thing);
        }
        queue.taker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock_and_pop(&self) -> (MutexGuard<'_, Queue<T>>, Option<T>) {
        let mut queue = self.lock();
        let thing = queue.things.pop_front();
        if !queue.is_closed {
            self.waiting.store(queue.things.len(), Ordering::Relaxed);
        }
        (queue, thing)
    }

    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // A poisoned lock is usable: no operation under it leaves the queue inconsistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Loop;

    #[test]
    fn it_is_bounded_and_ends() {
        let inbox = Inbox::new(2);
        assert_eq!((inbox.put(1), inbox.put(2), inbox.put(3)), (Ok(()), Ok(()), Err(3)));
        assert!(!inbox.has_room());
        assert_eq!((inbox.waiting(), inbox.take_now(), inbox.waiting()), (2, Some(1), 1));
        assert!(inbox.has_room());
        inbox.close();
        assert!(!inbox.has_room());
        assert_eq!((inbox.put(4), inbox.waiting()), (Err(4), 0));
        assert_eq!((inbox.take_now(), inbox.take_now()), (Some(2), None));
    }

    #[test]
    fn another_thread_wakes_the_loop() {
        let inbox = Arc::new(Inbox::new(1));
        let giver = inbox.clone();
        let giving = std::thread::spawn(move || {
            for number in 0..1000 {
                let mut thing = Err(number);
                while let Err(number) = thing {
                    std::thread::yield_now();
                    thing = giver.put(number);
                }
            }
            giver.close();
        });
        let taken = Loop::run("taker", |_| async move {
            let mut taken = Vec::new();
            while let Some(number) = inbox.take().await {
                taken.push(number);
            }
            taken
        });
        giving.join().unwrap();
        assert_eq!(taken.unwrap(), (0..1000).collect::<Vec<u32>>());
    }
}
