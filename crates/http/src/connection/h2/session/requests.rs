//! What the client sends becomes requests and their bodies.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use wire::h2::{Event, StreamId};

use super::Session;
use crate::connection::h2::exchange;
use crate::connection::h2::stream::{BodyEnd, Stream};

impl Session {
    /// Serves the requests that were promised.
    pub(super) async fn begin_promised(&mut self) {
        self.connection.engine.handle.drained().await;
        let promised = self.shared.promised.take();
        for (stream, head, refusal) in promised {
            self.begin(exchange::serve(stream, head, refusal));
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Request { stream: id, head, refusal, ends, bytes } => {
                let stream = self.open(id, ends);
                stream.received.set(bytes as u64);
                self.begin(exchange::serve(stream, head, refusal));
            }
            Event::Data { stream: id, bytes, ends } => match self.shared.stream(id) {
                Some(stream) => {
                    stream.received.set(stream.received.get() + bytes.len() as u64);
                    stream.take_piece(bytes);
                    if ends {
                        stream.end.set(BodyEnd::Yes);
                    }
                    stream.wake_reader();
                }
                None => self.shared.protocol.borrow_mut().taken(id, bytes.len()),
            },
            Event::Trailers { stream: id, fields } => {
                if let Some(stream) = self.shared.stream(id) {
                    stream.trailers.replace(fields);
                    stream.end.set(BodyEnd::Yes);
                    stream.wake_reader();
                }
            }
            Event::Reset { stream: id, .. } => {
                if let Some(stream) = self.shared.stream(id) {
                    stream.break_off();
                }
            }
            // All may add more; they are woken when there is no output.
            Event::Window { stream: 0 } => self.shared.passes_over.set(true),
            Event::Window { stream: id } => {
                if let Some(stream) = self.shared.stream(id) {
                    stream.has_window();
                }
            }
            Event::Priority { stream: id, priority } => {
                if let Some(stream) = self.shared.stream(id) {
                    stream.priority.set(priority);
                    stream.has_wish.set(true);
                }
            }
            Event::Leaves { .. } => self.is_left = true,
            // Only a client gets these.
            Event::Response { .. } | Event::Pong => {}
        }
    }

    pub(super) fn open(&mut self, id: StreamId, ends: bool) -> Rc<Stream> {
        let stream = Rc::new(Stream::new(id, self.shared.clone(), ends));
        self.shared.add(stream.clone());
        stream
    }

    /// Polls a request in place; one that has to wait becomes a task.
    pub(super) fn begin(&self, serving: impl Future<Output = ()> + 'static) {
        let mut serving: Pin<Box<dyn Future<Output = ()>>> = Box::pin(serving);
        let mut cx = Context::from_waker(Waker::noop());
        if serving.as_mut().poll(&mut cx).is_pending() {
            self.connection.engine.handle.spawn_local(serving);
        }
    }
}
