//! The body of a request on a stream.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rt::Sleep;
use server::read_policy::{Running, Stage};
use server::request::Request;
use server::request_body::{BodyError, BodyIn, BodySource};
use wire::{Body, HeadFlags, RequestHead, Table};

use super::stream::{BodyEnd, Stream};

/// The source of a body.
struct Reader {
    stream: Rc<Stream>,
    taken: usize,
    policy: Stage,
    began: Running,
    /// Set while the reader waits.
    sleep: Option<Pin<Box<Sleep>>>,
    /// What the protocol's `has_room_for_bodies` said when `began` was set.
    room: Option<u32>,
}

/// Gives a request its body.
pub(super) fn attach(stream: &Rc<Stream>, head: &RequestHead, request: &mut Request) {
    let announced = match head.body {
        Body::None => return,
        Body::Length(length) => Some(length),
        Body::Chunked => None,
    };
    let expects_continue = head.flags.has(HeadFlags::EXPECT_CONTINUE);
    let policy = request.host.read_policy.body;
    stream.wants_continue.set(expects_continue);
    let reader = Reader {
        taken: 0,
        policy,
        began: policy.begin(request.engine.handle.clock()),
        sleep: None,
        room: stream.shared.protocol.borrow().has_room_for_bodies(),
        stream: stream.clone(),
    };
    request.body_in = BodyIn::new(Box::new(reader), announced);
    request.body_in.expect_continue(expects_continue);
    // Other requests do not wait for the rest of it.
    request.body_in.leave();
}

/// Sends `100 (Continue)` if the client waits for it: before the body is read, and before the final
/// response, behind whose head it would be malformed.
pub(super) fn continue_first(stream: &Stream) {
    if stream.wants_continue.take() && stream.end.get() == BodyEnd::No {
        stream.send(|protocol| protocol.respond(stream.id, 100, [], false));
    }
}

/// Takes over the trailer fields that have arrived since it was last called.
pub(super) fn detach(stream: &Stream, request: &mut Request) {
    request.body_in.close();
    stream.discard();
    let trailers = stream.trailers.take();
    if request.host.core.merge_trailers.or(false) {
        request.head.headers_in.extend(&trailers);
    }
    request.head.trailers_in.extend(&trailers);
}

impl Reader {
    /// Ready once the client had the time for more. While bodies of other requests that wait for
    /// their handlers fill the connection's window, it may not send, and its time begins again.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let handle = &self.stream.shared.service.handle;
        let room = self.stream.shared.protocol.borrow().has_room_for_bodies();
        if self.room != room {
            self.room = room;
            (self.taken, self.began) = (0, self.policy.begin(handle.clock()));
            self.sleep = None;
        }
        if room.is_none() {
            // The connection's task wakes it.
            return Poll::Pending;
        }
        let (stream, began, taken) = (&self.stream, &self.began, self.taken);
        let sleep = self.sleep.get_or_insert_with(|| {
            let deadline = stream.deadline().min(began.deadline(taken));
            Box::pin(handle.sleep_until(deadline))
        });
        sleep.as_mut().poll(cx)
    }
}

impl BodySource for Reader {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        continue_first(&self.stream);
        let piece = self.stream.pieces.borrow_mut().pop_front();
        if let Some(bytes) = piece.map(Bytes::from) {
            self.sleep = None;
            self.taken += bytes.len();
            let mut protocol = self.stream.shared.protocol.borrow_mut();
            let before = protocol.output.len();
            protocol.taken(self.stream.id, bytes.len());
            let grants = protocol.output.len() > before;
            drop(protocol);
            if grants {
                self.stream.shared.wake();
            }
            return Poll::Ready(Some(Ok(bytes)));
        }
        match self.stream.end.get() {
            BodyEnd::Yes => return Poll::Ready(None),
            BodyEnd::Broken => {
                let error = io::ErrorKind::ConnectionReset.into();
                return Poll::Ready(Some(Err(BodyError::Io(error))));
            }
            BodyEnd::No => {}
        }
        self.stream.reader.replace(Some(cx.waker().clone()));
        self.poll_deadline(cx).map(|()| Some(Err(BodyError::Status(408))))
    }

    fn trailers(&self) -> Option<Box<Table>> {
        let trailers = self.stream.trailers.borrow();
        (!trailers.is_empty()).then(|| Box::new(trailers.clone()))
    }
}
