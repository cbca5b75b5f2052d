//! The body of a request on its way to the worker.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use server::request_body::{BodyError, BodyIn};
use wire::wsgi::piece_header;

use super::conversation::Broken;
use super::link::Link;
use super::runtime::Waits;

/// The longest piece of a request's body in one frame.
const PIECE_BYTES: usize = 1 << 20;

/// The rest of a request's head, then its body, once it is wanted.
pub(super) struct Upload {
    body: BodyIn,
    /// False as long as the body is not wanted, and once all of it is sent.
    is_active: bool,
    /// The rest of the head, then pieces with their headers.
    unsent: Bytes,
    /// What follows [`Upload::unsent`].
    piece: Bytes,
    wants_body: bool,
    /// The body is the connection's again.
    is_gone: bool,
    has_ended: bool,
}

impl Upload {
    /// Of the rest of a head, so far.
    pub fn new(rest: &[u8]) -> Upload {
        Upload {
            body: BodyIn::default(),
            is_active: !rest.is_empty(),
            unsent: Bytes::copy_from_slice(rest),
            piece: Bytes::new(),
            wants_body: false,
            is_gone: false,
            has_ended: false,
        }
    }

    /// Gives it the body of the request, which is sent once it is wanted.
    pub fn give_body(&mut self, body: BodyIn) {
        self.body = body;
    }

    /// Whether the worker reads the body, or may begin to.
    pub fn may_go_on(&self) -> bool {
        self.is_active || !self.wants_body && !self.body.is_empty()
    }

    /// Whether the client has to send more before the worker can go on.
    pub fn waits_for_client(&self) -> bool {
        self.is_active && self.unsent.is_empty()
    }

    /// The body, if nothing of it was asked for. From now on it can't be.
    pub fn take_body(&mut self) -> Option<BodyIn> {
        if self.wants_body {
            return None;
        }
        self.is_gone = true;
        Some(std::mem::take(&mut self.body))
    }

    /// The body is wanted; false if it is gone.
    pub fn begin(&mut self) -> bool {
        if !self.is_gone {
            (self.wants_body, self.is_active) = (true, true);
        }
        !self.is_gone
    }

    /// Writes what there is, as far as the worker has room. Whether that is something: the worker
    /// learns of all of it at once.
    pub fn poll(
        &mut self,
        link: &mut Link,
        waits: &Waits,
        cx: &mut Context<'_>,
    ) -> (bool, Result<(), Broken>) {
        let mut has_written = false;
        loop {
            if !self.is_active {
                return (has_written, Ok(()));
            }
            if self.unsent.is_empty() {
                self.unsent = std::mem::take(&mut self.piece);
            }
            if !self.unsent.is_empty() {
                match link.poll_write(cx, &self.unsent) {
                    Poll::Ready(Ok(count)) => {
                        self.unsent = self.unsent.slice(count.min(self.unsent.len())..);
                        has_written = true;
                        continue;
                    }
                    // The worker has died or is done: what it has sent tells.
                    Poll::Ready(Err(_)) => self.is_active = false,
                    Poll::Pending => {}
                }
                return (has_written, Ok(()));
            }
            if self.has_ended || !self.wants_body {
                self.is_active = false;
                link.finish_writing();
                return (has_written, Ok(()));
            }
            let next = pin!(self.body.next()).poll(cx);
            match next {
                Poll::Pending => return (has_written, Ok(())),
                Poll::Ready(None) => {
                    self.has_ended = true;
                    self.unsent = Bytes::copy_from_slice(&piece_header(0));
                }
                Poll::Ready(Some(Ok(bytes))) if bytes.is_empty() => {}
                Poll::Ready(Some(Ok(bytes))) => {
                    debug_assert!(bytes.len() <= PIECE_BYTES);
                    self.unsent = Bytes::copy_from_slice(&piece_header(bytes.len()));
                    self.piece = bytes;
                }
                Poll::Ready(Some(Err(error))) => {
                    return (has_written, self.fail(error, link, waits));
                }
            }
        }
    }

    /// The body can't be read. As in Apache, the application gets an error when it reads on, but a
    /// daemon process is not asked what it makes of a client that is too slow.
    fn fail(&mut self, error: BodyError, link: &Link, waits: &Waits) -> Result<(), Broken> {
        self.is_active = false;
        let is_left_to_it = match error {
            BodyError::Io(_) => true,
            BodyError::Status(408) => waits.piece.is_none(),
            BodyError::Status(_) | BodyError::Chunks(_) | BodyError::TooLong(_) => false,
        };
        if !is_left_to_it {
            return Err(Broken::Client(error));
        }
        link.refuse_body();
        Ok(())
    }
}
