//! HTTP/2 in clear as a backend sees it: frames are taken apart here, and fields decoded by a
//! crate, so that a recording can't share the mistakes of the codec under test.

use std::collections::VecDeque;
use std::time::Duration;

use httlib_hpack::Decoder;

use crate::escape::{escape, unescape};
use crate::stall::Deadline;

use super::http;
use super::player::{Script, Shared};
use super::script::{Act, Declared};
use super::wire::{Fill, Wire};

/// The time limit for what a script waits for.
const ACT_LIMIT: Duration = Duration::from_secs(15);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;
const FRAME_BYTES: usize = 16_384;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// A frame of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    kind: u8,
    flags: u8,
    /// The stream; that of the request without a number.
    stream: Option<u32>,
    content: Content,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    /// `NAME: VALUE` lines.
    Fields(Vec<u8>),
    Bytes(Vec<u8>),
    /// GOAWAY of this code, after the stream of the request.
    Leave(u32),
}

impl Frame {
    /// Parses `HEADERS [END] :status: 200\nname: value…`, `DATA text`, `END text` (the last DATA),
    /// `RST_STREAM code`, `GOAWAY last|own code`, or `FRAME type flags stream text`.
    pub fn parse(line: &str) -> Result<Frame, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("{text:?} is no number"));
        let frame = |kind, flags, content| Frame { kind, flags, stream: None, content };
        Ok(match word {
            "HEADERS" => {
                let (ends, text) = match rest.strip_prefix("END ") {
                    Some(text) => (END_STREAM, text),
                    None => (0, rest),
                };
                frame(HEADERS, END_HEADERS | ends, Content::Fields(unescape(text)?))
            }
            "DATA" => frame(DATA, 0, Content::Bytes(unescape(rest)?)),
            "END" => frame(DATA, END_STREAM, Content::Bytes(unescape(rest)?)),
            "RST_STREAM" => {
                frame(RST_STREAM, 0, Content::Bytes(number(rest)?.to_be_bytes().to_vec()))
            }
            "GOAWAY" => {
                let (last, code) = rest.split_once(' ').ok_or("GOAWAY LAST CODE")?;
                let leave = Content::Leave(number(code)?);
                if last == "own" {
                    return Ok(Frame { stream: Some(0), ..frame(GOAWAY, 0, leave) });
                }
                let bytes = [number(last)?.to_be_bytes(), number(code)?.to_be_bytes()].concat();
                Frame { stream: Some(0), ..frame(GOAWAY, 0, Content::Bytes(bytes)) }
            }
            "FRAME" => {
                let words: Vec<&str> = rest.splitn(4, ' ').collect();
                let [kind, flags, stream, text] = *words.as_slice() else {
                    return Err("FRAME TYPE FLAGS STREAM TEXT".into());
                };
                let stream = if stream == "own" { None } else { Some(number(stream)?) };
                let content = Content::Bytes(unescape(text)?);
                Frame { stream, ..frame(number(kind)? as u8, number(flags)? as u8, content) }
            }
            _ => return Err(format!("unknown frame {word:?}")),
        })
    }

    /// The same, with placeholders filled.
    pub fn filled(&self, fill: impl Fn(&[u8]) -> Vec<u8>) -> Frame {
        let content = match &self.content {
            Content::Fields(text) => Content::Fields(fill(text)),
            Content::Bytes(text) => Content::Bytes(fill(text)),
            Content::Leave(code) => Content::Leave(*code),
        };
        Frame { content, ..self.clone() }
    }

    fn bytes(&self, own: u32) -> Vec<u8> {
        let payload = match &self.content {
            Content::Fields(text) => block(text),
            Content::Bytes(bytes) => bytes.clone(),
            Content::Leave(code) => [own.to_be_bytes(), code.to_be_bytes()].concat(),
        };
        let stream = self.stream.unwrap_or(own);
        if self.kind != DATA || payload.len() <= FRAME_BYTES {
            return frame(self.kind, self.flags, stream, &payload);
        }
        let mut pieces = payload.chunks(FRAME_BYTES).peekable();
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { self.flags } else { 0 };
            bytes.extend(frame(DATA, flags, stream, piece));
        }
        bytes
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![a, b, c, kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Fields as literals, in no table.
fn block(text: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let colon =
            line.iter().skip(1).position(|&byte| byte == b':').map_or(line.len(), |at| at + 1);
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        block.push(0);
        for text in [name, value] {
            let mut length = text.len();
            if length < 127 {
                block.push(length as u8);
            } else {
                block.push(127);
                length -= 127;
                while length >= 128 {
                    block.push((length % 128) as u8 | 128);
                    length /= 128;
                }
                block.push(length as u8);
            }
            block.extend_from_slice(text);
        }
    }
    block
}

/// A request as far as it has arrived.
#[derive(Debug, Default)]
struct Request {
    stream: u32,
    lines: Vec<String>,
    trailers: Vec<String>,
    body: Vec<u8>,
    has_ended: bool,
    is_reset: bool,
}

impl Request {
    /// What [`super::show`] shows: lines, an empty one, and the body.
    fn noted(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let trailers = self.trailers.iter().map(|line| format!("trailer {line}"));
        for line in self.lines.iter().cloned().chain(trailers) {
            bytes.extend(line.into_bytes());
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"\r\n");
        bytes.extend(&self.body);
        bytes
    }

    fn echo(&self, name: &str) -> Vec<u8> {
        let mut lines = self.lines.clone();
        lines.sort();
        let mut text = lines.join("\n").into_bytes();
        text.push(b'\n');
        text.extend(http::echoed(&self.body));
        let fields = format!(
            ":status: 200\ncontent-type: text/plain\ncontent-length: {}\nbackend: {name}",
            text.len()
        );
        let mut bytes = frame(HEADERS, END_HEADERS, self.stream, &block(fields.as_bytes()));
        bytes.extend(frame(DATA, END_STREAM, self.stream, &text));
        bytes
    }
}

struct Session<'a, 'w> {
    wire: &'w mut Wire,
    decoder: Decoder<'a>,
    has_preface: bool,
    requests: VecDeque<Request>,
    /// A block of which more is to come.
    block: Option<(u32, u8, Vec<u8>)>,
}

/// A connection: its requests are answered one after another.
pub(super) fn serve(shared: &Shared, at: usize, declared: &Declared, wire: &mut Wire) {
    let mut session = Session {
        wire,
        decoder: Decoder::default(),
        has_preface: false,
        requests: VecDeque::new(),
        block: None,
    };
    session.wire.send(&frame(SETTINGS, 0, 0, b"\0\x03\0\0\0\x64"));
    let mut number = None;
    loop {
        let at_once = if number.is_none() { shared.take_at_once(at) } else { None };
        let script = match at_once {
            Some(script) => script,
            None if !session.wait(None, |session| !session.requests.is_empty()) => return,
            None => shared.take(at),
        };
        let (note, connection) = shared.begin(at, &script, number);
        number = Some(connection);
        let (goes_on, closed) = session.answer(&script, declared);
        let request = session.requests.pop_front().unwrap_or_default();
        shared.end(note, |heard| {
            heard.bytes = request.noted();
            heard.is_cut = !request.has_ended && !request.is_reset;
            heard.closed = closed;
        });
        if !goes_on {
            while session.wire.fill(None) == Fill::More {}
            return;
        }
    }
}

impl Session<'_, '_> {
    /// Plays a script; whether the connection goes on, and whether the server has closed it if
    /// that was waited for.
    fn answer(&mut self, script: &Script, declared: &Declared) -> (bool, Option<bool>) {
        let mut closed = None;
        let head = |session: &Session<'_, '_>| !session.requests.is_empty();
        let whole = |session: &Session<'_, '_>| {
            session.requests.front().is_some_and(|request| request.has_ended || request.is_reset)
        };
        let mut gathered = Vec::new();
        for act in &script.acts {
            let own = self.requests.front().map_or(1, |request| request.stream);
            if let Act::Frame(frame) = act {
                // Frames that follow each other arrive together.
                gathered.extend(frame.bytes(own));
                continue;
            }
            self.wire.send(&std::mem::take(&mut gathered));
            match act {
                Act::Send(bytes) => self.wire.send(bytes),
                Act::Echo => {
                    if let Some(request) = self.requests.front() {
                        let bytes = request.echo(&declared.name);
                        self.wire.send(&bytes);
                    }
                }
                Act::Head if !self.wait(Some(Deadline::after(ACT_LIMIT)), head) => {
                    return (false, closed);
                }
                Act::Request if !self.wait(Some(Deadline::after(ACT_LIMIT)), whole) => {
                    return (false, closed);
                }
                Act::Pause(millis) => std::thread::sleep(Duration::from_millis(*millis)),
                Act::AwaitClose => {
                    self.wait(Some(Deadline::after(ACT_LIMIT)), |_| false);
                    closed = Some(self.wire.is_closed);
                }
                Act::HalfClose => self.wire.half_close(),
                Act::Close => {
                    self.wire.half_close();
                    return (false, closed);
                }
                Act::Reset => {
                    self.wire.reset();
                    return (false, closed);
                }
                _ => {}
            }
        }
        self.wire.send(&gathered);
        let is_over = self.wire.is_closed || closed.is_some();
        (!is_over && self.wait(Some(Deadline::after(ACT_LIMIT)), whole), closed)
    }

    /// Receives until something is there.
    fn wait(&mut self, end: Option<Deadline>, is_there: impl Fn(&Self) -> bool) -> bool {
        loop {
            while self.take_frame() {}
            if is_there(self) {
                return true;
            }
            if self.wire.fill(end) != Fill::More {
                return false;
            }
        }
    }

    fn take_frame(&mut self) -> bool {
        if !self.has_preface {
            if self.wire.buffer.len() < PREFACE.len() {
                return false;
            }
            self.wire.buffer.drain(..PREFACE.len());
            self.has_preface = true;
        }
        let Some([a, b, c, kind, flags, stream @ ..]) =
            self.wire.buffer.first_chunk::<HEAD_BYTES>().copied()
        else {
            return false;
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if self.wire.buffer.len() < HEAD_BYTES + length {
            return false;
        }
        let payload = self.wire.buffer.drain(..HEAD_BYTES + length).skip(HEAD_BYTES).collect();
        self.frame(kind, flags, u32::from_be_bytes(stream), payload);
        true
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: Vec<u8>) {
        match kind {
            HEADERS | CONTINUATION => {
                let (stream, first, mut bytes) =
                    self.block.take().unwrap_or((stream, flags, vec![]));
                let skipped = match kind {
                    HEADERS if flags & PADDED != 0 => return,
                    HEADERS if flags & PRIORITY != 0 => 5,
                    _ => 0,
                };
                bytes.extend_from_slice(payload.get(skipped..).unwrap_or_default());
                match flags & END_HEADERS {
                    0 => self.block = Some((stream, first, bytes)),
                    _ => self.head(stream, first & END_STREAM != 0, bytes),
                }
            }
            DATA => {
                let update = (payload.len() as u32).max(1).to_be_bytes();
                self.wire.send(&frame(WINDOW_UPDATE, 0, 0, &update));
                if flags & END_STREAM == 0 {
                    self.wire.send(&frame(WINDOW_UPDATE, 0, stream, &update));
                }
                if let Some(request) = self.find(stream) {
                    request.body.extend(payload);
                    request.has_ended |= flags & END_STREAM != 0;
                }
            }
            SETTINGS if flags & ACK == 0 => self.wire.send(&frame(SETTINGS, ACK, 0, &[])),
            PING if flags & ACK == 0 => self.wire.send(&frame(PING, ACK, 0, &payload)),
            RST_STREAM => {
                if let Some(request) = self.find(stream) {
                    request.is_reset = true;
                }
            }
            _ => {}
        }
    }

    fn find(&mut self, stream: u32) -> Option<&mut Request> {
        self.requests.iter_mut().find(|request| request.stream == stream)
    }

    fn head(&mut self, stream: u32, ends: bool, mut block: Vec<u8>) {
        let mut fields = Vec::new();
        let mut lines = match self.decoder.decode(&mut block, &mut fields) {
            Ok(_) => Vec::new(),
            Err(error) => vec![format!("(undecodable: {error:?})")],
        };
        lines.extend(
            fields.iter().map(|(name, value, _)| format!("{}: {}", escape(name), escape(value))),
        );
        if let Some(request) = self.find(stream) {
            request.trailers = lines;
            request.has_ended = ends;
            return;
        }
        self.requests.push_back(Request { stream, lines, has_ended: ends, ..Request::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, block};

    #[test]
    fn frames_are_written_as_told() {
        let bytes = |text: &str| Frame::parse(text).expect("a frame").bytes(3);
        assert_eq!(bytes("END hi"), b"\0\0\x02\0\x01\0\0\0\x03hi");
        assert_eq!(bytes("GOAWAY 1 0"), b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0");
        assert_eq!(bytes("RST_STREAM 7"), b"\0\0\x04\x03\0\0\0\0\x03\0\0\0\x07");
        assert_eq!(bytes("FRAME 6 1 own x"), b"\0\0\x01\x06\x01\0\0\0\x03x");
        assert_eq!(block(b":status: 200\na: b"), b"\0\x07:status\x03200\0\x01a\x01b");
        assert!(Frame::parse("NOISE").is_err());
    }
}
