//! A request in a slot of memory.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use ::wsgi::{Kind, State};
use rt::{Alarm, Deadline, Handle};

use super::Lane;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// A request in a slot. Dropping it withdraws the request.
pub struct Slot {
    pub(super) lane: Rc<Lane>,
    pub(super) number: u32,
    pub(super) state: State,
    pub(super) written: u32,
    pub(super) read: u32,
    pub(super) alarm: Alarm,
}

impl Slot {
    /// The loop.
    pub fn handle(&self) -> Handle {
        self.alarm.handle()
    }

    /// Whether a worker has the request.
    pub fn is_taken(&self) -> bool {
        self.now().is_none_or(|state| state.kind != Kind::Queued)
    }

    /// Waits for bytes of the worker and appends them; 0 at the end.
    ///
    /// Errors: `TimedOut` at the deadline, `InvalidData` if the worker is broken,
    /// `ConnectionAborted` if no worker has had the request, and none will.
    pub fn poll_read(
        &mut self,
        cx: &Context<'_>,
        out: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        let region = &self.lane.region;
        if self.lane.is_retired.get() && region.change(self.number, self.state, State::FREE) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        // Before the bytes: what was written before the end is seen with it.
        let Some(state) = self.now() else { return Poll::Ready(Ok(0)) };
        let count = region.up(self.number).take(&mut self.read, READ_BYTES, out);
        match count.map_err(|_| io::ErrorKind::InvalidData)? {
            0 if matches!(state.kind, Kind::Done | Kind::Lost) => Poll::Ready(Ok(0)),
            0 => {
                self.wait(cx);
                self.alarm.poll_deadline(cx, deadline)
            }
            count => {
                region.nudge(self.number);
                Poll::Ready(Ok(count))
            }
        }
    }

    /// Waits for room and writes as many bytes as fit, of which the worker learns by
    /// [`Slot::tell_written`].
    ///
    /// Errors: `BrokenPipe` if the worker has gone, `InvalidData` if it is broken.
    pub fn poll_write(&mut self, cx: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.now().is_none() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let region = &self.lane.region;
        for attempt in 0..2 {
            let count = region.down(self.number).put(&mut self.written, bytes);
            match count.map_err(|_| io::ErrorKind::InvalidData)? {
                // The worker may have made room before it could see that this loop waits.
                0 if attempt == 0 => region.wait_for_room(self.number),
                0 => {}
                count => return Poll::Ready(Ok(count)),
            }
        }
        self.wait(cx);
        Poll::Pending
    }

    /// Wakes a worker that waits for what was written: once for all of it, since it runs at once.
    pub fn tell_written(&self) {
        self.lane.region.nudge(self.number);
    }

    /// The worker must not take what it gets for a whole body.
    pub fn refuse_body(&self) {
        self.lane.region.close_down(self.number);
    }

    /// The slot's state, as long as it is this request's.
    fn now(&self) -> Option<State> {
        let now = self.lane.region.state(self.number)?;
        let is_own = now.ticket == self.state.ticket
            && now.lane == self.state.lane
            && !matches!(now.kind, Kind::Free | Kind::Filling | Kind::Abandoned);
        (is_own && !self.lane.is_gone.get()).then_some(now)
    }

    fn wait(&self, cx: &Context<'_>) {
        if let Some(waker) = self.lane.wakers.borrow_mut().get_mut(self.number as usize) {
            match waker {
                Some(known) if known.will_wake(cx.waker()) => {}
                other => *other = Some(cx.waker().clone()),
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(waker) = self.lane.wakers.borrow_mut().get_mut(self.number as usize) {
            *waker = None;
        }
        if self.lane.region.release(self.number, self.state) {
            self.lane.region.nudge(self.number);
        }
        self.lane.free.borrow_mut().push(self.number);
    }
}
