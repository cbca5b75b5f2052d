//! A loop turn: receive from all ready sockets, drain the watch once, then respond.
//!
//! The first connection that has read its request queues the turn task, behind all tasks that are
//! ready at that moment. When it runs, a single read of the inotify descriptor serves every
//! connection that has asked meanwhile. The read follows the arrival of each of their requests, so
//! every write that preceded a request has advanced its generations by then.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::reactor::{Handle, LoopState};

/// The waiters of the current turn.
#[derive(Default)]
pub(crate) struct Turn {
    waiting: RefCell<Vec<Waker>>,
    woken: RefCell<Vec<Waker>>,
    /// The number of the turn that collects waiters; all turns below it have been drained.
    current: Cell<u64>,
    task: RefCell<Option<Waker>>,
}

impl Turn {
    fn join(&self, waker: &Waker) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push(waker.clone());
        if waiting.len() == 1
            && let Some(task) = &*self.task.borrow()
        {
            task.wake_by_ref();
        }
    }

    fn finish(&self, state: &LoopState) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let mut woken = self.woken.borrow_mut();
        std::mem::swap(&mut *self.waiting.borrow_mut(), &mut *woken);
        state.clock.refresh();
        state.drain_now();
        self.current.set(self.current.get() + 1);
        for waker in woken.drain(..) {
            waker.wake();
        }
    }
}

/// The task that drains once for all waiters.
pub(crate) async fn drive(state: Rc<LoopState>) {
    std::future::poll_fn(move |cx| {
        let stored = state.turn.task.borrow().as_ref().is_some_and(|w| w.will_wake(cx.waker()));
        if !stored {
            *state.turn.task.borrow_mut() = Some(cx.waker().clone());
        }
        state.turn.finish(&state);
        Poll::<()>::Pending
    })
    .await;
}

/// Wakes a task after the runtime's next poll for events.
pub(crate) fn wake_after_poll(waker: &Waker) {
    let _ = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(waker));
}

/// Ends the turn of a task that has more to do: it is woken once the loop has looked at the sockets
/// and all other ready tasks have run. A task that only wakes itself is polled many times before
/// that.
pub fn end_turn(waker: &Waker) {
    if let Some(handle) = Handle::current() {
        handle.state.between_turns();
    }
    wake_after_poll(waker);
}

/// [`end_turn`] as a future.
pub async fn after_sockets() {
    let mut has_ended = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_ended, true) {
            return Poll::Ready(());
        }
        end_turn(cx.waker());
        Poll::Pending
    })
    .await;
}

/// Resolves after the watch has been drained at a moment later than the first poll; at once in a
/// loop without a watcher. Made by [`Handle::drained`].
///
/// [`Handle::drained`]: crate::Handle::drained
pub struct Drained<'h> {
    state: &'h LoopState,
    turn: Option<u64>,
}

impl<'h> Drained<'h> {
    pub(crate) fn new(state: &'h LoopState) -> Self {
        Self { state, turn: None }
    }
}

impl Future for Drained<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let turn = &self.state.turn;
        match self.turn {
            None if self.state.watcher.is_none() => Poll::Ready(()),
            None if self.state.in_place => {
                // The only connection of the loop: no other task shares the turn.
                self.state.drain_now();
                Poll::Ready(())
            }
            Some(joined) if turn.current.get() > joined => Poll::Ready(()),
            _ => {
                let current = turn.current.get();
                turn.join(cx.waker());
                self.turn = Some(current);
                Poll::Pending
            }
        }
    }
}
