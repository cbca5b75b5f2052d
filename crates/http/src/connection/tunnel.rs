//! A connection that becomes a tunnel instead of serving another request.
//!
//! While nothing happens a tunnel is its two sockets and the request, for the log: the buffers of a
//! busy connection and the futures of a request are left behind.

use std::io;
use std::mem::take;

use rt::{Carried, Pooled};
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
    let early = take(&mut active.input);
    active.tunnel = Some(Box::new(Begun { request, tunnel, early, began, outcome }));
}

/// Sends what has arrived at either end until both have ended; logs the request then, as Apache
/// does.
///
/// It is a block that uses what it captures in place: an async function would also have room for
/// its arguments, and there may be ten thousand tunnels.
#[expect(clippy::manual_async_fn, reason = "see above")]
pub(super) fn run(mut connection: Connection, mut begun: Box<Begun>) -> impl Future<Output = ()> {
    async move {
        let engine = connection.engine.clone();
        let _active = engine.connections.active();
        let _writing = engine.connections.writing();
        let outward = match connection.stream.as_mut().filter(|_| begun.outcome.is_ok()) {
            Some(near) => {
                let early = [take(&mut begun.early), take(&mut begun.tunnel.received)];
                let Tunnel { far, idle, .. } = &mut *begun.tunnel;
                let (carried, ended) = rt::tunnel(near, far, early, *idle).await;
                begun.note(carried, &ended);
                usize::try_from(carried.outward).unwrap_or(usize::MAX)
            }
            None => 0,
        };
        begun.request.traffic.bytes_in += connection.count_received(outward, 0);
        Box::pin(end(connection, begun)).await;
    }
}

impl Begun {
    /// Notes in the request what the tunnel has carried, and why it ended.
    fn note(&mut self, carried: Carried, ended: &io::Result<()>) {
        let is_silent = ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if let Some(&Message { module, number, text }) = self.tunnel.timed_out.filter(|_| is_silent)
        {
            self.request.log_as(module, Level::Error, number, format_args!("{text}"));
        }
        if let Some(status) = self.tunnel.unanswered.filter(|_| carried.inward == 0) {
            self.request.response.status = status;
        }
    }
}

/// Logs the request, and closes the connection.
async fn end(mut connection: Connection, begun: Box<Begun>) {
    let Begun { mut request, tunnel, began, outcome, .. } = *begun;
    drop(tunnel);
    let has_log = !request.plan.phase(Phase::LogTransaction).is_empty();
    let sent = Sent { began, says_keep: false, outcome };
    connection.finish(&mut request, &sent, has_log).await;
    request.renew();
    if sent.outcome.is_ok() {
        connection.close().await;
    }
}
