//! A tunnel between two connections, after CONNECT or `101 Switching Protocols`.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{Stream, WRITE_TURN_BYTES};
use crate::timers::Deadline;

/// The bytes that a tunnel has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// From the near end to the far one.
    pub outward: u64,
    /// From the far end to the near one.
    pub inward: u64,
}

/// Copies bytes both ways between `near` and `far` until both have ended. The end of one direction
/// is passed on, and the other continues. `early` is what has already been received: at the near
/// end, and at the far end.
///
/// While nothing arrives the tunnel holds no buffer. An end that takes nothing is not read for: at
/// most 64 KiB wait for it.
///
/// Errors: `TimedOut` once no byte has moved for `idle`, and those of recv(2) and send(2). What was
/// carried until then is returned, too.
pub fn tunnel<'s>(
    near: &'s mut Stream,
    far: &'s mut Stream,
    early: [Vec<u8>; 2],
    idle: Duration,
) -> impl Future<Output = (Carried, io::Result<()>)> + use<'s> {
    let [outward, inward] = early.map(Way::new);
    let mut tunnel = Tunnel { near, far, outward, inward, idle, deadline: Deadline::NEVER };
    tunnel.deadline = tunnel.next_deadline();
    // Not an async function: its future would also have room for the arguments.
    std::future::poll_fn(move |cx| {
        let outcome = ready!(tunnel.poll(cx));
        let carried = Carried { outward: tunnel.outward.carried, inward: tunnel.inward.carried };
        Poll::Ready((carried, outcome))
    })
}

struct Tunnel<'s> {
    near: &'s mut Stream,
    far: &'s mut Stream,
    outward: Way,
    inward: Way,
    idle: Duration,
    deadline: Deadline,
}

impl Tunnel<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let before = self.carried();
        let outward = self.outward.poll(cx, self.near, self.far)?;
        let inward = self.inward.poll(cx, self.far, self.near)?;
        if outward.is_ready() && inward.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if self.carried() != before {
            self.deadline = self.next_deadline();
        }
        self.near.poll_deadline(cx, self.deadline)
    }

    fn carried(&self) -> u64 {
        self.outward.carried + self.inward.carried
    }

    fn next_deadline(&self) -> Deadline {
        Deadline::after(&self.near.state.clock, self.idle)
    }
}

/// One direction.
struct Way {
    /// Received, and not yet sent.
    rest: Vec<u8>,
    state: State,
    carried: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    /// The sender has ended; the rest is to be sent.
    Ending,
    Ended,
}

impl Way {
    fn new(rest: Vec<u8>) -> Way {
        Way { rest, state: State::Open, carried: 0 }
    }

    /// Copies until there is nothing to copy; ready at the end.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
    ) -> Poll<io::Result<()>> {
        let end_of_turn = self.carried.saturating_add(WRITE_TURN_BYTES as u64);
        while self.state != State::Ended {
            ready!(self.poll_send_rest(cx, to))?;
            if self.carried >= end_of_turn {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.state == State::Ending {
                to.shutdown_write()?;
                self.state = State::Ended;
                break;
            }
            let mut buffer = to.state.scratch.borrow_mut().take_copied();
            let outcome = self.poll_copy(cx, from, to, &mut buffer);
            to.state.scratch.borrow_mut().put_copied(buffer);
            ready!(outcome)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send_rest(&mut self, cx: &mut Context<'_>, to: &mut Stream) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let sent = match to.try_write(&self.rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(to.io.poll_writable(cx))?;
                    continue;
                }
                outcome => outcome?,
            };
            self.carried += sent as u64;
            self.rest.drain(..sent);
        }
        self.rest = Vec::new();
        while !to.push_outgoing()? {
            ready!(to.io.poll_writable(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Receives once, and sends what the receiver takes.
    fn poll_copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        match ready!(from.poll_read(cx, buffer, Deadline::NEVER))? {
            0 => self.state = State::Ending,
            _ => {
                let sent = match to.try_write(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                    outcome => outcome?,
                };
                self.carried += sent as u64;
                self.rest.extend_from_slice(buffer.get(sent..).unwrap_or_default());
            }
        }
        Poll::Ready(Ok(()))
    }
}
