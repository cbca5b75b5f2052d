//! Responses that are pushed.

use super::*;
use crate::h2::push::Promise;

const PSEUDO: [(&[u8], &[u8]); 4] =
    [(b":scheme", b"http"), (b":authority", b"host"), (b":path", b"/a.css"), (b":method", b"GET")];

impl Client {
    fn promise(&mut self, parent: StreamId, path: &str) -> Option<Promise> {
        let options = HeadOptions {
            strict: true,
            registered_methods: false,
            allow_http09: true,
            methods: &self.methods,
        };
        let mut pseudo = PSEUDO;
        pseudo[2].1 = path.as_bytes();
        self.server.promise(parent, &pseudo, &[(b"User-Agent", b"x")], &options)
    }

    /// A setting of the client.
    fn set(&mut self, identifier: u16, value: u32) {
        let setting = [&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat();
        self.frame(kind::SETTINGS, 0, 0, &setting);
        self.server.output.clear();
    }
}

/// A client with a request that is being served.
fn asked() -> Client {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, true);
    while client.server.next_event().is_some() {}
    client
}

#[test]
fn a_response_is_promised_and_sent() {
    let mut client = asked();
    let Promise { stream, head, refusal } = client.promise(1, "/a.css").unwrap();
    assert_eq!((stream, head.line()), (2, &b"GET /a.css HTTP/2.0"[..]));
    assert!(refusal.is_none());
    assert_eq!(head.headers.get(b"User-Agent"), Some(&b"x"[..]));
    client.server.respond(2, 200, [], false);
    assert_eq!(client.server.send_data(2, b"body", true), 4);
    client.server.respond(1, 200, [], true);
    let sent = client.sent();
    let kinds: Vec<_> = sent.iter().map(|frame| (frame.kind, frame.stream)).collect();
    let expected =
        [(kind::PUSH_PROMISE, 1), (kind::HEADERS, 2), (kind::DATA, 2), (kind::HEADERS, 1)];
    assert_eq!(kinds, expected);
    assert_eq!(sent[0].payload[..4], [0, 0, 0, 2]);
    assert_eq!(sent[0].flags, flag::END_HEADERS);
    let mut fields = Vec::new();
    let block = &sent[0].payload[4..];
    let take = |name: &[u8], value: &[u8]| {
        fields.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        true
    };
    client.decoder.decode(block, take).unwrap();
    let expected =
        [":scheme=http", ":authority=host", ":path=/a.css", ":method=GET", "user-agent=x"];
    assert_eq!(fields, expected);
    client.server.release(1);
    client.server.release(2);
    assert!(client.server.is_idle() && client.server.failure().is_none());
}

#[test]
fn a_client_that_declines_gets_no_promise() {
    let mut client = asked();
    client.set(2, 0);
    assert!(!client.server.accepts_pushes());
    assert!(client.promise(1, "/a").is_none());
    client.set(2, 1);
    assert!(client.promise(1, "/a").is_some());
    client.frame(kind::GOAWAY, 0, 0, &[0; 8]);
    assert!(client.promise(1, "/b").is_none());
    let mut client = asked();
    client.server.ask_to_leave();
    assert!(client.promise(1, "/a").is_none());
}

#[test]
fn the_clients_limit_counts() {
    let mut client = asked();
    client.set(3, 0);
    assert!(client.server.accepts_pushes() && !client.server.has_push_place());
    assert!(client.promise(1, "/a").is_none());
    client.set(3, 2);
    assert!(client.promise(1, "/a").is_some() && client.promise(1, "/b").is_some());
    assert!(client.promise(1, "/c").is_none());
    client.server.respond(2, 200, [], true);
    client.server.release(2);
    assert_eq!(client.promise(1, "/c").unwrap().stream, 6);
    // The client's own requests have their own limit, and so have pushes.
    client.set(3, 1000);
    let more = (0..200).filter(|_| client.promise(1, "/d").is_some()).count();
    assert_eq!(more, 98);
    client.request(3, GET, true);
    assert!(matches!(client.server.next_event(), Some(Event::Request { stream: 3, .. })));
}

#[test]
fn only_a_request_that_a_client_could_send_is_promised() {
    let mut client = asked();
    for path in ["a.css", "", "*", "/a b", "/a\r\nb"] {
        assert!(client.promise(1, path).is_none(), "{path:?}");
    }
    assert!(client.promise(1, &format!("/{}", "x".repeat(9000))).is_none());
    // There is no such stream, or nothing may be sent on it any more, or it is a pushed one.
    assert!(client.promise(3, "/a").is_none());
    assert_eq!(client.promise(1, "/a").unwrap().stream, 2);
    assert!(client.promise(2, "/b").is_none());
    client.server.respond(1, 200, [], true);
    assert!(client.promise(1, "/b").is_none());
}

#[test]
fn a_client_may_cancel_what_is_pushed() {
    let mut client = asked();
    for _ in 0..300 {
        let stream = client.promise(1, "/a").unwrap().stream;
        client.frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        let event = client.server.next_event();
        assert!(matches!(event, Some(Event::Reset { stream: reset, .. }) if reset == stream));
        client.server.respond(stream, 200, [], true);
        client.server.release(stream);
    }
    assert!(client.server.failure().is_none());
    // A window may still come, and so may another reset; not so on a stream that is yet to come.
    client.frame(kind::WINDOW_UPDATE, 0, 600, &1_u32.to_be_bytes());
    client.frame(kind::RST_STREAM, 0, 600, &8_u32.to_be_bytes());
    assert!(client.server.failure().is_none());
    client.frame(kind::RST_STREAM, 0, 602, &8_u32.to_be_bytes());
    assert!(client.server.failure().is_some());
}

#[test]
fn a_client_sends_nothing_on_a_pushed_stream() {
    let mut client = asked();
    client.promise(1, "/a").unwrap();
    client.server.output.clear();
    client.frame(kind::DATA, 1, 2, b"x");
    let sent = client.sent();
    assert_eq!((sent[0].kind, sent[0].stream), (kind::RST_STREAM, 2));
    client.request(2, GET, true);
    assert!(client.server.failure().is_some());
}

#[test]
fn cancelling_without_end_is_bounded() {
    let mut client = asked();
    let mut count = 0;
    while client.server.failure().is_none() && count < 10_000 {
        let stream = client.promise(1, "/a").unwrap().stream;
        client.frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        client.server.release(stream);
        count += 1;
    }
    assert!((1000..=2500).contains(&count), "{count}");
}
