//! A connection that becomes a tunnel instead of serving another request.
//!
//! While nothing happens a tunnel is its two sockets and the request, for the log: the buffers of a
//! busy connection and the futures of a request are left behind.

use std::io;

use rt::Pooled;
use server::hooks::Phase;
use server::log::Level;
use server::request::Request;
use server::tunnel::{Message, Tunnel};

use super::finish::Sent;
use super::{Active, Connection, interim};

/// A tunnel whose head has been sent, or could not be.
pub(super) struct Begun {
    request: Pooled<Request>,
    tunnel: Box<Tunnel>,
    /// What the client has sent behind its request.
    early: Vec<u8>,
    /// The position in the client's stream where the head began.
    began: u64,
    outcome: io::Result<()>,
}

/// Sends the head; the rest is for [`run`].
pub(super) async fn begin(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    mut tunnel: Box<Tunnel>,
) {
    let Some(near) = connection.stream.as_mut() else { return };
    let began = near.sent();
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    let timeout = request.host.core.timeout();
    let mut outcome = interim::finish(near, &connection.info, timeout).await;
    if outcome.is_ok() {
        outcome = near.write_all(&tunnel.head, timeout).await;
    }
    tunnel.head = Vec::new();
    request.shrink();
    // What is pooled with it would stay as long.
    let early = std::mem::take(&mut active.input);
    active.tunnel = Some(Box::new(Begun { request, tunnel, early, began, outcome }));
}

/// Sends what has arrived at either end until both have ended; logs the request then, as Apache
/// does.
pub(super) async fn run(mut connection: Connection, begun: Box<Begun>) {
    let engine = connection.engine.clone();
    let _active = engine.connections.active();
    let _writing = engine.connections.writing();
    let Begun { mut request, mut tunnel, early, began, outcome } = *begun;
    let mut outward = 0;
    if let Some(near) = connection.stream.as_mut().filter(|_| outcome.is_ok()) {
        let early = [early, std::mem::take(&mut tunnel.received)];
        let (carried, ended) = rt::tunnel(near, &mut tunnel.far, early, tunnel.idle).await;
        outward = usize::try_from(carried.outward).unwrap_or(usize::MAX);
        let is_silent = ended.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if let Some(Message { module, number, text }) = tunnel.timed_out.filter(|_| is_silent) {
            request.log_as(module, Level::Error, number, format_args!("{text}"));
        }
        if let Some(status) = tunnel.unanswered.filter(|_| carried.inward == 0) {
            request.response.status = status;
        }
    }
    drop(tunnel);
    request.traffic.bytes_in += connection.count_received(outward, 0);
    let has_log = !request.plan.phase(Phase::LogTransaction).is_empty();
    let sent = Sent { began, says_keep: false, outcome };
    Box::pin(connection.finish(&mut request, &sent, has_log)).await;
    request.renew();
    if sent.outcome.is_ok() {
        Box::pin(connection.close()).await;
    }
}
