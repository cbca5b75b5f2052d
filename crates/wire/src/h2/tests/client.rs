//! The client's side, against a server whose frames are written by hand.

use super::super::Pseudo;
use super::*;
use crate::table::Table;

/// A server's end of a connection.
struct Server {
    client: Connection,
}

impl Server {
    fn new() -> Server {
        let mut server = Server { client: Connection::client(Limits::default(), 0) };
        assert!(server.client.output.starts_with(PREFACE));
        server.frame(kind::SETTINGS, 0, 0, &[]);
        server.client.output.clear();
        server
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: StreamId, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame::write(kind, flags, stream, payload, &mut bytes);
        assert_eq!(self.client.receive_responses(&bytes, 0), bytes.len());
    }

    fn head(&mut self, stream: StreamId, fields: &[(&str, &str)], ends: bool) {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.push(0);
            for text in [name, value] {
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        self.frame(kind::HEADERS, flags, stream, &block);
    }

    fn request(&mut self, method: &[u8], ends: bool) -> StreamId {
        let pseudo = Pseudo { method, scheme: b"http", authority: b"host", path: b"/a?b" };
        self.client.request(&pseudo, [(&b"Name"[..], &b"value"[..])], ends).unwrap()
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.client.next_event()).collect()
    }

    /// The only event is a reset of this stream.
    fn is_reset(&mut self, id: StreamId) -> bool {
        matches!(self.events().as_slice(), [Event::Reset { stream, .. }] if *stream == id)
    }
}

#[test]
fn a_request_has_a_response() {
    let mut server = Server::new();
    assert_eq!(server.request(b"GET", true), 1);
    let head = Head::parse(&server.client.output).unwrap();
    assert_eq!(head.flags, flag::END_HEADERS | flag::END_STREAM);
    let mut fields = Table::new();
    Decoder::new()
        .decode(&server.client.output[frame::HEAD_BYTES..], |name, value| {
            fields.add(name, value);
            true
        })
        .unwrap();
    assert_eq!(fields.get(b":path"), Some(&b"/a?b"[..]));
    assert_eq!(fields.get(b"name"), Some(&b"value"[..]));
    server.head(1, &[(":status", "103"), ("link", "<a>")], false);
    server.head(1, &[(":status", "200"), ("content-length", "3")], false);
    server.frame(kind::DATA, 0, 1, b"abc");
    server.head(1, &[("x-sum", "3")], true);
    match server.events().as_slice() {
        [
            Event::Response { status: 103, ends: false, .. },
            Event::Response { status: 200, fields, .. },
            Event::Data { bytes, .. },
            Event::Trailers { fields: trailers, .. },
        ] => {
            assert_eq!(fields.get(b"Content-Length"), Some(&b"3"[..]));
            assert_eq!(bytes, b"abc");
            assert_eq!(trailers.get(b"X-Sum"), Some(&b"3"[..]));
        }
        events => panic!("{events:?}"),
    }
    server.client.release(1);
    assert!(server.client.is_idle() && server.client.has_place());
    assert_eq!(server.request(b"GET", true), 3);
}

#[test]
fn lies_about_lengths_reset_the_stream() {
    for (method, length, data) in [("GET", "3", "ab"), ("GET", "1", "ab"), ("HEAD", "2", "ab")] {
        let mut server = Server::new();
        server.request(method.as_bytes(), true);
        server.head(1, &[(":status", "200"), ("content-length", length)], false);
        server.events();
        server.frame(kind::DATA, flag::END_STREAM, 1, data.as_bytes());
        assert!(server.is_reset(1), "{method} {length}");
    }
    let mut server = Server::new();
    server.request(b"HEAD", true);
    server.head(1, &[(":status", "200"), ("content-length", "5")], true);
    assert!(matches!(server.events().as_slice(), [Event::Response { ends: true, .. }]));
}

#[test]
fn malformed_heads_reset_the_stream() {
    let heads: [&[(&str, &str)]; 7] = [
        &[("a", "b")],
        &[(":status", "20")],
        &[(":status", "200"), (":status", "200")],
        &[("a", "b"), (":status", "200")],
        &[(":status", "200"), ("Upper", "b")],
        &[(":status", "200"), ("a", "b\r\nc: d")],
        &[(":status", "200"), ("transfer-encoding", "chunked")],
    ];
    for head in heads {
        let mut server = Server::new();
        server.request(b"GET", true);
        server.head(1, head, false);
        assert!(server.is_reset(1), "{head:?}");
    }
}

#[test]
fn a_server_that_leaves_or_refuses_is_told_apart() {
    let mut server = Server::new();
    server.request(b"GET", true);
    server.request(b"GET", true);
    server.frame(kind::RST_STREAM, 0, 1, &7u32.to_be_bytes());
    let reset = server.events();
    let [Event::Reset { stream: 1, code: Code::REFUSED_STREAM }] = reset.as_slice() else {
        panic!("{reset:?}");
    };
    server.frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    assert!(matches!(server.events().as_slice(), [Event::Leaves { last: 1 }]));
    assert!(!server.client.has_place());
}

#[test]
fn settings_bound_the_streams() {
    let mut server = Server::new();
    server.frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1]);
    server.request(b"GET", true);
    assert!(!server.client.has_place());
    server.client.release(1);
    assert!(server.client.has_place());
}

#[test]
fn floods_end_the_connection() {
    let ends = |kind, flags, stream, payload: &[u8]| {
        let mut server = Server::new();
        server.request(b"GET", false);
        for _ in 0..20_000 {
            server.frame(kind, flags, stream, payload);
            server.client.output.clear();
            server.events();
            if server.client.failure().is_some() {
                return true;
            }
        }
        false
    };
    assert!(ends(kind::PING, 0, 0, &[0; 8]));
    assert!(ends(kind::PING, flag::ACK, 0, &[0; 8]));
    assert!(ends(kind::SETTINGS, 0, 0, &[]));
    assert!(ends(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]));
    assert!(ends(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2]));
    assert!(ends(kind::HEADERS, flag::END_HEADERS, 2, &[0x88]));
    assert!(ends(99, 0, 0, &[]));
}

#[test]
fn endless_blocks_end_the_connection() {
    let mut server = Server::new();
    server.request(b"GET", true);
    server.frame(kind::HEADERS, 0, 1, &[0x88]);
    for _ in 0..20 {
        server.frame(kind::CONTINUATION, 0, 1, &[]);
    }
    assert_eq!(server.client.failure().unwrap().0, Code::ENHANCE_YOUR_CALM);
}

#[test]
fn a_bomb_ends_the_connection() {
    let mut server = Server::new();
    server.request(b"GET", true);
    // A field of 3 KiB enters the table, and is repeated.
    let mut block = vec![0x88, 0x40, 1, b'a', 0x7f, 0x80 | (3000 - 127) as u8 & 0x7f];
    block.push(((3000 - 127) >> 7) as u8);
    block.extend_from_slice(&[b'x'; 3000]);
    block.extend(std::iter::repeat_n(0xbe, 10_000));
    server.frame(kind::HEADERS, flag::END_HEADERS, 1, &block);
    assert_eq!(server.client.failure().unwrap().0, Code::ENHANCE_YOUR_CALM);
}

#[test]
fn interim_responses_are_bounded() {
    let mut server = Server::new();
    server.request(b"GET", true);
    for _ in 0..40 {
        server.head(1, &[(":status", "103")], false);
    }
    assert!(server.events().iter().any(|event| matches!(event, Event::Reset { .. })));
}
