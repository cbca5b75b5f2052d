//! What the scoreboard knows of a loop's last request (`ExtendedStatus`).

use std::cell::{Cell, RefCell};
use std::io::Write;

use mpm::scoreboard::RequestNote;
use server::hooks::{Answer, Bound};
use server::request::Request;

use super::{Status, is_extended};

/// The bytes of a request line that are shown.
const SHOWN_BYTES: usize = 128;

/// Bytes of a text with a client's address, or a virtual host's name and port.
const TEXT_BYTES: usize = 128;

thread_local! {
    /// The turn in which this loop last noted a request: its texts are written once a millisecond
    /// at most, because nobody can read them faster.
    static NOTED_MS: Cell<u64> = const { Cell::new(u64::MAX) };
    static TEXTS: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Notes the request whose answer begins.
pub(super) fn begin(request: &Request) {
    TEXTS.with_borrow_mut(|(client, vhost)| {
        for text in [&mut *client, &mut *vhost] {
            text.clear();
            text.reserve(TEXT_BYTES);
        }
        // Writing to a Vec can't fail.
        match request.known_client_name() {
            Some(name) => client.extend_from_slice(name),
            None => drop(write!(client, "{}", request.useragent_addr.ip())),
        }
        vhost.extend_from_slice(request.host.name());
        let _ = write!(vhost, ":{}", request.client.local.port());
        let protocol = match request.protocol {
            1001.. => &b"http/1.1"[..],
            1000 => b"http/1.0",
            _ => b"http/0.9",
        };
        let note = RequestNote { client, vhost, request: shown(request), protocol };
        request.engine.slot.request_begin(Some(&note));
    });
}

/// The part of the request line that is shown: its end with `SeeRequestTail`.
fn shown(request: &Request) -> &[u8] {
    let line = request.request_line.as_slice();
    let globals = &request.engine.server.main().core.globals.0;
    if globals.see_request_tail.or(false) {
        line.get(line.len().saturating_sub(SHOWN_BYTES)..).unwrap_or_default()
    } else {
        line
    }
}

/// After the answer: what it was.
pub(super) fn after<'r>(_: Bound<'r, Status>, request: &'r mut Request) -> Answer<'r> {
    if !is_extended(request) {
        return Answer::DECLINED;
    }
    let now_ms = request.engine.handle.clock().now_ms();
    if NOTED_MS.replace(now_ms) != now_ms {
        begin(request);
        connection(request);
    }
    Answer::DECLINED
}

/// Notes what the connection has had so far.
pub(super) fn connection(request: &Request) {
    let client = &request.client;
    let accesses = u64::from(client.keepalives.get());
    request.engine.slot.set_connection_counts(accesses, client.bytes_out.get());
}
