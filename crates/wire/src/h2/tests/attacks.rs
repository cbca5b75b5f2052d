//! Known attacks: each ends with the connection, or is of no use.

use super::*;

/// Repeats a step until the connection ends; returns how often.
fn repeat(client: &mut Client, mut step: impl FnMut(&mut Client, u32)) -> u32 {
    for count in 0..100_000 {
        if client.server.failure().is_some() {
            assert_eq!(client.goaway(), Some(Code::ENHANCE_YOUR_CALM));
            return count;
        }
        step(client, count);
    }
    panic!("the attack goes on");
}

/// Releases streams as their handlers end.
fn serve(client: &mut Client) {
    while let Some(event) = client.server.next_event() {
        if let Event::Request { stream, .. } = event {
            client.server.release(stream);
        }
    }
}

#[test]
fn rapid_reset() {
    let mut client = Client::new(Limits::default());
    let count = repeat(&mut client, |client, count| {
        client.request(count * 2 + 1, GET, true);
        client.frame(kind::RST_STREAM, 0, count * 2 + 1, &8u32.to_be_bytes());
        serve(client);
    });
    assert!(count <= 201, "{count}");
}

#[test]
fn resets_that_the_client_provokes() {
    let mut client = Client::new(Limits::default());
    let count = repeat(&mut client, |client, count| {
        client.request(count * 2 + 1, GET, false);
        client.frame(kind::WINDOW_UPDATE, 0, count * 2 + 1, &[0x7f, 0xff, 0xff, 0xff]);
        serve(client);
    });
    assert!(count <= 201, "{count}");
}

#[test]
fn frames_after_a_reset() {
    for client_resets in [false, true] {
        let mut client = Client::new(Limits::default());
        client.request(1, GET, false);
        serve(&mut client);
        assert_eq!(client.reset_of(1), Some(Code::INTERNAL_ERROR));
        if client_resets {
            client.frame(kind::RST_STREAM, 0, 1, &8u32.to_be_bytes());
        }
        // They may have been on their way when the server reset the stream, but not after a reset
        // of the client's own.
        client.request(1, GET, true);
        assert_eq!(client.server.failure().is_some(), client_resets);
    }
}

#[test]
fn streams_beyond_the_limit() {
    let mut client = Client::new(Limits { streams: 10, ..Limits::default() });
    let count = repeat(&mut client, |client, count| {
        client.request(count * 2 + 1, GET, true);
    });
    assert!(count <= 211, "{count}");
    assert_eq!(std::iter::from_fn(|| client.server.next_event()).count(), 10);
}

#[test]
fn a_reset_stream_keeps_its_place_until_its_handler_ends() {
    let mut client = Client::new(Limits { streams: 1, ..Limits::default() });
    client.request(1, GET, true);
    client.frame(kind::RST_STREAM, 0, 1, &[0; 4]);
    client.request(3, GET, true);
    assert_eq!(client.reset_of(3), Some(Code::REFUSED_STREAM));
    client.server.release(1);
    client.request(5, GET, true);
    assert!(client.sent().is_empty());
}

#[test]
fn continuations_without_end() {
    for payload in [&[][..], &[0; 16]] {
        let mut client = Client::new(Limits::default());
        client.frame(kind::HEADERS, 0, 1, &[]);
        let count =
            repeat(&mut client, |client, _| client.frame(kind::CONTINUATION, 0, 1, payload));
        assert!(count <= 10, "{count}");
    }
    let mut client = Client::new(Limits::default());
    client.frame(kind::HEADERS, 0, 1, &[]);
    let count =
        repeat(&mut client, |client, _| client.frame(kind::CONTINUATION, 0, 1, &[0; 16 * 1024]));
    assert!(count <= 18, "{count}");
}

#[test]
fn references_to_a_large_field() {
    // One field of 4,000 bytes, and references to it.
    let field = |name: &[u8]| {
        let mut block = vec![0x40, name.len() as u8];
        block.extend_from_slice(name);
        block.extend_from_slice(&[0x7f, 0xa1, 0x1e]);
        block.extend_from_slice(&[b'x'; 4000]);
        block
    };
    for name in [&b"cookie"[..], b"other"] {
        let mut client = Client::new(Limits::default());
        let mut block = client.block(GET);
        block.extend(field(name));
        block.extend([0xbe; 70]);
        client.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block);
        match client.server.next_event() {
            Some(Event::Request { refusal: Some(refusal), head, .. }) => {
                assert_eq!(refusal.status, 431);
                assert!(head.headers.capacity_bytes() < 512 * 1024);
            }
            other => panic!("{other:?}"),
        }
        block.truncate(0);
        block.extend([0xbe; 8000]);
        client.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, &block);
        assert_eq!(client.goaway(), Some(Code::ENHANCE_YOUR_CALM));
    }
}

#[test]
fn heads_of_many_requests_together() {
    let mut client = Client::new(Limits { heads_bytes: 1000, ..Limits::default() });
    let long = "x".repeat(100);
    let mut opened = 0;
    for number in 0..10 {
        client.request(number * 2 + 1, &[GET, &[("a", &long)]].concat(), false);
        opened += u32::from(client.sent().is_empty());
    }
    assert_eq!(opened, 3);
}

#[test]
fn trailers_of_many_requests_together() {
    let mut client = Client::new(Limits { heads_bytes: 1000, ..Limits::default() });
    let long = "x".repeat(100);
    for stream in [1, 3] {
        client.request(stream, GET, false);
    }
    // 158 bytes of each head, and 532 of trailers: those of the second are too much.
    let trailers = [("a", long.as_str()); 4];
    client.request(1, &trailers, true);
    assert!(client.sent().is_empty());
    client.request(3, &trailers, true);
    assert_eq!(client.reset_of(3), Some(Code::ENHANCE_YOUR_CALM));
    client.server.release(1);
    client.server.release(3);
    client.sent();
    // A single request may have more.
    client.request(5, GET, false);
    client.request(5, &[("a", long.as_str()); 9], true);
    assert!(client.sent().is_empty());
}

#[test]
fn frames_without_progress() {
    let frames: &[(u8, u8, StreamId, &[u8])] = &[
        (kind::PING, 0, 0, &[0; 8]),
        (kind::SETTINGS, 0, 0, &[]),
        (kind::SETTINGS, flag::ACK, 0, &[]),
        (kind::PRIORITY, 0, 1, &[0; 5]),
        (kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        (kind::DATA, 0, 1, &[]),
        (kind::DATA, flag::PADDED, 1, &[0]),
        (kind::GOAWAY, 0, 0, &[0; 8]),
        (0xbe, 0, 1, &[0; 5]),
    ];
    for (kind, flags, stream, payload) in frames {
        let mut client = Client::new(Limits::default());
        client.request(1, GET, false);
        let count = repeat(&mut client, |client, _| {
            client.frame(*kind, *flags, *stream, payload);
        });
        assert!(count <= 2001, "{count} frames of kind {kind}");
    }
}

#[test]
fn many_settings() {
    let mut client = Client::new(Limits::default());
    client.frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1].repeat(33));
    assert_eq!(client.goaway(), Some(Code::ENHANCE_YOUR_CALM));
}
