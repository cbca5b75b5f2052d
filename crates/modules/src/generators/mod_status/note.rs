//! The scoreboard's entry for a loop's last request (`ExtendedStatus`).

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;

use mpm::scoreboard::RequestNote;
use server::engine::Engine;
use server::request::Request;

use super::is_extended;

/// Bytes of a request line that are shown.
const SHOWN_BYTES: usize = 128;

/// Bytes of a text with a client's address, or a virtual host's name and port.
const TEXT_BYTES: usize = 128;

thread_local! {
    /// The millisecond in which this loop last noted a request: its texts are written at most once
    /// a millisecond, since no reader is faster.
    static NOTED_MS: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The texts that this loop has noted.
    static NOTED: RefCell<Noted> = const { RefCell::new(Noted::nothing()) };
}

/// A copy of the texts on the scoreboard, so that equal texts are not written again: a thread with
/// one connection produces the same texts for almost every request.
struct Noted {
    /// Engine, connection, host and client of the request; and whether the client's name was known.
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

    /// Copies the request's texts; returns whether any has changed.
    fn take(&mut self, request: &Request) -> bool {
        let is_other = self.take_names(request);
        let line = shown(request);
        if !is_other && self.line == *line && self.protocol == request.head.protocol {
            return false;
        }
        self.line.clear();
        self.line.extend_from_slice(&line);
        self.protocol = request.head.protocol;
        true
    }

    fn take_names(&mut self, request: &Request) -> bool {
        let name = request.known_client_name();
        let of = Some((
            Rc::as_ptr(&request.engine),
            request.connection.id,
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
        let _ = write!(self.vhost, ":{}", request.connection.local.port());
        true
    }
}

/// Notes the request whose response begins.
pub(super) fn begin(request: &Request) {
    NOTED.with_borrow_mut(|noted| {
        let slot = &request.engine.slot;
        if !noted.take(request) {
            return slot.set_last_used_us(request.engine.handle.clock().wall_us());
        }
        let protocol = match noted.protocol {
            2000.. if request.connection.tls.is_some() => &b"h2"[..],
            2000.. => b"h2c",
            1001.. => b"http/1.1",
            1000 => b"http/1.0",
            _ => b"http/0.9",
        };
        let Noted { client, vhost, line, .. } = &*noted;
        let note = RequestNote { client, vhost, request: line, protocol };
        slot.request_begin(Some(&note));
    });
}

/// The part of the request line that is shown, without a password; its end with `SeeRequestTail`.
fn shown(request: &Request) -> Cow<'_, [u8]> {
    let globals = &request.engine.server.main().core.globals.0;
    let is_end = globals.see_request_tail.or(false);
    let part = |line: &[u8]| match line.len().saturating_sub(SHOWN_BYTES) {
        hidden if is_end => hidden..line.len(),
        _ => 0..line.len().min(SHOWN_BYTES),
    };
    match request.line_without_password(None) {
        Cow::Borrowed(line) => line.get(part(line)).unwrap_or_default().into(),
        Cow::Owned(line) => line.get(part(&line)).unwrap_or_default().to_vec().into(),
    }
}

/// Notes the response after its end.
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

/// Notes the connection's totals.
pub(super) fn connection(request: &Request) {
    let client = &request.connection;
    let accesses = u64::from(client.keepalives.get());
    request.engine.slot.set_connection_counts(accesses, client.bytes_sent.get());
}
