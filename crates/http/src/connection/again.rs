//! The shortest way: a head that was answered before, byte for byte
//! ([`crate::cache::repeat`]).

use std::io;
use std::rc::Rc;

use wire::Progress;

use super::{Active, Connection, burst, encore, fast};
use crate::cache::repeat::Repeat;
use crate::cache::resource::{Content, IN_MEMORY_BYTES, Resource};
use server::hooks::Phase;
use server::request::Request;

/// Notices whether what was received is such a head. `Err` with it, if it is; otherwise whether it
/// has come before and would be worth keeping.
pub(super) fn look(connection: &Connection, input: &[u8]) -> Result<bool, Rc<Repeat>> {
    let repeats = &connection.engine.resources.repeats;
    let Some(asked) = repeats.ask(input) else { return Ok(false) };
    match repeats.find(asked, connection.client.local) {
        Some(repeat) if repeat.admits(&connection.client) => Err(repeat),
        // It is there, for others.
        Some(_) => Ok(false),
        None => Ok(repeats.is_again(asked)),
    }
}

/// Answers it; whether the connection stays open.
pub(super) async fn answer(
    connection: &mut Connection,
    active: &mut Active,
    repeat: Rc<Repeat>,
) -> io::Result<bool> {
    let engine = connection.engine.clone();
    let is_fresh = repeat.resource().is_fresh(engine.handle.witness());
    if !is_fresh {
        engine.resources.repeats.forget(&repeat);
    }
    let repeats = &engine.resources.repeats;
    let lent = if is_fresh { repeat.request(repeats, &connection.client) } else { None };
    let Some(mut lent) = lent else {
        return match connection.parse(active, repeat.bytes()) {
            Progress::Done { consumed } => burst::answer(connection, active, consumed).await,
            // What was a whole head once is one now.
            Progress::NeedMore | Progress::Error(_) => Ok(false),
        };
    };
    let _writing = engine.connections.writing();
    connection.count_received(repeat.bytes().len());
    match fast::send(connection, active, lent.request(), repeat.resource().clone()) {
        Some(sent) => {
            let stays_open = fast::finish(connection, active, lent.request(), sent).await?;
            if stays_open {
                encore::prepare(connection, active, &repeat, lent);
            }
            Ok(stays_open)
        }
        None => Ok(false),
    }
}

/// Whether an answer may be given again to the same bytes.
pub(super) fn may(request: &Request, resource: &Resource) -> bool {
    let is_small = match &resource.content {
        Content::Memory(bytes) => bytes.len() as u64 <= IN_MEMORY_BYTES,
        Content::File(_) => false,
    };
    is_small && request.plan.phase(Phase::PostReadRequest).is_empty()
}
