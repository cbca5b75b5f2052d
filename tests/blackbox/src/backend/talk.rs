//! One connection to a backend: requests are received and answered until it ends.

use std::sync::Arc;
use std::time::Duration;

use socket2::Socket;

use crate::stall::Deadline;

use super::ajp::Packet;
use super::ftp::Session;
use super::player::{Script, Shared};
use super::script::{Act, Declared, Protocol};
use super::wire::{Fill, Wire};
use super::{Progress, ajp, fastcgi, h2, http, pairs, progress};

/// The time limit for what a script waits for.
const ACT_LIMIT: Duration = Duration::from_secs(15);
/// How much of a body Tomcat asks for at once.
const BODY_CHUNK_BYTES: u16 = 8186;

/// How an exchange leaves its connection.
#[derive(PartialEq)]
enum After {
    Open,
    /// The backend has closed its side.
    Closing,
    /// The server has closed, or the connection is reset.
    Gone,
}

/// Receives and answers requests.
pub(super) fn converse(shared: &Shared, at: usize, declared: &Declared, socket: Arc<Socket>) {
    let Ok(mut wire) = Wire::new(socket) else { return };
    if declared.protocol == Protocol::Ftp {
        return serve_ftp(shared, at, &mut wire);
    }
    if declared.protocol == Protocol::H2c {
        return h2::serve(shared, at, declared, &mut wire);
    }
    if declared.protocol == Protocol::Fdpass {
        let Some(client) = wire.client() else { return };
        wire = client;
    }
    let mut number = None;
    loop {
        let at_once = if number.is_none() { shared.take_at_once(at) } else { None };
        let script = match at_once {
            Some(script) => script,
            None if wire.buffer.is_empty() && wire.fill(None) != Fill::More => return,
            None => shared.take(at),
        };
        let (note, connection) = shared.begin(at, &script, number);
        number = Some(connection);
        let mut exchange = Exchange { wire: &mut wire, declared, more: 0, closed: None };
        let after = exchange.run(&script);
        let (bytes, is_cut) = exchange.finish(&after);
        let closed = exchange.closed;
        // Before the socket is dropped, which resets it, the note must be there, and after it the
        // server must have been able to see a close.
        shared.end(note, |heard| {
            heard.bytes = bytes;
            heard.is_cut = is_cut;
            heard.closed = closed;
        });
        match after {
            After::Open => {}
            // What the server still sends isn't answered, nor by a reset.
            After::Closing => {
                while wire.fill(None) == Fill::More {}
                return;
            }
            After::Gone => return,
        }
    }
}

/// A control connection of FTP.
fn serve_ftp(shared: &Shared, at: usize, wire: &mut Wire) {
    let script = shared.take(at);
    let (note, _) = shared.begin(at, &script, None);
    let replies = script.acts.iter().filter_map(|act| match act {
        Act::Reply(reply) => Some(reply.clone()),
        _ => None,
    });
    let mut session = Session::new(wire, replies);
    session.run();
    let bytes = std::mem::take(&mut session.commands);
    shared.end(note, |heard| heard.bytes = bytes);
    while wire.fill(None) == Fill::More {}
}

struct Exchange<'a> {
    wire: &'a mut Wire,
    declared: &'a Declared,
    /// Bytes taken beyond the request.
    more: usize,
    closed: Option<bool>,
}

impl Exchange<'_> {
    fn run(&mut self, script: &Script) -> After {
        let is_awaited = |act: &Act| matches!(act, Act::AwaitClose);
        for act in &script.acts {
            match act {
                Act::Send(bytes) => self.wire.send(bytes),
                Act::Record(_) | Act::Packet(_) | Act::Reply(_) | Act::Frame(_) | Act::AtOnce => {}
                Act::Echo => {
                    if self.echo() == After::Closing {
                        self.wire.half_close();
                        return After::Closing;
                    }
                }
                Act::Head | Act::Request | Act::More(_) => {
                    if let Act::More(count) = act {
                        self.more += count;
                    }
                    if !self.wait(*act == Act::Head) {
                        return After::Gone;
                    }
                }
                Act::Pause(millis) => std::thread::sleep(Duration::from_millis(*millis)),
                Act::AwaitClose => {
                    let end = Deadline::after(ACT_LIMIT);
                    while self.wire.fill(Some(end)) == Fill::More {}
                    self.closed = Some(self.wire.is_closed);
                }
                Act::HalfClose => self.wire.half_close(),
                Act::Close => {
                    self.wire.half_close();
                    return After::Closing;
                }
                Act::Reset => {
                    self.wire.reset();
                    return After::Gone;
                }
            }
        }
        if self.wire.is_closed {
            return After::Gone;
        }
        if script.acts.iter().any(is_awaited) || self.wait(false) {
            After::Open
        } else {
            After::Gone
        }
    }

    /// Waits for the head or all of the request, with the bytes beyond it.
    fn wait(&mut self, is_head_enough: bool) -> bool {
        let end = Deadline::after(ACT_LIMIT);
        loop {
            match progress(self.declared.protocol, &self.wire.buffer) {
                Progress::Whole(len) if self.wire.buffer.len() >= len + self.more => return true,
                Progress::Head if is_head_enough => return true,
                _ if self.wire.fill(Some(end)) != Fill::More => return false,
                _ => {}
            }
        }
    }

    /// Takes the bytes of the request, and says whether some are missing.
    fn finish(&mut self, after: &After) -> (Vec<u8>, bool) {
        let have = self.wire.buffer.len();
        let raw = self.declared.protocol == Protocol::Raw && self.more == 0;
        match progress(self.declared.protocol, &self.wire.buffer) {
            Progress::Whole(_) if raw => (std::mem::take(&mut self.wire.buffer), false),
            Progress::Whole(len) if have >= len + self.more && *after == After::Open => {
                (self.wire.buffer.drain(..len + self.more).collect(), false)
            }
            Progress::Whole(len) => (std::mem::take(&mut self.wire.buffer), have < len + self.more),
            _ => (std::mem::take(&mut self.wire.buffer), true),
        }
    }

    fn echo(&mut self) -> After {
        let name = &self.declared.name;
        let buffer = &self.wire.buffer;
        let (head, mut parameters, body, keeps) = match self.declared.protocol {
            Protocol::Http => {
                self.wire.send(&http::read(buffer).echo(name));
                // A server of HTTP/1 waits for no frames behind the preface of HTTP/2: they would
                // count as a request of whichever block runs by then.
                let is_preface = buffer.starts_with(b"PRI * HTTP/2.0\r\n");
                return if is_preface { After::Closing } else { After::Open };
            }
            Protocol::Fcgi => {
                let request = fastcgi::read(buffer);
                ("", request.parameters, request.body, request.keeps)
            }
            Protocol::Scgi => {
                let request = pairs::scgi(buffer);
                ("Status: 200 OK\r\n", request.parameters, request.body, false)
            }
            Protocol::Uwsgi => {
                let request = pairs::uwsgi(buffer);
                ("HTTP/1.1 200 OK\r\n", request.parameters, request.body, false)
            }
            Protocol::Ajp => return self.echo_ajp(),
            Protocol::Fdpass => {
                self.wire.send(format!("passed to {name}\n").as_bytes());
                return After::Closing;
            }
            Protocol::Ftp | Protocol::H2c | Protocol::Raw => return After::Closing,
        };
        parameters.sort();
        let mut answer =
            format!("{head}Content-Type: text/plain\r\nBackend: {name}\r\n\r\n").into_bytes();
        for parameter in parameters {
            answer.extend(parameter.into_bytes());
            answer.push(b'\n');
        }
        answer.extend(http::echoed(&body));
        if self.declared.protocol == Protocol::Fcgi {
            answer = fastcgi::answer(&answer);
        }
        self.wire.send(&answer);
        if keeps { After::Open } else { After::Closing }
    }

    /// Asks for the rest of the body, and answers.
    fn echo_ajp(&mut self) -> After {
        let end = Deadline::after(ACT_LIMIT);
        let Progress::Whole(first) = ajp::progress(&self.wire.buffer) else {
            return After::Closing;
        };
        loop {
            let mut request = ajp::read(&self.wire.buffer);
            self.more = self.wire.buffer.len().saturating_sub(first);
            if request.is_ping {
                self.wire.send(&Packet::Pong.bytes(<[u8]>::to_vec));
                return After::Open;
            }
            if request.broken.is_none() && !request.is_incomplete {
                request.lines.sort();
                let mut text = request.lines.join("\n").into_bytes();
                text.push(b'\n');
                text.extend(http::echoed(&request.body));
                self.wire.send(&ajp::answer(&self.declared.name, &text));
                return After::Open;
            }
            if request.broken.is_none() {
                self.wire.send(&Packet::GetBody(BODY_CHUNK_BYTES).bytes(<[u8]>::to_vec));
            }
            if self.wire.fill(Some(end)) != Fill::More {
                return After::Closing;
            }
        }
    }
}
