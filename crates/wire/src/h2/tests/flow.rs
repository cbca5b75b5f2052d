//! Flow control and the frames of the connection.

use super::*;

fn client_with_window(bytes: u32) -> Client {
    let mut client = Client::new(Limits::default());
    let mut setting = vec![0, 4];
    setting.extend_from_slice(&bytes.to_be_bytes());
    client.frame(kind::SETTINGS, 0, 0, &setting);
    client.sent();
    client
}

#[test]
fn a_response_waits_for_the_window() {
    let mut client = client_with_window(5);
    client.request(1, GET, true);
    client.server.respond(1, 200, [], false);
    assert_eq!(client.server.window(1), Some(5));
    assert_eq!(client.server.send_data(1, b"0123456789", true), 5);
    assert_eq!(client.server.send_data(1, b"56789", true), 0);
    client.frame(kind::WINDOW_UPDATE, 0, 1, &3u32.to_be_bytes());
    assert_eq!(client.server.send_data(1, b"56789", true), 3);
    // A smaller initial window makes that of a stream negative.
    client.frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    client.frame(kind::WINDOW_UPDATE, 0, 1, &6u32.to_be_bytes());
    assert_eq!(client.server.window(1), Some(1));
    assert_eq!(client.server.send_data(1, b"8", false), 1);
    // An empty end needs no window.
    client.sent();
    assert_eq!(client.server.send_data(1, b"", true), 0);
    assert_eq!(client.sent()[0].flags, flag::END_STREAM);
    assert_eq!(client.server.window(1), None);
}

#[test]
fn padding_is_part_of_the_window() {
    let mut client = Client::new(Limits { padding_bits: 8, ..Limits::default() });
    let mut padded = 0;
    for number in 0..20 {
        let stream = number * 2 + 1;
        client.request(stream, GET, true);
        client.server.respond(stream, 200, [(&b"a"[..], &b"b"[..])], false);
        let before = client.server.window(stream).unwrap();
        assert_eq!(client.server.send_data(stream, b"0123456789", false), 10);
        let used = before - client.server.window(stream).unwrap();
        let sent = client.sent();
        assert_eq!(sent[1].payload.len(), used);
        let plain = |sent: &Sent| {
            let Sent { kind, flags, stream, payload } = sent;
            let head = Head { length: payload.len(), kind: *kind, flags: *flags, stream: *stream };
            frame::without_padding(head, payload).unwrap().to_vec()
        };
        assert_eq!(plain(&sent[1]), b"0123456789");
        let block = plain(&sent[0]);
        assert_eq!(client.fields(&block).len(), 2);
        padded += usize::from(used > 10);
    }
    assert!(padded > 10);
    // Without room for it there is none.
    client.frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 3]);
    client.request(101, GET, true);
    client.server.respond(101, 200, [], false);
    assert_eq!(client.server.send_data(101, b"abc", true), 3);
}

#[test]
fn the_connection_has_a_window_too() {
    let mut client = client_with_window(1 << 20);
    client.request(1, GET, true);
    client.server.respond(1, 200, [], false);
    assert_eq!(client.server.send_data(1, &[0; 100_000], true), 65_535);
    assert_eq!(client.server.window(1), Some(0));
    client.frame(kind::WINDOW_UPDATE, 0, 0, &100u32.to_be_bytes());
    assert_eq!(client.server.window(1), Some(100));
    let data: Vec<_> = client.sent().into_iter().filter(|one| one.kind == kind::DATA).collect();
    assert!(data.iter().all(|frame| frame.payload.len() <= 16 * 1024));
}

#[test]
fn windows_have_bounds() {
    let largest = 0x7fff_ffffu32.to_be_bytes();
    let mut client = Client::new(Limits::default());
    client.request(1, GET, true);
    client.frame(kind::WINDOW_UPDATE, 0, 1, &largest);
    assert_eq!(client.reset_of(1), Some(Code::FLOW_CONTROL_ERROR));
    client.frame(kind::WINDOW_UPDATE, 0, 0, &largest);
    assert_eq!(client.goaway(), Some(Code::FLOW_CONTROL_ERROR));
}

#[test]
fn a_body_is_bounded_until_it_is_taken() {
    let limits = Limits { window_bytes: 100, ..Limits::default() };
    let mut client = Client::new(limits);
    client.frame(kind::SETTINGS, flag::ACK, 0, b"");
    client.request(1, GET, false);
    client.frame(kind::DATA, 0, 1, &[0; 100]);
    assert!(client.sent().is_empty());
    client.server.taken(1, 60);
    let sent = client.sent();
    assert_eq!((sent[0].kind, sent[0].stream), (kind::WINDOW_UPDATE, 1));
    assert_eq!(sent[0].payload, 60u32.to_be_bytes());
    client.frame(kind::DATA, 0, 1, &[0; 60]);
    client.frame(kind::DATA, 0, 1, &[0; 1]);
    assert_eq!(client.reset_of(1), Some(Code::FLOW_CONTROL_ERROR));
}

#[test]
fn a_setting_binds_when_it_is_confirmed() {
    let limits = Limits { window_bytes: 100, ..Limits::default() };
    let mut client = Client::new(limits);
    client.request(1, GET, false);
    client.request(3, GET, false);
    client.frame(kind::DATA, 0, 1, &[0; 16_000]);
    client.frame(kind::SETTINGS, flag::ACK, 0, b"");
    // 16,000 bytes have been sent of 100.
    client.frame(kind::DATA, flag::END_STREAM, 1, b"");
    assert!(client.sent().is_empty());
    client.frame(kind::DATA, 0, 3, &[0; 100]);
    assert!(client.sent().is_empty());
    client.frame(kind::DATA, 0, 3, &[0; 1]);
    assert_eq!(client.reset_of(3), Some(Code::FLOW_CONTROL_ERROR));
    // A second confirmation changes nothing.
    client.frame(kind::SETTINGS, flag::ACK, 0, b"");
    client.request(5, GET, false);
    client.frame(kind::DATA, 0, 5, &[0; 101]);
    assert_eq!(client.reset_of(5), Some(Code::FLOW_CONTROL_ERROR));
}

#[test]
fn what_no_handler_takes_returns_to_the_connection() {
    let limits =
        Limits { window_bytes: 70_000, connection_window_bytes: 70_000, ..Limits::default() };
    let mut client = Client::new(limits);
    for stream in [1, 3, 5] {
        client.request(stream, GET, false);
        for _ in 0..4 {
            client.frame(kind::DATA, 0, stream, &[0; 15_000]);
        }
        client.server.release(stream);
        let granted = client.sent().into_iter().any(|frame| {
            (frame.kind, frame.stream) == (kind::WINDOW_UPDATE, 0)
                && frame.payload == 60_000u32.to_be_bytes()
        });
        assert!(granted);
    }
    assert!(client.server.failure().is_none());
}

#[test]
fn frames_of_wrong_sizes_and_places_end_the_connection() {
    let cases: &[(u8, u8, StreamId, usize, Code)] = &[
        (kind::DATA, 0, 0, 1, Code::PROTOCOL_ERROR),
        (kind::DATA, 0, 1, 1, Code::PROTOCOL_ERROR),
        (kind::HEADERS, flag::END_HEADERS, 0, 0, Code::PROTOCOL_ERROR),
        (kind::HEADERS, flag::END_HEADERS, 2, 0, Code::PROTOCOL_ERROR),
        (kind::HEADERS, flag::PRIORITY, 1, 4, Code::FRAME_SIZE_ERROR),
        (kind::HEADERS, flag::PADDED, 1, 0, Code::PROTOCOL_ERROR),
        (kind::PRIORITY, 0, 0, 5, Code::PROTOCOL_ERROR),
        (kind::PRIORITY, 0, 1, 4, Code::FRAME_SIZE_ERROR),
        (kind::RST_STREAM, 0, 0, 4, Code::PROTOCOL_ERROR),
        (kind::RST_STREAM, 0, 1, 4, Code::PROTOCOL_ERROR),
        (kind::RST_STREAM, 0, 1, 3, Code::FRAME_SIZE_ERROR),
        (kind::SETTINGS, 0, 1, 0, Code::PROTOCOL_ERROR),
        (kind::SETTINGS, 0, 0, 5, Code::FRAME_SIZE_ERROR),
        (kind::SETTINGS, flag::ACK, 0, 6, Code::FRAME_SIZE_ERROR),
        (kind::PUSH_PROMISE, 0, 1, 4, Code::PROTOCOL_ERROR),
        (kind::PING, 0, 1, 8, Code::PROTOCOL_ERROR),
        (kind::PING, 0, 0, 7, Code::FRAME_SIZE_ERROR),
        (kind::GOAWAY, 0, 1, 8, Code::PROTOCOL_ERROR),
        (kind::WINDOW_UPDATE, 0, 0, 3, Code::FRAME_SIZE_ERROR),
        (kind::WINDOW_UPDATE, 0, 1, 4, Code::PROTOCOL_ERROR),
        (kind::CONTINUATION, 0, 1, 4, Code::PROTOCOL_ERROR),
    ];
    for (kind, flags, stream, length, code) in cases {
        let mut client = Client::new(Limits::default());
        client.frame(*kind, *flags, *stream, &vec![0; *length]);
        assert_eq!(client.goaway(), Some(*code), "frame of kind {kind}");
    }
    let mut client = Client::new(Limits::default());
    client.receive(&[0, 0x40, 1, kind::DATA, 0, 0, 0, 0, 1]);
    assert_eq!(client.goaway(), Some(Code::FRAME_SIZE_ERROR));
}

#[test]
fn settings_are_checked() {
    for (setting, code) in [
        ([0, 2, 0, 0, 0, 2], Code::PROTOCOL_ERROR),
        ([0, 4, 0x80, 0, 0, 0], Code::FLOW_CONTROL_ERROR),
        ([0, 5, 0, 0, 0, 0], Code::PROTOCOL_ERROR),
        ([0, 5, 1, 0, 0, 0], Code::PROTOCOL_ERROR),
    ] {
        let mut client = Client::new(Limits::default());
        client.frame(kind::SETTINGS, 0, 0, &setting);
        assert_eq!(client.goaway(), Some(code));
    }
}

#[test]
fn a_ping_is_returned() {
    let mut client = Client::new(Limits::default());
    client.frame(kind::PING, 0, 0, b"12345678");
    client.frame(kind::PING, flag::ACK, 0, b"12345678");
    let payload = b"12345678".to_vec();
    assert_eq!(client.sent(), [Sent { kind: kind::PING, flags: flag::ACK, stream: 0, payload }]);
}

#[test]
fn a_stream_is_granted_something() {
    let mut client = Client::new(Limits::default());
    client.request(1, GET, true);
    client.frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4]);
    assert_eq!(client.goaway(), Some(Code::PROTOCOL_ERROR));
}

#[test]
fn bodies_that_are_not_taken_leave_no_room_for_others() {
    let mut client = Client::new(Limits { window_bytes: 2 << 20, ..Limits::default() });
    client.request(1, GET, false);
    assert_eq!(client.server.has_room_for_bodies(), Some(0));
    for _ in 0..64 {
        client.frame(kind::DATA, 0, 1, &[0; 16 * 1024]);
    }
    assert_eq!(client.server.has_room_for_bodies(), None);
    client.server.taken(1, 1000);
    assert_eq!(client.server.has_room_for_bodies(), None);
    client.server.taken(1, 1 << 19);
    assert_eq!(client.server.has_room_for_bodies(), Some(1));
}
