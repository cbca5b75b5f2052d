//! A connection that becomes a tunnel instead of serving another request.

use std::io;

use rt::Pooled;
use server::hooks::Phase;
use server::request::Request;
use server::tunnel::Tunnel;

use super::finish::Sent;
use super::{Active, Connection, interim};

/// Sends the head, and what has arrived at either end until both have ended; logs the request then,
/// as Apache does.
pub(super) async fn run(
    connection: &mut Connection,
    active: &mut Active,
    mut request: Pooled<Request>,
    tunnel: Box<Tunnel>,
) -> io::Result<bool> {
    let Some(near) = connection.stream.as_mut() else { return Ok(false) };
    let began = near.sent();
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    let Tunnel { head, mut far, received, idle, guard } = *tunnel;
    let timeout = request.host.core.timeout();
    let mut outcome = interim::finish(near, &connection.info, timeout).await;
    if outcome.is_ok() {
        outcome = near.write_all(&head, timeout).await;
    }
    if outcome.is_ok() {
        let early = [std::mem::take(&mut active.input), received];
        let (_, ended) = rt::tunnel(near, &mut far, early, idle).await;
        outcome = ended.or_else(|error| match error.kind() {
            // Silence ends it as it should.
            io::ErrorKind::TimedOut => Ok(()),
            _ => Err(error),
        });
    }
    drop((far, guard));
    let has_log = !request.plan.phase(Phase::LogTransaction).is_empty();
    let sent = Sent { began, says_keep: false, outcome };
    connection.finish(&mut request, &sent, has_log).await;
    request.renew();
    sent.outcome.map(|()| false)
}
