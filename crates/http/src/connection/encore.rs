//! The same head on the same connection, time and again: what was sent last is sent once more.
//!
//! For a thread with one connection. Between two of its requests others pass through the
//! processor's caches, so that a request costs what its memory costs: here that is one buffer, with
//! the head and the whole answer, and a few counters. Measured, with 64 connections: 2 µs less in
//! prefork, 1 µs in worker. In a loop of many connections all is warm, and nothing is gained.

use std::io::{self, ErrorKind::NotConnected};
use std::rc::Rc;
use std::time::Duration;

use rt::{Deadline, Stream};

use super::{Active, Connection, fast};
use crate::cache::repeat::{Lent, Repeat};
use crate::cache::resource::{Content, Resource};
use crate::respond;
use crate::service::Service;
use server::hooks::Phase;
use server::process;
use server::request::Request;

/// An answer that may be given again as it is.
pub(crate) struct Encore {
    /// The head that it answers, and behind it the answer.
    bytes: Vec<u8>,
    head_length: usize,
    /// The second that the answer's `Date` tells.
    second: u64,
    resource: Rc<Resource>,
    host: u32,
    /// The connection ends when it has had so many answers.
    answers_max: u32,
    /// How long the connection stays open without a request.
    keep_alive_timeout: Duration,
    timeout: Duration,
    /// The request, where somebody writes it down.
    logged: Option<Lent>,
}

/// What ended a series of them.
pub(super) enum Next {
    /// Something else than that head was received, or the connection ended.
    Received(io::Result<usize>),
    /// The wait goes on as any other.
    Wait(Deadline),
}

/// What came of one wait.
enum Heard {
    /// The head of the encore, and nothing else.
    Again,
    Other(io::Result<usize>),
    Nothing,
}

/// Notices that `repeat` was just answered, with the request that was lent for it, and makes an
/// encore of it when that is not the first time in a row.
pub(super) fn prepare(
    connection: &Connection,
    active: &mut Active,
    repeat: &Rc<Repeat>,
    lent: Lent,
) {
    if !connection.engine.handle.works_in_place() {
        return;
    }
    let is_in_row = active.last.as_ref().is_some_and(|last| Rc::ptr_eq(last, repeat));
    if !is_in_row {
        active.last = Some(repeat.clone());
    } else if may(connection, lent.request_ref()) {
        active.encore = Encore::of(connection, repeat, lent);
    }
}

/// Whether nothing in the answer is about one request alone.
fn may(connection: &Connection, request: &Request) -> bool {
    let tells_terms = request.flags.has(wire::HeadFlags::KEEP_ALIVE);
    connection.client.tls.is_none()
        && !(tells_terms && respond::keep_alive_limit(request).is_some())
}

impl Encore {
    fn of(connection: &Connection, repeat: &Rc<Repeat>, mut lent: Lent) -> Option<Box<Encore>> {
        lent.request().forget_log();
        let request = lent.request_ref();
        let resource = repeat.resource().clone();
        let Content::Memory(body) = &resource.content else { return None };
        let mut bytes = repeat.bytes().to_vec();
        fast::write_head(request, &resource, connection.answered, true, &mut bytes);
        bytes.extend_from_slice(body);
        Some(Box::new(Encore {
            bytes,
            head_length: repeat.bytes().len(),
            second: request.engine.handle.clock().wall_s(),
            host: request.host.id,
            answers_max: respond::keep_alive_limit(request).unwrap_or(u32::MAX),
            keep_alive_timeout: connection.client.base_host.core.keep_alive_timeout(),
            timeout: request.host.core.timeout(),
            logged: (!resource.plan.phase(Phase::LogTransaction).is_empty()).then_some(lent),
            resource,
        }))
    }

    /// Waits for what comes next, into the engine's buffer.
    fn listen(
        &self,
        stream: &mut Stream,
        engine: &Service,
        deadline: Deadline,
        now_us: u64,
    ) -> Heard {
        let mut input = engine.input.borrow_mut();
        input.clear();
        match stream.read_in_place(&mut input, deadline, now_us) {
            None => Heard::Nothing,
            Some(Ok(_)) if self.is_for(&input) => Heard::Again,
            Some(received) => Heard::Other(received),
        }
    }

    fn is_for(&self, head: &[u8]) -> bool {
        self.bytes.get(..self.head_length) == Some(head)
    }

    /// Whether the answer may be given to one more request, which has just come.
    fn may_go_on(&self, engine: &Service, answered: u32) -> bool {
        engine.handle.drain_now();
        !engine.draining.get()
            && answered < self.answers_max
            && self.resource.is_fresh(engine.handle.witness())
    }

    /// Gives the answer once more; the moment when it has left ([`rt::Clock::precise_us`]).
    async fn give(&mut self, connection: &mut Connection) -> io::Result<u64> {
        let Some(stream) = connection.stream.as_mut() else { return Err(NotConnected.into()) };
        let (engine, client) = (&connection.engine, &connection.client);
        let _writing = engine.connections.writing();
        if let Some(lent) = &mut self.logged {
            lent.request().begin_again(client);
        }
        let timeout = self.timeout;
        let answer = self.answer(engine);
        let length = answer.len() as u64;
        let sent = send(stream, answer, timeout).await;
        connection.answered += 1;
        client.keepalives.set(connection.answered);
        let clock = engine.handle.clock();
        let now_us = clock.precise_us();
        let body_bytes = self.resource.body_bytes;
        engine.count_again(self.host, body_bytes, now_us, connection.answered, length);
        let Some(lent) = &mut self.logged else { return sent.map(|()| now_us) };
        client.bytes_in.set(self.head_length as u64);
        client.bytes_out.set(length);
        client.aborted.set(sent.is_err());
        client.first_byte_us.set(clock.wall_us());
        process::run_all(lent.request(), Phase::LogTransaction).await;
        lent.request().forget_log();
        sent.map(|()| clock.precise_us())
    }

    /// The answer, in the present second.
    fn answer(&mut self, engine: &Service) -> &[u8] {
        let answer = self.bytes.get_mut(self.head_length..).unwrap_or_default();
        let now = engine.handle.clock().wall_s();
        if self.second != now {
            self.second = now;
            if let Some(date) = answer.get_mut(fast::DATE) {
                date.copy_from_slice(&engine.date());
            }
        }
        answer
    }
}

/// At once, where the socket takes it.
async fn send(stream: &mut Stream, answer: &[u8], timeout: Duration) -> io::Result<()> {
    let count = match stream.try_write(answer) {
        Ok(count) if count == answer.len() => return Ok(()),
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    stream.write_all(answer.get(count..).unwrap_or_default(), timeout).await
}

/// Answers as long as nothing but that head comes. What came last, where it is something else, is
/// in the engine's buffer. `deadline` is for the first.
pub(super) async fn play(
    connection: &mut Connection,
    active: &mut Active,
    mut deadline: Deadline,
) -> Next {
    let Some(mut encore) = active.encore.take() else { return Next::Wait(deadline) };
    let engine = connection.engine.clone();
    let mut now_us = engine.handle.clock().precise_us();
    loop {
        let Some(stream) = connection.stream.as_mut() else { return Next::Wait(deadline) };
        match encore.listen(stream, &engine, deadline, now_us) {
            Heard::Again if encore.may_go_on(&engine, connection.answered) => {}
            Heard::Again => return Next::Received(Ok(encore.head_length)),
            Heard::Other(received) => return Next::Received(received),
            Heard::Nothing => {
                // It may go on when others have had their turn.
                active.encore = Some(encore);
                return Next::Wait(deadline);
            }
        }
        now_us = match encore.give(connection).await {
            Ok(now_us) => now_us,
            Err(error) => return Next::Received(Err(error)),
        };
        deadline = engine.handle.deadline(encore.keep_alive_timeout);
    }
}

/// After a wait of another kind: gives the answer if it is the encore's head that came, which is in
/// the engine's buffer, and tells until when the next may come. `None` where it was another: then
/// there is no encore any more.
pub(super) async fn resume(
    connection: &mut Connection,
    active: &mut Active,
) -> Option<io::Result<Deadline>> {
    let mut encore = active.encore.take()?;
    let engine = connection.engine.clone();
    let is_again = encore.is_for(&engine.input.borrow());
    if !is_again || !encore.may_go_on(&engine, connection.answered) {
        return None;
    }
    let given = encore.give(connection).await;
    let deadline = engine.handle.deadline(encore.keep_alive_timeout);
    active.encore = Some(encore);
    Some(given.map(|_| deadline))
}
