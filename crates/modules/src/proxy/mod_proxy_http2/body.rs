//! The body of a request on its way into DATA frames.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::request_body::{BodyError, BodyIn};

use crate::proxy::mod_proxy::outgoing::Outgoing;
use crate::proxy::mod_proxy::upload::Upload;

/// What of a request's body is not sent.
pub(super) struct RequestBody {
    /// The body; `None` once something of it was taken that can't be read again.
    unsent: Option<Outgoing>,
    /// Read, but not sent.
    ready: VecDeque<Bytes>,
    rest: Upload,
    /// All of it was read.
    is_read: bool,
}

impl RequestBody {
    pub fn new(outgoing: Outgoing) -> RequestBody {
        RequestBody {
            ready: outgoing.first().iter().filter(|piece| !piece.is_empty()).cloned().collect(),
            rest: Upload::of(&outgoing),
            is_read: false,
            unsent: Some(outgoing),
        }
    }

    /// The body, if all of it can be sent again.
    pub fn into_unsent(self) -> Option<Outgoing> {
        self.unsent
    }

    /// Whether some of it is still to come from the client.
    pub fn needs_client(&self) -> bool {
        matches!(self.rest, Upload::Client) && !self.is_read
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && matches!(self.rest, Upload::Complete)
    }

    /// The next piece that is not empty, and whether it is known to be the last; `None` at the end.
    /// Without `client` what it has not sent yet can't be read.
    pub fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        client: Option<&mut BodyIn>,
    ) -> Poll<Result<Option<Bytes>, BodyError>> {
        if let Some(piece) = self.ready.pop_front() {
            return Poll::Ready(Ok(Some(piece)));
        }
        if self.is_read {
            return Poll::Ready(Ok(None));
        }
        let mut client = client;
        loop {
            match ready!(self.rest.poll_next(cx, client.as_deref_mut())) {
                None => {
                    self.is_read = true;
                    return Poll::Ready(Ok(None));
                }
                Some(Err(error)) => return Poll::Ready(Err(error)),
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    if matches!(self.rest, Upload::Client) {
                        self.unsent = None;
                    }
                    return Poll::Ready(Ok(Some(piece)));
                }
            }
        }
    }
}
