//! HTTP/2 of a client: a server's frames, cut anywhere, mean the same; whatever comes, what waits
//! is bounded, and each request has at most one response.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::h2::{Connection, Event, Limits, Pseudo};

/// A frame: its type, flags, stream and payload; whether a request is begun after it.
type Step = (u8, u8, u8, Vec<u8>, bool);

const WINDOW_BYTES: u32 = 65_535;
const CONNECTION_BYTES: u32 = 100_000;
const STREAMS: usize = 8;

fuzz_target!(|steps: Vec<Step>| {
    let limits = Limits {
        window_bytes: WINDOW_BYTES,
        connection_window_bytes: CONNECTION_BYTES,
        ..Limits::default()
    };
    let (mut whole, mut cut) = (Connection::client(limits, 0), Connection::client(limits, 0));
    for client in [&mut whole, &mut cut] {
        client.output.clear();
        client.receive_responses(&[0, 0, 0, 4, 0, 0, 0, 0, 0], 0);
    }
    let (mut open, mut untaken) = (Vec::new(), 0usize);
    for (kind, flags, stream, payload, begins) in steps {
        if begins && open.len() < STREAMS {
            let method = if flags % 2 == 0 { &b"GET"[..] } else { b"HEAD" };
            let pseudo = Pseudo { method, scheme: b"http", authority: b"a", path: b"/" };
            let ids = [&mut whole, &mut cut]
                .map(|client| client.request(&pseudo, [(&b"name"[..], &payload[..])], flags < 128));
            assert_eq!(ids[0], ids[1]);
            open.extend(ids[0].map(|id| (id, false)));
        }
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        let mut frame = vec![a, b, c, kind % 12, flags, 0, 0, 0, stream % 16];
        frame.extend_from_slice(&payload);
        whole.receive_responses(&frame, 0);
        let mut held = Vec::new();
        for byte in &frame {
            held.push(*byte);
            let taken = cut.receive_responses(&held, 0);
            held.drain(..taken);
        }
        while let Some(event) = whole.next_event() {
            let other = cut.next_event().map(|event| format!("{event:?}"));
            assert_eq!(Some(format!("{event:?}")), other);
            match event {
                Event::Response { stream, status, .. } => {
                    let found = open.iter_mut().find(|(id, _)| *id == stream).unwrap();
                    assert!(!found.1, "one final response");
                    found.1 = status >= 200;
                }
                Event::Data { stream, bytes, .. } => {
                    assert!(open.iter().any(|(id, has_head)| *id == stream && *has_head));
                    untaken += bytes.len();
                    assert!(untaken <= CONNECTION_BYTES as usize);
                }
                _ => {}
            }
        }
        if stream % 5 == 0 && !open.is_empty() {
            let (id, _) = open.remove(0);
            for client in [&mut whole, &mut cut] {
                client.send_data(id, &payload, true);
                client.release(id);
            }
            untaken = 0;
        }
        assert_eq!(whole.output, cut.output);
        assert_eq!(whole.failure(), cut.failure());
        whole.output.clear();
        cut.output.clear();
        if whole.failure().is_some() {
            return;
        }
    }
});
