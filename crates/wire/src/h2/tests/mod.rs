//! Tests of a whole connection, with a client that writes frames by hand.

mod attacks;
mod client;
mod flow;
mod push;
mod repeated;
mod requests;

use super::connection::{Connection, Event, Limits};
use super::frame::{self, Head, PREFACE, flag, kind};
use super::hpack::Decoder;
use super::{Code, StreamId};
use crate::method::MethodRegistry;
use crate::request::HeadOptions;

const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":path", "/a?b"), (":authority", "host")];

/// A client's end.
struct Client {
    server: Connection,
    decoder: Decoder,
    methods: MethodRegistry,
}

/// A frame that the server has sent.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    kind: u8,
    flags: u8,
    stream: StreamId,
    payload: Vec<u8>,
}

impl Client {
    /// A connection whose settings have been exchanged.
    fn new(limits: Limits) -> Client {
        let mut client = Client {
            server: Connection::new(limits, 0),
            decoder: Decoder::new(),
            methods: MethodRegistry::default(),
        };
        client.receive(PREFACE);
        client.frame(kind::SETTINGS, 0, 0, &[]);
        client.server.output.clear();
        client
    }

    fn receive(&mut self, bytes: &[u8]) -> usize {
        let options = HeadOptions {
            strict: true,
            registered_methods: false,
            allow_http09: true,
            methods: &self.methods,
        };
        self.server.receive(bytes, &options, 0)
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: StreamId, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame::write(kind, flags, stream, payload, &mut bytes);
        assert_eq!(self.receive(&bytes), bytes.len());
    }

    fn block(&self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            // As it is: tests send invalid names, too.
            block.push(0);
            for text in [name, value] {
                assert!(text.len() < 127, "a short string");
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        block
    }

    fn request(&mut self, stream: StreamId, fields: &[(&str, &str)], ends: bool) {
        let block = self.block(fields);
        let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        self.frame(kind::HEADERS, flags, stream, &block);
    }

    fn sent(&mut self) -> Vec<Sent> {
        let output = std::mem::take(&mut self.server.output);
        let mut rest = &output[..];
        let mut frames = Vec::new();
        while let Some(Head { length, kind, flags, stream }) = Head::parse(rest) {
            let (payload, after) = rest[frame::HEAD_BYTES..].split_at(length);
            frames.push(Sent { kind, flags, stream, payload: payload.to_vec() });
            rest = after;
        }
        assert!(rest.is_empty());
        frames
    }

    fn fields(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        self.decoder
            .decode(block, |name, value| {
                fields.push((text(name), text(value)));
                true
            })
            .unwrap();
        fields
    }

    /// The code of the only frame sent, a reset of this stream.
    fn reset_of(&mut self, stream: StreamId) -> Option<Code> {
        match self.sent().as_slice() {
            [Sent { kind: kind::RST_STREAM, stream: of, payload, .. }] if *of == stream => {
                frame::number(payload).map(Code)
            }
            _ => None,
        }
    }

    /// The code of the last frame, a GOAWAY.
    fn goaway(&mut self) -> Option<Code> {
        match self.sent().last() {
            Some(Sent { kind: kind::GOAWAY, payload, .. }) => {
                frame::number(&payload[4..]).map(Code)
            }
            _ => None,
        }
    }
}

#[test]
fn settings_come_first() {
    let mut server = Connection::new(Limits::default(), 0);
    let head = Head::parse(&server.output).unwrap();
    assert_eq!((head.kind, head.length), (kind::SETTINGS, 18));
    server.output.clear();
    let methods = MethodRegistry::default();
    let options = HeadOptions {
        strict: true,
        registered_methods: false,
        allow_http09: true,
        methods: &methods,
    };
    assert_eq!(server.receive(&PREFACE[..10], &options, 0), 0);
    assert_eq!(server.receive(PREFACE, &options, 0), PREFACE.len());
    assert!(!server.has_begun());
    let mut ping = Vec::new();
    frame::write(kind::PING, 0, 0, &[0; 8], &mut ping);
    server.receive(&ping, &options, 0);
    assert_eq!(server.failure().unwrap().0, Code::PROTOCOL_ERROR);
}

#[test]
fn another_preface_is_refused() {
    let mut server = Connection::new(Limits::default(), 0);
    let methods = MethodRegistry::default();
    let options = HeadOptions {
        strict: true,
        registered_methods: false,
        allow_http09: true,
        methods: &methods,
    };
    server.receive(b"GET / HTTP/1.1\r\n", &options, 0);
    assert_eq!(server.failure().unwrap().0, Code::PROTOCOL_ERROR);
}
