//! The recorded requests over HTTP/2 (`--http2`): the same status, fields and bodies.
//!
//! The requests of a connection that HTTP/2 can express follow each other on one. What a response
//! has because of HTTP/1 is left out on both sides: the reason, fields of the connection, and what
//! becomes of it. Fields are decoded by a crate that shares nothing with the server.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use httlib_hpack::Decoder;

use crate::answer::{Answer, Head};
use crate::client::{Client, Fill};
use crate::stall::Deadline;
use crate::testfile::{Block, Item, Step, TestFile};

/// Whether the tests run over HTTP/2.
pub static ON: AtomicBool = AtomicBool::new(false);

/// What is added to each configuration.
pub const CONFIG: &str = "Protocols h2 h2c http/1.1\n";

/// The longest body that is sent without waiting for the server's window.
const BODY_BYTES_MAX: usize = 60_000;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Fields of a connection of HTTP/1.
const OF_CONNECTION: [&str; 5] =
    ["connection", "keep-alive", "transfer-encoding", "upgrade", "proxy-connection"];

/// Variables of requests of HTTP/2, as programs print them.
const VARIABLES: [&str; 5] =
    ["| H2PUSH=", "| H2_", "| HTTP2=", "| REDIRECT_H2", "| REDIRECT_HTTP2="];

/// Whether the tests run over HTTP/2.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The files that are left out, by their names.
///
/// Errors: `tests/HTTP2_DIFFERS` can't be read, or has a line without a reason.
pub fn differing(tests: &Path) -> Result<Vec<String>, String> {
    let path = tests.join("HTTP2_DIFFERS");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let name = |line: &str| match line.split_once(": ") {
        Some((name, reason)) if !reason.is_empty() => Ok(name.to_owned()),
        _ => Err(format!("{}: '{line}' has no reason", path.display())),
    };
    lines.map(name).collect()
}

/// Leaves out what differs: files by name, connections by `name (title)`.
pub fn leave_out(files: &mut Vec<TestFile>, differing: &[String]) {
    files.retain_mut(|file| {
        let TestFile { name, items, .. } = file;
        items.retain(|item| match item {
            Item::Connection(connection) => {
                let title = &connection.title;
                !differing.iter().any(|other| *other == format!("{name} ({title})"))
            }
            _ => true,
        });
        !differing.contains(name)
    });
}

/// Leaves what HTTP/2 can express of a file; false if that is nothing.
pub fn reduce(file: &mut TestFile) -> bool {
    let is_prefork = |module: &String| module == "mpm_prefork";
    let is_known =
        |line: &str| line.trim_start().starts_with("Protocols") || line.contains("mod_http2");
    if file.bare || file.modules.iter().any(is_prefork) || file.config.lines().any(is_known) {
        return false;
    }
    file.items.retain_mut(|item| match item {
        Item::Connection(connection) => {
            let special = |word: &String| {
                word == "show" || word.starts_with("first=") || word.starts_with("alpn=")
            };
            if connection.options.iter().any(special) {
                return false;
            }
            connection.requests.retain(is_expressible);
            for block in &mut connection.requests {
                comparable(&mut block.recorded);
                if let Some((_, ours)) = &mut block.differs {
                    comparable(ours);
                }
            }
            if connection.options.iter().any(|word| word == "tls") {
                connection.options.push("alpn=h2".to_owned());
            }
            !connection.requests.is_empty()
        }
        _ => false,
    });
    !file.items.is_empty()
}

/// Whether HTTP/2 has the same request, and its response was recorded.
fn is_expressible(block: &Block) -> bool {
    let waits = |step: &Step| !matches!(step, Step::Send(_) | Step::Change(_));
    let odd = ["= no answer", "= broken", "= alert", "= cut", "< HTTP/1.0"];
    let is_odd = |line: &String| odd.iter().any(|odd| line.starts_with(odd));
    !block.steps.iter().any(waits)
        && block.exchanges.is_empty()
        && block.recorded.first().is_some_and(|line| line.starts_with("< HTTP/1.1"))
        && !block.recorded.iter().any(is_odd)
        && Request::parse(&sent(block)).is_some()
}

fn sent(block: &Block) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in &block.steps {
        if let Step::Send(more) = step {
            bytes.extend_from_slice(more);
        }
    }
    bytes
}

/// Leaves the lines of a recording that HTTP/2 has, too, with names in one spelling.
pub fn comparable(lines: &mut Vec<String>) {
    lines.retain_mut(|line| {
        if line.starts_with("= ") {
            return line.starts_with("= trailer");
        }
        // Programs learn of it by variables.
        if VARIABLES.iter().any(|name| line.starts_with(name)) {
            return false;
        }
        *line = line.replace("HTTP/2.0", "HTTP/1.1").replace("Via: 2.0 ", "Via: 1.1 ");
        let Some(rest) = line.strip_prefix("< ") else { return true };
        if rest.starts_with("HTTP/") {
            let words: Vec<&str> = rest.trim_end_matches("\\x20").split(' ').take(2).collect();
            *line = format!("< {}", words.join(" "));
            return true;
        }
        let Some((name, value)) = rest.split_once(':') else { return true };
        if OF_CONNECTION.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return false;
        }
        // Blanks around a value are no part of it, and a masked length counts for nothing.
        let value = value.trim_end_matches("\\x20").trim_end_matches("\\t").trim();
        // What the client tells of the end of a body is about HTTP/1.
        if name == "Framing" {
            return false;
        }
        if name.eq_ignore_ascii_case("Content-Length") && value == "*" {
            return false;
        }
        *line = format!("< {}: {value}", spelled(name));
        true
    });
}

/// A name as Apache writes it: masks of test files name it like that.
fn spelled(name: &str) -> String {
    for special in ["ETag", "WWW-Authenticate", "Content-MD5"] {
        if special.eq_ignore_ascii_case(name) {
            return special.to_owned();
        }
    }
    let words = name.split('-').map(|word| {
        let mut lower = word.to_ascii_lowercase();
        if let Some(first) = lower.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        lower
    });
    words.collect::<Vec<_>>().join("-")
}

/// A request of HTTP/1.1, for HTTP/2.
#[derive(Debug, PartialEq)]
pub struct Request {
    method: String,
    /// Pseudo-header fields and fields.
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Request {
    /// The request; `None` if HTTP/2 has no such request.
    pub fn parse(bytes: &[u8]) -> Option<Request> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let (head, body) = bytes.split_at(end + 4);
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let words: Vec<&str> = lines.next()?.split(' ').collect();
        let [method, target, "HTTP/1.1"] = *words.as_slice() else { return None };
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte > b' ');
        let is_method = method.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_target = target.starts_with('/') || target == "*" && method == "OPTIONS";
        // The target of a request for a proxy has a host of its own.
        if !is_method || !is_plain(target) || !is_target || target.contains('#') {
            return None;
        }
        let (mut fields, mut authority, mut length) = (Vec::new(), None, 0);
        for line in lines {
            let (name, value) = line.split_once(':')?;
            let name = name.to_ascii_lowercase();
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            let is_valid = value.bytes().all(|byte| byte == b'\t' || byte >= b' ');
            if !name.bytes().all(is_token) || name.is_empty() || !is_valid {
                return None;
            }
            let value = value.trim();
            match name.as_str() {
                "host" if authority.is_some() || value.is_empty() => return None,
                "host" => {
                    authority = Some(value.to_owned());
                    continue;
                }
                "connection" if ["close", "keep-alive"].contains(&value) => continue,
                "te" | "expect" | "connection" | "upgrade" | "transfer-encoding" | "keep-alive"
                | "proxy-connection" => return None,
                "content-length" => length = value.parse().ok()?,
                _ => {}
            }
            fields.push((name, value.as_bytes().to_vec()));
        }
        if length != body.len() || length > BODY_BYTES_MAX {
            return None;
        }
        let pseudo = [
            (":method", method.to_owned()),
            (":scheme", "http".to_owned()),
            (":path", target.to_owned()),
            (":authority", authority?),
        ];
        let pseudo = pseudo.map(|(name, value)| (name.to_owned(), value.into_bytes()));
        fields.splice(0..0, pseudo);
        Some(Request { method: method.to_owned(), fields, body: body.to_vec() })
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The request's frames.
    fn frames(&self, stream: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let stream = stream.to_be_bytes();
        let mut block = Vec::new();
        for (name, value) in &self.fields {
            block.push(0);
            for text in [name.as_bytes(), value] {
                string(text, &mut block);
            }
        }
        let mut pieces = block.chunks(16 * 1024).peekable();
        let end_stream = u8::from(self.body.is_empty());
        let mut kind = 1;
        while let Some(piece) = pieces.next() {
            let end_headers = if pieces.peek().is_none() { 4 } else { 0 };
            let flags = end_headers | if kind == 1 { end_stream } else { 0 };
            frame(kind, flags, stream, piece, &mut out);
            kind = 9;
        }
        let mut pieces = self.body.chunks(16 * 1024).peekable();
        while let Some(piece) = pieces.next() {
            frame(0, u8::from(pieces.peek().is_none()), stream, piece, &mut out);
        }
        out
    }
}

fn frame(kind: u8, flags: u8, stream: [u8; 4], payload: &[u8], out: &mut Vec<u8>) {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream);
    out.extend_from_slice(payload);
}

/// A string that is not compressed.
fn string(text: &[u8], out: &mut Vec<u8>) {
    if text.len() < 127 {
        out.push(text.len() as u8);
    } else {
        out.push(127);
        let mut rest = text.len() - 127;
        while rest >= 128 {
            out.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        out.push(rest as u8);
    }
    out.extend_from_slice(text);
}

/// A connection, as its client sees it.
pub struct Http2 {
    client: Client,
    decoder: Decoder<'static>,
    /// The last stream.
    stream: u32,
}

impl Http2 {
    /// Begins with the largest windows.
    pub fn new(mut client: Client) -> Http2 {
        let mut out = PREFACE.to_vec();
        let largest = [0x7f, 0xff, 0xff, 0xff];
        frame(4, 0, [0; 4], &[&[0, 4][..], &largest].concat(), &mut out);
        frame(8, 0, [0; 4], &[0x7f, 0xfe, 0, 0], &mut out);
        client.send(&out);
        Http2 { client, decoder: Decoder::default(), stream: 0 }
    }

    /// Whether the server has closed.
    pub fn has_ended(&self) -> bool {
        self.client.end.is_some()
    }

    /// Sends a request and reads its response. `None` if the connection ends.
    pub fn exchange(&mut self, request: &Request, deadline: Deadline) -> Option<Answer> {
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        let stream = self.stream;
        self.client.send(&request.frames(stream));
        let (mut answer, mut block, mut block_ends) = (Answer::default(), Vec::new(), false);
        loop {
            let frame = next_frame(&mut self.client, deadline)?;
            let Frame { kind, flags, payload, .. } = frame;
            if frame.stream != stream && kind != 7 {
                continue;
            }
            match kind {
                0 => answer.body.extend_from_slice(&payload),
                1 | 9 => {
                    block_ends |= kind == 1 && flags & 1 != 0;
                    block.extend(payload);
                    if flags & 4 != 0 {
                        take_fields(&mut self.decoder, &mut block, &mut answer)?;
                    }
                }
                3 | 7 => {
                    answer.broken = Some(format!("reset: {payload:?}"));
                    return Some(answer);
                }
                _ => {}
            }
            let is_end = kind == 0 && flags & 1 != 0 || block_ends && flags & 4 != 0;
            if is_end && matches!(kind, 0 | 1 | 9) {
                return Some(answer);
            }
        }
    }
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn next_frame(client: &mut Client, deadline: Deadline) -> Option<Frame> {
    loop {
        if let [a, b, c, kind, flags, s, t, u, v, rest @ ..] = client.buffer.as_slice() {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if let Some(payload) = rest.get(..length) {
                let (kind, flags, payload) = (*kind, *flags, payload.to_vec());
                let stream = u32::from_be_bytes([*s, *t, *u, *v]);
                client.buffer.drain(..9 + length);
                return Some(Frame { kind, flags, stream, payload });
            }
        }
        if client.fill(deadline) != Fill::More {
            return None;
        }
    }
}

fn take_fields(decoder: &mut Decoder<'_>, block: &mut Vec<u8>, answer: &mut Answer) -> Option<()> {
    let mut decoded = Vec::new();
    decoder.decode(block, &mut decoded).ok()?;
    block.clear();
    let mut head = Head::default();
    for (name, value, _) in decoded {
        if name == b":status" {
            head.status_line = [b"HTTP/1.1 ", value.as_slice()].concat();
        } else {
            head.fields.push((spelled(&String::from_utf8_lossy(&name)), value));
        }
    }
    match head.status() {
        0 => answer.trailers = head.fields,
        100..200 => answer.interim.push(head),
        _ => answer.head = Some(head),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_http_2_has_is_parsed() {
        let request = Request::parse(b"GET /a HTTP/1.1\r\nHost: h\r\nX-A:  b \r\n\r\n").unwrap();
        assert_eq!(request.fields.last().unwrap(), &("x-a".to_owned(), b"b".to_vec()));
        for other in [
            "GET /a HTTP/1.0\r\nHost: h\r\n\r\n",
            "GET /a HTTP/1.1\r\n\r\n",
            "GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na",
            "GET  /a HTTP/1.1\r\nHost: h\r\n\r\n",
        ] {
            assert_eq!(Request::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn what_http_1_adds_is_left_out() {
        let text = ["< HTTP/1.1 200 OK", "< ETag: x", "< Connection: close", "<", "| b", "= open"];
        let mut lines = text.map(str::to_owned).to_vec();
        comparable(&mut lines);
        assert_eq!(lines, ["< HTTP/1.1 200", "< ETag: x", "<", "| b"]);
    }
}
