//! Connections of a thread that works in place which have been seen off: all is sent, FIN too, and
//! the client has yet to close. The thread has its next connection meanwhile.

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
/// The longest whole: Apache's MAX_SECS_TO_LINGER.
pub(crate) const WHOLE_WAIT: Duration = Duration::from_secs(30);
/// So many at a time; the thread waits for others itself.
const MOST: usize = 64;
/// Reads in a row from one of them.
const READS_MAX: u32 = 16;

/// Those of one thread.
#[derive(Default)]
pub(crate) struct Farewells {
    waiting: RefCell<Vec<Farewell>>,
    count: Cell<usize>,
}

struct Farewell {
    io: Socket,
    next: Deadline,
    end: Deadline,
    /// Nothing can have come yet.
    is_new: bool,
}

impl Farewells {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    /// Takes a socket over that has sent its FIN; gives it back where there are too many.
    pub(crate) fn take(&self, io: Socket, clock: &Clock) -> Result<(), Socket> {
        if self.count.get() >= MOST {
            return Err(io);
        }
        let (next, end) = (Deadline::after(clock, NEXT_WAIT), Deadline::after(clock, WHOLE_WAIT));
        self.waiting.borrow_mut().push(Farewell { io, next, end, is_new: true });
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    /// Closes those whose clients have closed or take too long. Who came since the last look is
    /// passed over, unless `all` are to be looked at.
    pub(crate) fn look(&self, clock: &Clock, scratch: &RefCell<Scratch>, all: bool) {
        if self.is_empty() {
            return;
        }
        // Somebody who is receiving into it has let others look: later, then.
        let Ok(mut scratch) = scratch.try_borrow_mut() else { return };
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain_mut(|one| {
            let is_left_out = std::mem::take(&mut one.is_new) && !all;
            is_left_out || one.is_to_wait(clock, &mut scratch)
        });
        self.count.set(waiting.len());
    }
}

impl Farewell {
    /// Reads and forgets what the client still sends; whether more has to be waited for.
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
