//! Lingering closes of a thread that works in place. Such a connection has sent everything, FIN
//! included, and waits for the client to close, while the thread serves its next connection.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::clock::Clock;
use crate::socket::Socket;
use crate::stream::Scratch;
use crate::timers::Deadline;

/// The longest wait for the client's next bytes: Apache's SECONDS_TO_LINGER.
pub(crate) const NEXT_WAIT: Duration = Duration::from_secs(2);
/// The longest wait in all: Apache's MAX_SECS_TO_LINGER.
pub(crate) const WHOLE_WAIT: Duration = Duration::from_secs(30);
/// Lingering closes per thread; beyond the limit the thread waits in place.
const MOST: usize = 64;
/// Reads in a row from one connection.
const READS_MAX: u32 = 16;

/// The lingering closes of one thread.
#[derive(Default)]
pub(crate) struct LingeringCloses {
    waiting: RefCell<Vec<LingeringClose>>,
    count: Cell<usize>,
}

struct LingeringClose {
    io: Socket,
    next: Deadline,
    end: Deadline,
    /// Added since the last poll: the client has had no time to close.
    is_new: bool,
}

impl LingeringCloses {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    /// Adds a socket that has sent its FIN; returns it if there are too many.
    pub(crate) fn take(&self, io: Socket, clock: &Clock) -> Result<(), Socket> {
        if self.count.get() >= MOST {
            return Err(io);
        }
        let (next, end) = (Deadline::after(clock, NEXT_WAIT), Deadline::after(clock, WHOLE_WAIT));
        self.waiting.borrow_mut().push(LingeringClose { io, next, end, is_new: true });
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    /// Closes the connections whose client has closed or has exceeded its time. Skips those added
    /// since the last poll unless `all` is set.
    pub(crate) fn poll(&self, clock: &Clock, scratch: &RefCell<Scratch>, all: bool) {
        if self.is_empty() {
            return;
        }
        // The scratch buffer is in use by a receive that polls from within: try again later.
        let Ok(mut scratch) = scratch.try_borrow_mut() else { return };
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain_mut(|one| {
            let is_left_out = std::mem::take(&mut one.is_new) && !all;
            is_left_out || one.is_to_wait(clock, &mut scratch)
        });
        self.count.set(waiting.len());
    }
}

impl LingeringClose {
    /// Reads and discards what the client still sends; returns whether to wait longer.
    fn is_to_wait(&mut self, clock: &Clock, scratch: &mut Scratch) -> bool {
        for _ in 0..READS_MAX {
            let buffer = scratch.receive();
            let spare = rustix::buffer::spare_capacity(buffer);
            match rustix::net::recv(&self.io, spare, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok(_) => self.next = Deadline::after(clock, NEXT_WAIT).min(self.end),
                Err(Errno::WOULDBLOCK | Errno::INTR) => return !self.next.has_passed(clock),
                Err(_) => return false,
            }
        }
        !self.end.has_passed(clock)
    }
}
