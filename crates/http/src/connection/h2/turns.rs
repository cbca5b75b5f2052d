//! Whose turn it is to add to a connection's output.
//!
//! Once all output was sent, as many of the responses that wait are woken as can add something: by
//! their priority, those that share a level in turns. One that is woken and has nothing to add
//! leaves its room to others.

use std::io;
use std::task::{Context, Poll};

use wire::h2;
use wire::priority::Priority;

use super::stream::{OUTPUT_BYTES, Shared, Stream};

/// The least that a response adds in its turn: with the head of its frame, a record of TLS.
const SHARE_BYTES_MIN: usize = h2::FRAME_PAYLOAD_BYTES - h2::FRAME_HEAD_BYTES;

/// The most that a response adds in its turn that shares with no other: what is left keeps the less
/// urgent ones alive.
const ALONE_BYTES: usize = OUTPUT_BYTES - 8 * 1024;

/// Less room than this counts as none: it would be filled with short frames.
const ROOM_BYTES_MIN: usize = 1024;

/// The room for a frame's data in the output.
fn output_room(protocol: &h2::Connection) -> usize {
    let room = OUTPUT_BYTES.saturating_sub(protocol.output.len() + h2::FRAME_HEAD_BYTES);
    if room < ROOM_BYTES_MIN { 0 } else { room }
}

impl Shared {
    /// All output was sent: wakes responses that wait until more can be sent. Whether there are
    /// any.
    pub fn output_is_sent(&self, had_output: bool, cx: &Context<'_>) -> bool {
        let wakes = (had_output || self.passes_over.get()) && self.wake_writers();
        if self.passes_over.get() {
            // Those that were woken run first: they may leave room for others.
            cx.waker().wake_by_ref();
        }
        wakes
    }

    /// Wakes the most urgent responses that wait, and of these those that could add nothing.
    /// Whether there are any.
    fn wake_writers(&self) -> bool {
        let mut streams = self.streams.borrow_mut();
        streams.sort_by_key(|stream| {
            let Priority { urgency, is_incremental } = stream.priority.get();
            // One after another, as they were requested, unless they share.
            let turn = if is_incremental { u32::from(stream.granted.get() > 0) } else { stream.id };
            (urgency, is_incremental, turn)
        });
        let waiting = streams.iter().filter(|stream| stream.is_waiting()).count();
        self.share.set((OUTPUT_BYTES / waiting.max(1)).max(SHARE_BYTES_MIN));
        for stream in streams.iter() {
            stream.granted.set(0);
        }
        drop(streams);
        self.wake_next()
    }

    /// Wakes as many responses as there is room for, in their order. Whether there are any.
    fn wake_next(&self) -> bool {
        let protocol = self.protocol.borrow();
        let mut room = output_room(&protocol).min(protocol.connection_window());
        let (mut wakes, mut passes_over) = (false, false);
        for stream in self.streams.borrow().iter().filter(|stream| stream.is_waiting()) {
            match stream.wanted(&protocol) {
                // The client has no room for it, or its turn is over.
                Some(0) => continue,
                Some(_) if room == 0 => {
                    passes_over = true;
                    break;
                }
                Some(wanted) => room = room.saturating_sub(wanted),
                // It is gone.
                None => {}
            }
            stream.wake_writer();
            wakes = true;
        }
        self.passes_over.set(wakes && passes_over);
        wakes
    }

    /// A response has ended in its turn: others may have the rest of it.
    pub fn leaves_room(&self) {
        if self.passes_over.get() {
            self.wake_next();
        }
    }
}

impl Stream {
    /// Whether the response waits until more can be sent.
    fn is_waiting(&self) -> bool {
        self.writer.borrow().is_some()
    }

    /// The bytes that the response may still add in its turn; `None` if the stream is gone.
    fn wanted(&self, protocol: &h2::Connection) -> Option<usize> {
        let share = match self.priority.get().is_incremental {
            true => self.shared.share.get(),
            false => ALONE_BYTES,
        };
        protocol.window(self.id).map(|window| share.saturating_sub(self.granted.get()).min(window))
    }

    /// How many of these there is room for.
    fn room_now(&self, protocol: &h2::Connection) -> Option<usize> {
        self.wanted(protocol).map(|wanted| wanted.min(output_room(protocol)))
    }

    /// Whether the client has room for the response, were it not for others.
    pub fn waits_for_turn(&self) -> bool {
        self.shared.protocol.borrow().stream_window(self.id).is_some_and(|window| window > 0)
    }

    /// The client has room for more of the response.
    pub fn has_window(&self) {
        // If it is not its turn yet, it is woken then.
        if self.room_now(&self.shared.protocol.borrow()) != Some(0) {
            self.wake_writer();
        }
    }

    /// The bytes of the response that may be added now.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.is_reset.get() || self.shared.is_broken.get() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let protocol = self.shared.protocol.borrow();
        let Some(room) = self.room_now(&protocol) else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        };
        if room > 0 {
            return Poll::Ready(Ok(room));
        }
        self.writer.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}
