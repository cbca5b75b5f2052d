//! Requests and responses.

use proptest::prelude::*;

use super::*;
use crate::request::{Body, Version};

fn only_request(client: &mut Client) -> (Box<crate::RequestHead>, Option<u16>, bool) {
    match client.server.next_event() {
        Some(Event::Request { head, refusal, ends, .. }) => {
            (head, refusal.map(|error| error.status), ends)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_has_the_head_of_one_of_http_1() {
    let mut client = Client::new(Limits::default());
    let more = [("accept-encoding", " gzip "), ("cookie", "a=1"), ("cookie", "b=2")];
    client.request(1, &[GET, &more].concat(), true);
    let (head, refusal, ends) = only_request(&mut client);
    assert_eq!((refusal, ends), (None, true));
    assert_eq!(head.line(), b"GET /a?b HTTP/2.0");
    assert_eq!((head.path(), head.query()), (&b"/a"[..], Some(&b"b"[..])));
    assert_eq!(head.version, Version::HTTP_20);
    assert_eq!(head.body, Body::None);
    let fields: Vec<_> = head.headers.iter().collect();
    let expected: [(&[u8], &[u8]); 3] =
        [(b"Accept-Encoding", b"gzip"), (b"Cookie", b"a=1; b=2"), (b"Host", b"host")];
    assert_eq!(fields, expected);
}

#[test]
fn authority_replaces_host() {
    let mut client = Client::new(Limits::default());
    client.request(1, &[GET, &[("host", "other")]].concat(), true);
    let (head, ..) = only_request(&mut client);
    assert_eq!(head.headers.get_all(b"Host").collect::<Vec<_>>(), [b"host"]);
}

#[test]
fn bodies_have_a_length_or_are_chunked() {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, false);
    assert_eq!(only_request(&mut client).0.body, Body::Chunked);
    client.request(3, &[GET, &[("content-length", "4")]].concat(), false);
    assert_eq!(only_request(&mut client).0.body, Body::Length(4));
    client.frame(kind::DATA, 0, 3, b"ab");
    client.frame(kind::DATA, flag::END_STREAM | flag::PADDED, 3, b"\x02cd\0\0");
    let mut body = Vec::new();
    while let Some(Event::Data { bytes, ends, .. }) = client.server.next_event() {
        body.extend(bytes);
        assert_eq!(ends, body.len() == 4);
    }
    assert_eq!(body, b"abcd");
    for (stream, data, flags) in [(5, &b"abcde"[..], 0), (7, b"abc", flag::END_STREAM)] {
        client.request(stream, &[GET, &[("content-length", "4")]].concat(), false);
        client.frame(kind::DATA, flags, stream, data);
        assert_eq!(client.reset_of(stream), Some(Code::PROTOCOL_ERROR));
    }
}

#[test]
fn malformed_requests_are_reset() {
    let cases: &[&[(&str, &str)]] = &[
        &[GET, &[("Upper", "a")]].concat(),
        &[GET, &[("connection", "close")]].concat(),
        &[GET, &[("transfer-encoding", "chunked")]].concat(),
        &[GET, &[("te", "gzip")]].concat(),
        &[GET, &[("a b", "c")]].concat(),
        &[GET, &[("", "c")]].concat(),
        &[GET, &[("a", "b\r\nc: d")]].concat(),
        &[GET, &[("a", "b\0")]].concat(),
        &[GET, &[(":path", "/")]].concat(),
        &[GET, &[(":unknown", "/")]].concat(),
        &[&[("a", "b")], GET].concat(),
        &[GET, &[("content-length", "1")]].concat(),
        &[GET, &[("content-length", "x")]].concat(),
        &GET[..2],
        &GET[1..],
        &[GET[0], GET[1], (":path", ""), GET[3]],
        &[GET[0], GET[1], (":path", "a"), GET[3]],
        &[GET[0], GET[1], (":path", "*"), GET[3]],
        &[GET[0], GET[1], (":path", "/a b"), GET[3]],
        &[(":method", "G T"), GET[1], GET[2], GET[3]],
        &[GET[0], GET[1], GET[2], (":authority", "a/b")],
        &GET[..3],
        &[GET, &[("a", "b\x01")]].concat(),
        &[(":method", "CONNECT"), GET[1], GET[2], GET[3]],
        &[GET[0], GET[1], GET[2], (":authority", ""), ("host", "host")],
        &[&GET[..3], &[("host", "a"), ("host", "a")]].concat(),
        &[GET, &[("host", "a"), ("host", "a")]].concat(),
        &[&GET[..3], &[("host", "a b")]].concat(),
        &[&GET[..3], &[("host", "")]].concat(),
        &[GET, &[("host", "")]].concat(),
        &[GET[0], (":scheme", "ht tp"), GET[2], GET[3]],
        &[GET[0], (":scheme", "1a"), GET[2], GET[3]],
        &[GET[0], (":scheme", ""), GET[2], GET[3]],
    ];
    for (index, fields) in cases.iter().enumerate() {
        let mut client = Client::new(Limits::default());
        client.request(1, fields, true);
        assert!(client.server.next_event().is_none(), "case {index}");
        assert_eq!(client.reset_of(1), Some(Code::PROTOCOL_ERROR), "case {index}");
    }
}

#[test]
fn some_requests_are_refused_by_a_response() {
    let long = "/".repeat(120);
    let cases: &[(&[(&str, &str)], u16)] = &[
        (&[GET[0], (":scheme", "ftp"), GET[2], GET[3]], 400),
        (&[GET[0], GET[1], (":path", "/a#b"), GET[3]], 400),
        (&[GET[0], GET[1], (":path", &long), GET[3]], 414),
        (&[GET, &[("name", &long)]].concat(), 431),
        (&[GET, &[("a", "1"), ("b", "2"), ("a", "3")]].concat(), 431),
        (&[GET, &[("a", &long[..60]), ("a", &long[..60])]].concat(), 431),
    ];
    for (fields, status) in cases {
        let mut limits = Limits::default();
        limits.head.line_bytes = 100;
        limits.head.field_bytes = 100;
        limits.head.fields = 2;
        let mut client = Client::new(limits);
        client.request(1, fields, true);
        assert_eq!(only_request(&mut client).1, Some(*status));
    }
    let mut client = Client::new(Limits::default());
    client.request(1, &[GET, &[("a", "b"); 201]].concat(), true);
    assert_eq!(client.reset_of(1), Some(Code::ENHANCE_YOUR_CALM));
}

#[test]
fn the_settings_of_an_upgrade_are_no_field() {
    let mut client = Client::new(Limits::default());
    client.request(1, &[GET, &[("http2-settings", "AAMA")]].concat(), true);
    assert!(!only_request(&mut client).0.headers.contains(b"HTTP2-Settings"));
}

#[test]
fn a_web_socket_announces_no_body() {
    let mut client = Client::new(Limits { has_websockets: true, ..Limits::default() });
    let connect = [(":method", "CONNECT"), (":protocol", "websocket"), GET[1], GET[2], GET[3]];
    client.request(1, &connect, false);
    assert_eq!(only_request(&mut client).1, None);
    client.request(3, &[&connect[..], &[("content-length", "3")]].concat(), false);
    assert_eq!(only_request(&mut client).1, Some(400));
    // Where they are not offered.
    let mut client = Client::new(Limits::default());
    client.request(1, &connect, false);
    assert_eq!(client.reset_of(1), Some(Code::PROTOCOL_ERROR));
}

#[test]
fn some_values_have_no_blanks_around_them() {
    let mut client = Client::new(Limits::default());
    let wrong = [("content-length", " 3"), ("content-length", "3\t"), ("te", "trailers ")];
    for (number, field) in (0..).zip(wrong) {
        client.request(2 * number + 1, &[GET, &[field]].concat(), false);
        assert_eq!(client.reset_of(2 * number + 1), Some(Code::PROTOCOL_ERROR), "{field:?}");
    }
    let host = [&GET[..3], &[("host", " host")]].concat();
    client.request(7, &host, true);
    assert_eq!(client.reset_of(7), Some(Code::PROTOCOL_ERROR));
}

#[test]
fn a_request_for_a_proxy_names_its_host() {
    let mut client = Client::new(Limits { is_forward_proxy: true, ..Limits::default() });
    client.request(1, GET, true);
    assert_eq!(only_request(&mut client).0.line(), b"GET http://host/a?b HTTP/2.0");
    client.request(3, &[&GET[..3], &[("host", "other")]].concat(), true);
    assert_eq!(only_request(&mut client).0.line(), b"GET http://other/a?b HTTP/2.0");
    let options = [(":method", "OPTIONS"), GET[1], (":path", "*"), GET[3]];
    client.request(5, &options, true);
    assert_eq!(only_request(&mut client).0.line(), b"OPTIONS * HTTP/2.0");
}

#[test]
fn the_frames_of_a_head_are_counted() {
    let mut client = Client::new(Limits::default());
    let block = client.block(GET);
    client.frame(kind::HEADERS, flag::END_STREAM, 1, &block[..5]);
    client.frame(kind::CONTINUATION, flag::END_HEADERS, 1, &block[5..]);
    match client.server.next_event() {
        Some(Event::Request { bytes, .. }) => assert_eq!(bytes, block.len() + 2 * 9),
        other => panic!("{other:?}"),
    }
}

#[test]
fn trailers_have_no_effect_on_what_is_over() {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, false);
    only_request(&mut client);
    client.frame(kind::DATA, 0, 1, b"abc");
    client.server.next_event();
    let trailers = [("x", "1"), ("host", "a"), ("range", "bytes=0-"), ("content-length", "3")];
    client.request(1, &trailers, true);
    match client.server.next_event() {
        Some(Event::Trailers { fields, .. }) => {
            assert_eq!(fields.iter().collect::<Vec<_>>(), [(&b"X"[..], &b"1"[..])]);
        }
        other => panic!("{other:?}"),
    }
    // A length that is wrong, or was known.
    let known = [GET, &[("content-length", "3")]].concat();
    for (stream, head, length) in [(3, GET, "4"), (5, GET, "x"), (7, &known[..], "3")] {
        client.request(stream, head, false);
        client.frame(kind::DATA, 0, stream, b"abc");
        client.request(stream, &[("content-length", length)], true);
        assert_eq!(client.reset_of(stream), Some(Code::PROTOCOL_ERROR));
    }
}

#[test]
fn trailers_end_a_body() {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, false);
    only_request(&mut client);
    client.request(1, &[("x-sum", "1")], true);
    match client.server.next_event() {
        Some(Event::Trailers { stream: 1, fields }) => {
            assert_eq!(fields.get(b"X-Sum"), Some(&b"1"[..]));
        }
        other => panic!("{other:?}"),
    }
    client.request(1, &[("x-sum", "1")], true);
    assert_eq!(client.reset_of(1), Some(Code::STREAM_CLOSED));
    for (stream, fields, ends) in [(3, ("a", "b"), false), (5, (":path", "b"), true)] {
        client.request(stream, GET, false);
        client.request(stream, &[fields], ends);
        assert_eq!(client.reset_of(stream), Some(Code::PROTOCOL_ERROR));
    }
}

#[test]
fn a_response_loses_the_fields_of_the_connection() {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, true);
    let fields: [(&[u8], &[u8]); 3] =
        [(b"Server", b"s"), (b"Connection", b"close"), (b"Set-Cookie", b"a=b")];
    client.server.respond(1, 404, fields, false);
    assert_eq!(client.server.send_data(1, b"body", true), 4);
    let sent = client.sent();
    assert_eq!((sent[0].kind, sent[0].flags), (kind::HEADERS, flag::END_HEADERS));
    let fields = client.fields(&sent[0].payload);
    let expected = [(":status", "404"), ("server", "s"), ("set-cookie", "a=b")];
    assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!((sent[1].kind, sent[1].flags), (kind::DATA, flag::END_STREAM));
    assert_eq!(sent[1].payload, b"body");
    client.server.release(1);
    assert!(client.sent().is_empty());
    // The body is not needed.
    client.request(3, GET, false);
    client.server.respond(3, 200, [], true);
    client.sent();
    client.server.release(3);
    assert_eq!(client.reset_of(3), Some(Code::NO_ERROR));
    client.frame(kind::DATA, flag::END_STREAM, 3, b"late");
    assert!(client.sent().is_empty());
}

#[test]
fn a_long_head_is_continued() {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, true);
    let value = [1; 40_000];
    client.server.respond(1, 200, [(&b"x"[..], &value[..])], true);
    let sent = client.sent();
    let kinds: Vec<_> = sent.iter().map(|frame| (frame.kind, frame.flags)).collect();
    let end = flag::END_HEADERS;
    assert_eq!(kinds.first(), Some(&(kind::HEADERS, flag::END_STREAM)));
    assert_eq!(kinds.last(), Some(&(kind::CONTINUATION, end)));
    assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == (kind::CONTINUATION, 0)));
}

#[test]
fn the_client_leaves_in_two_steps() {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, true);
    client.server.ask_to_leave();
    assert_eq!(client.sent()[0].payload[..4], 0x7fff_ffffu32.to_be_bytes());
    client.request(3, GET, true);
    client.server.leave();
    assert_eq!(client.sent()[0].payload[..4], 3u32.to_be_bytes());
    client.request(5, GET, true);
    let count = std::iter::from_fn(|| client.server.next_event()).count();
    assert_eq!(count, 2);
    assert!(client.sent().is_empty());
}

proptest! {
    #[test]
    fn frames_may_be_cut_anywhere(cuts: Vec<u8>, requests in 1u32..5) {
        let mut whole = Client::new(Limits::default());
        let mut bytes = Vec::new();
        for number in 0..requests {
            let block = whole.block(GET);
            let stream = number * 2 + 1;
            let (first, second) = block.split_at(block.len() / 2);
            frame::write(kind::HEADERS, 0, stream, first, &mut bytes);
            frame::write(kind::CONTINUATION, flag::END_HEADERS, stream, second, &mut bytes);
            frame::write(kind::DATA, flag::END_STREAM, stream, b"some data", &mut bytes);
            frame::write(kind::PING, 0, 0, b"12345678", &mut bytes);
        }
        whole.receive(&bytes);
        let mut cut = Client::new(Limits::default());
        let (mut held, mut rest) = (Vec::new(), &bytes[..]);
        for length in cuts.into_iter().map(usize::from).chain([usize::MAX]) {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            held.extend_from_slice(piece);
            let taken = cut.receive(&held);
            held.drain(..taken);
        }
        prop_assert!(held.is_empty());
        prop_assert_eq!(&whole.server.output, &cut.server.output);
        let events = |client: &mut Client| {
            std::iter::from_fn(|| client.server.next_event())
                .map(|event| format!("{event:?}"))
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(events(&mut whole), events(&mut cut));
    }

    #[test]
    fn no_bytes_break_a_connection(frames: Vec<(u8, u8, u8, Vec<u8>)>) {
        let mut client = Client::new(Limits::default());
        for (kind, flags, stream, payload) in frames {
            let mut bytes = Vec::new();
            frame::write(kind % 12, flags, StreamId::from(stream), &payload, &mut bytes);
            client.receive(&bytes);
            while client.server.next_event().is_some() {}
        }
    }
}
