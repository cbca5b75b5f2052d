//! The task of a connection: receives, and sends once per turn.

mod requests;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rt::{Deadline, Pooled};
use server::log::Level;
use wire::h2::{self, Code, Failure};

use super::records::Records;
use super::stream::{OUTPUT_BYTES, Shared};
use super::upgrade::{Asking, Upgrade};
use super::{exchange, host_of, idle_deadline, limits};
use crate::connection::Connection;
use crate::service::Buffers;

/// Bytes that wait to be sent, beyond which nothing is received.
const UNSENT_BYTES: usize = 512 * 1024;

/// Bytes that are received at a time.
const RECEIVE_BYTES: usize = 32 * 1024;

/// How long a client that was asked to leave may still send requests.
const LEAVING: std::time::Duration = std::time::Duration::from_millis(500);

/// A connection's end, and what it has received.
struct Session {
    connection: Connection,
    shared: Rc<Shared>,
    /// What it works with, unless it is idle.
    buffers: Option<Pooled<Buffers>>,
    /// Whether responses have been woken that have more to send.
    awaits_output: bool,
    /// Bytes of a frame that is not complete.
    input: Vec<u8>,
    /// How much of the output was sent.
    sent: usize,
    /// How large records of TLS are, if that differs.
    records: Option<Records>,
    /// When nothing happens until then, the connection ends.
    deadline: Deadline,
    /// Until when the output has to be taken by the client.
    write_deadline: Option<Deadline>,
    /// When the second GOAWAY follows the first.
    leaves_at: Option<Deadline>,
    /// Whether the client will send no more requests.
    is_left: bool,
    /// Responses that the deadline takes into account.
    responses: u32,
}

/// How a turn ends.
enum Turn {
    /// Bytes were received.
    Received,
    /// Requests were promised to the client.
    Promised,
    /// The client has closed, or nothing is left to do.
    Ended,
    /// The socket is broken, or the client too slow.
    Broken,
}

/// Serves a connection until it ends. `received` begins with the client's preface.
pub(in crate::connection) async fn run(
    mut connection: Connection,
    received: Vec<u8>,
    upgrade: Option<Upgrade>,
) {
    let now_ms = connection.engine.handle.clock().now_ms();
    let host = match &upgrade {
        Some(upgrade) => upgrade.asking.host.clone(),
        None => host_of(&connection.engine.server, &connection.info).clone(),
    };
    let limits = limits(&host);
    let protocol = upgrade
        .as_ref()
        .and_then(|upgrade| h2::Connection::upgraded(limits, &upgrade.settings, now_ms));
    let shared = Rc::new(Shared {
        service: connection.engine.clone(),
        info: connection.info.clone(),
        host: host.clone(),
        protocol: RefCell::new(protocol.unwrap_or_else(|| h2::Connection::new(limits, now_ms))),
        streams: RefCell::default(),
        writing: RefCell::default(),
        sender: RefCell::default(),
        is_broken: Cell::new(false),
        responses: Cell::new(0),
        share: Cell::new(OUTPUT_BYTES),
        passes_over: Cell::new(false),
        added: Cell::new(0),
        held: Cell::new(0),
        openings: Cell::new(0),
        promised: RefCell::default(),
        diary: RefCell::default(),
        places: RefCell::default(),
    });
    let deadline = idle_deadline(&connection.engine.handle, &host, false);
    let warm_up = host.http2.as_ref().and_then(|http2| http2.warm_up);
    let stream = connection.stream.as_mut();
    let records = warm_up.zip(stream).and_then(|(rule, to)| Records::begin(rule, to, now_ms));
    let mut session = Session {
        connection,
        shared,
        buffers: None,
        awaits_output: false,
        input: received,
        sent: 0,
        records,
        deadline,
        write_deadline: None,
        leaves_at: None,
        is_left: false,
        responses: 0,
    };
    let mut asking = None;
    if let Some(upgrade) = upgrade {
        let stream = session.open(1, true);
        session.begin(exchange::serve(stream, upgrade.head, upgrade.refusal));
        asking = Some(upgrade.asking);
    }
    let _counted = session.connection.engine.connections.http2();
    session.serve(asking).await;
}

impl Session {
    async fn serve(&mut self, asking: Option<Asking>) {
        let mut is_broken = false;
        if !self.input.is_empty() {
            self.take_input().await;
        }
        loop {
            match std::future::poll_fn(|cx| self.poll_turn(cx)).await {
                Turn::Received => self.take_input().await,
                Turn::Promised => self.begin_promised().await,
                Turn::Ended => break,
                Turn::Broken => {
                    is_broken = true;
                    break;
                }
            }
        }
        if let Some(asking) = asking {
            // As in Apache, it ends with the connection.
            asking.finish(&mut self.connection).await;
        }
        self.end(is_broken).await;
    }

    /// Ends the connection: requests that are being served notice it.
    async fn end(&mut self, is_broken: bool) {
        self.shared.is_broken.set(true);
        self.connection.info.aborted.set(is_broken);
        for stream in self.shared.streams.borrow().iter() {
            stream.break_off();
        }
        for (stream, ..) in self.shared.promised.take() {
            self.shared.remove(stream.id);
        }
        if is_broken {
            self.connection.stream = None;
        }
        self.connection.close().await;
        // A thread takes its next connection only once nothing of this one runs.
        std::future::poll_fn(|cx| {
            self.shared.sender.replace(Some(cx.waker().clone()));
            let is_done = self.shared.streams.borrow().is_empty();
            if is_done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Sends what there is, and receives; ready once something was received.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        self.shared.sender.replace(Some(cx.waker().clone()));
        self.take_buffers();
        loop {
            self.check_leaving();
            self.shared.check_room();
            let sent_all = match self.poll_send(cx) {
                Ok(sent_all) => sent_all,
                Err(_) => return Poll::Ready(Turn::Broken),
            };
            if sent_all && self.is_over() {
                return Poll::Ready(Turn::Ended);
            }
            if !self.shared.promised.borrow().is_empty() {
                return Poll::Ready(Turn::Promised);
            }
            let unsent = self.shared.protocol.borrow().output.len() - self.sent;
            let deadline = self.next_deadline();
            let Some(stream) = self.connection.stream.as_mut() else {
                return Poll::Ready(Turn::Broken);
            };
            if unsent > UNSENT_BYTES {
                return match stream.poll_writable(cx, deadline) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(_)) => Poll::Ready(Turn::Broken),
                    Poll::Pending => Poll::Pending,
                };
            }
            self.input.reserve(RECEIVE_BYTES);
            match stream.poll_read(cx, &mut self.input, deadline) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Turn::Ended),
                Poll::Ready(Ok(_)) => return Poll::Ready(Turn::Received),
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                    match self.timed_out() {
                        Some(turn) => return Poll::Ready(turn),
                        None => continue,
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Turn::Broken),
                Poll::Pending => {
                    let awaits_output = std::mem::take(&mut self.awaits_output);
                    if sent_all && self.input.is_empty() && !awaits_output {
                        self.return_buffers();
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Takes memory to work with.
    fn take_buffers(&mut self) {
        if self.buffers.is_some() {
            return;
        }
        let mut buffers = self.connection.engine.stream_buffers.take(Buffers::default);
        let mut protocol = self.shared.protocol.borrow_mut();
        std::mem::swap(&mut protocol.spare, &mut buffers.spare);
        if protocol.output.is_empty() {
            std::mem::swap(&mut protocol.output, &mut buffers.output);
        }
        if self.input.is_empty() {
            std::mem::swap(&mut self.input, &mut buffers.input);
        }
        self.buffers = Some(buffers);
    }

    /// While nothing is to be done, others may have the memory.
    fn return_buffers(&mut self) {
        let Some(mut buffers) = self.buffers.take() else { return };
        let mut protocol = self.shared.protocol.borrow_mut();
        buffers.spare = std::mem::take(&mut protocol.spare);
        buffers.output = std::mem::take(&mut protocol.output);
        buffers.input = std::mem::take(&mut self.input);
        buffers.trim();
    }

    /// A deadline has passed: `None` if there is something to do.
    fn timed_out(&mut self) -> Option<Turn> {
        let clock = self.connection.engine.handle.clock();
        if self.write_deadline.is_some_and(|deadline| deadline.has_passed(clock)) {
            return Some(Turn::Broken);
        }
        if self.leaves_at.is_some_and(|deadline| deadline.has_passed(clock)) {
            return None;
        }
        let has_begun = self.shared.protocol.borrow().has_begun();
        if !has_begun || self.shared.protocol.borrow().is_in_head() {
            return Some(Turn::Broken);
        }
        self.shared.protocol.borrow_mut().leave();
        self.is_left = true;
        None
    }

    fn idle_deadline(&self) -> Deadline {
        idle_deadline(&self.connection.engine.handle, &self.shared.host, true)
    }

    /// The next moment at which something is to be done.
    fn next_deadline(&mut self) -> Deadline {
        let is_serving = !self.shared.streams.borrow().is_empty();
        // Frames other than requests do not count.
        let responses = self.shared.responses.get();
        if self.responses != responses {
            self.responses = responses;
            self.deadline = self.idle_deadline();
        }
        // While output waits for the client, the time that it may take for that counts.
        let waits = is_serving || self.write_deadline.is_some();
        let idle = if waits { Deadline::NEVER } else { self.deadline };
        let all = [self.write_deadline, self.leaves_at];
        all.into_iter().flatten().fold(idle, Deadline::min)
    }

    /// While the server shuts down gracefully, asks the client to leave.
    fn check_leaving(&mut self) {
        let handle = &self.connection.engine.handle;
        let mut protocol = self.shared.protocol.borrow_mut();
        if self.connection.engine.draining.get() && !protocol.is_leaving() {
            protocol.ask_to_leave();
            self.leaves_at = Some(handle.deadline(LEAVING));
        }
        if self.leaves_at.is_some_and(|deadline| deadline.has_passed(handle.clock())) {
            self.leaves_at = None;
            protocol.leave();
        }
    }

    /// Whether the connection has come to its end, once all output was sent.
    fn is_over(&self) -> bool {
        let protocol = self.shared.protocol.borrow();
        protocol.failure().is_some()
            || self.shared.streams.borrow().is_empty() && (protocol.has_left() || self.is_left)
    }

    /// Sends what the socket takes; whether that is all.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let timeout = self.shared.host.core.timeout();
        let handle = self.connection.engine.handle.clone();
        let Some(stream) = self.connection.stream.as_mut() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let has_waited = self.write_deadline.is_some();
        loop {
            let mut protocol = self.shared.protocol.borrow_mut();
            let rest = protocol.output.get(self.sent..).unwrap_or_default();
            if rest.is_empty() {
                let had_output = !protocol.output.is_empty();
                protocol.output.clear();
                self.sent = 0;
                drop(protocol);
                self.awaits_output |= self.shared.output_is_sent(had_output, cx);
                // Records of TLS may still wait for the socket.
                return match stream.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {
                        self.write_deadline = None;
                        if has_waited {
                            self.deadline = self.idle_deadline();
                        }
                        Ok(true)
                    }
                    Poll::Ready(Err(error)) => Err(error),
                    Poll::Pending => {
                        self.write_deadline.get_or_insert(handle.deadline(timeout));
                        Ok(false)
                    }
                };
            }
            let rest = match &mut self.records {
                Some(records) => records.next(rest, stream, handle.clock().now_ms()),
                None => rest,
            };
            match stream.try_write(rest) {
                Ok(count) => {
                    if let Some(records) = &mut self.records {
                        records.sent(count, stream, handle.clock().now_ms());
                    }
                    self.sent += count;
                    self.write_deadline = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    drop(protocol);
                    let deadline = *self.write_deadline.get_or_insert(handle.deadline(timeout));
                    match stream.poll_writable(cx, deadline) {
                        Poll::Ready(outcome) => outcome?,
                        Poll::Pending => return Ok(false),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the frames that have arrived, and serves their requests.
    async fn take_input(&mut self) {
        let engine = self.connection.engine.clone();
        engine.handle.drained().await;
        let options = crate::connection::head_options(&engine, &self.connection.info);
        let now_ms = engine.handle.clock().now_ms();
        let mut failure = None;
        if !self.shared.is_broken.get() {
            let mut protocol = self.shared.protocol.borrow_mut();
            let taken = protocol.receive(&self.input, &options, now_ms);
            self.input.drain(..taken);
            failure = protocol.failure();
        }
        loop {
            let event = self.shared.protocol.borrow_mut().next_event();
            let Some(event) = event else { break };
            self.handle(event);
        }
        if let Some(Failure(code, why)) = failure.filter(|failure| failure.0 != Code::NO_ERROR) {
            let server = &engine.server;
            let text = format_args!("HTTP/2 connection error {}: {why}", code.0);
            server.log_connection(&self.connection.info, "mod_http2.c", Level::Info, 3068, text);
            for stream in self.shared.streams.borrow().iter() {
                stream.break_off();
            }
        }
    }
}
