//! What the scoreboard knows of a loop's last request (`ExtendedStatus`).

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;

use mpm::scoreboard::RequestNote;
use server::engine::Engine;
use server::request::Request;

use super::is_extended;

/// The bytes of a request line that are shown.
const SHOWN_BYTES: usize = 128;

/// Bytes of a text with a client's address, or a virtual host's name and port.
const TEXT_BYTES: usize = 128;

thread_local! {
    /// The turn in which this loop last noted a request: its texts are written once a millisecond
    /// at most, because nobody can read them faster.
    static NOTED_MS: Cell<u64> = const { Cell::new(u64::MAX) };
    /// What this loop has noted.
    static NOTED: RefCell<Noted> = const { RefCell::new(Noted::nothing()) };
}

/// What stands on the scoreboard, so that nothing is written there that does already: a thread with
/// one connection comes to the same texts with almost every request.
struct Noted {
    /// Of which engine, connection, host, client; and whether the client's name was known.
    of: Option<(*const Engine, u64, u32, SocketAddr, bool)>,
    client: Vec<u8>,
    vhost: Vec<u8>,
    /// The part of the request line that is shown.
    line: Vec<u8>,
    protocol: u16,
}

impl Noted {
    const fn nothing() -> Self {
        Self { of: None, client: Vec::new(), vhost: Vec::new(), line: Vec::new(), protocol: 0 }
    }

    /// Takes the request's texts over; whether any is another than before.
    fn take(&mut self, request: &Request) -> bool {
        let is_other = self.take_names(request);
        let line = shown(request);
        if !is_other && self.line == line && self.protocol == request.protocol {
            return false;
        }
        self.line.clear();
        self.line.extend_from_slice(line);
        self.protocol = request.protocol;
        true
    }

    fn take_names(&mut self, request: &Request) -> bool {
        let name = request.known_client_name();
        let of = Some((
            Rc::as_ptr(&request.engine),
            request.client.id,
            request.host.id,
            request.useragent_addr,
            name.is_some(),
        ));
        if self.of == of {
            return false;
        }
        self.of = of;
        for text in [&mut self.client, &mut self.vhost] {
            text.clear();
            text.reserve(TEXT_BYTES);
        }
        // Writing to a Vec can't fail.
        match name {
            Some(name) => self.client.extend_from_slice(name),
            None => drop(write!(self.client, "{}", request.useragent_addr.ip())),
        }
        self.vhost.extend_from_slice(request.host.name());
        let _ = write!(self.vhost, ":{}", request.client.local.port());
        true
    }
}

/// Notes the request whose answer begins.
pub(super) fn begin(request: &Request) {
    NOTED.with_borrow_mut(|noted| {
        let slot = &request.engine.slot;
        if !noted.take(request) {
            return slot.set_last_used_us(request.engine.handle.clock().wall_us());
        }
        let protocol = match noted.protocol {
            1001.. => &b"http/1.1"[..],
            1000 => b"http/1.0",
            _ => b"http/0.9",
        };
        let Noted { client, vhost, line, .. } = &*noted;
        let note = RequestNote { client, vhost, request: line, protocol };
        slot.request_begin(Some(&note));
    });
}

/// The part of the request line that is shown: its end with `SeeRequestTail`.
fn shown(request: &Request) -> &[u8] {
    let line = request.request_line.as_slice();
    let globals = &request.engine.server.main().core.globals.0;
    if globals.see_request_tail.or(false) {
        line.get(line.len().saturating_sub(SHOWN_BYTES)..).unwrap_or_default()
    } else {
        line.get(..SHOWN_BYTES).unwrap_or(line)
    }
}

/// After the answer: what it was.
pub(super) fn after(request: &Request) {
    if !is_extended(request) {
        return;
    }
    let now_ms = request.engine.handle.clock().now_ms();
    if NOTED_MS.replace(now_ms) != now_ms {
        begin(request);
        connection(request);
    }
}

/// Notes what the connection has had so far.
pub(super) fn connection(request: &Request) {
    let client = &request.client;
    let accesses = u64::from(client.keepalives.get());
    request.engine.slot.set_connection_counts(accesses, client.bytes_out.get());
}
