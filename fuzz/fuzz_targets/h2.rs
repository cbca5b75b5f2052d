//! HTTP/2: frames against the state machine. Cut anywhere they mean the same; whatever comes, what
//! waits is bounded, and each request is served or reset once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::h2::{Connection, Event, Limits, PREFACE};
use wire::{HeadOptions, MethodRegistry};

/// A frame: its type, flags, stream and payload; how the request of that stream is served.
type Step = (u8, u8, u8, Vec<u8>, u8);

const STREAMS: u32 = 5;
const WINDOW_BYTES: u32 = 65_535;
const CONNECTION_BYTES: u32 = 100_000;

fuzz_target!(|steps: Vec<Step>| {
    let methods = MethodRegistry::default();
    let options = HeadOptions {
        strict: true,
        registered_methods: false,
        allow_http09: true,
        methods: &methods,
    };
    let limits = Limits {
        streams: STREAMS,
        window_bytes: WINDOW_BYTES,
        connection_window_bytes: CONNECTION_BYTES,
        ..Limits::default()
    };
    let (mut whole, mut cut) = (Connection::new(limits, 0), Connection::new(limits, 0));
    for server in [&mut whole, &mut cut] {
        assert_eq!(server.receive(PREFACE, &options, 0), PREFACE.len());
        server.receive(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &options, 0);
    }
    let (mut open, mut pushed, mut untaken) = (Vec::new(), Vec::new(), 0usize);
    for (kind, flags, stream, payload, how) in steps {
        let length = (payload.len() as u32).to_be_bytes();
        let [_, a, b, c] = length;
        let mut frame = vec![a, b, c, kind % 12, flags, 0, 0, 0, stream % 16];
        frame.extend_from_slice(&payload);
        whole.receive(&frame, &options, 0);
        let mut held = Vec::new();
        for byte in &frame {
            held.push(*byte);
            let taken = cut.receive(&held, &options, 0);
            held.drain(..taken);
        }
        while let Some(event) = whole.next_event() {
            let other = cut.next_event().map(|event| format!("{event:?}"));
            assert_eq!(Some(format!("{event:?}")), other);
            match event {
                Event::Request { stream, .. } => {
                    assert!(!open.contains(&stream));
                    open.push(stream);
                    assert!(open.len() <= STREAMS as usize);
                }
                Event::Data { bytes, .. } => {
                    untaken += bytes.len();
                    assert!(untaken <= CONNECTION_BYTES as usize);
                }
                _ => {}
            }
        }
        if let Some(stream) = open.first().copied().filter(|_| how % 2 == 0) {
            let pseudo: [(&[u8], &[u8]); 4] = [
                (b":scheme", b"http"),
                (b":authority", b"host"),
                (b":path", &payload),
                (b":method", b"GET"),
            ];
            let mut promised = Vec::new();
            for server in [&mut whole, &mut cut] {
                let promise = server.promise(stream, &pseudo, &[], &options);
                promised.push(promise.map(|promise| promise.stream));
                server.respond(stream, 200, [(&b"name"[..], &payload[..])], how % 4 == 0);
                server.send_data(stream, &payload, how % 8 == 2);
                server.release(stream);
            }
            assert_eq!(promised[0], promised[1]);
            if let Some(stream) = promised[0] {
                pushed.push(stream);
                assert!(pushed.len() <= STREAMS as usize);
            }
            if let Some(stream) = pushed.first().copied().filter(|_| how % 16 < 8) {
                for server in [&mut whole, &mut cut] {
                    server.respond(stream, 200, [], false);
                    server.send_data(stream, &payload, true);
                    server.release(stream);
                }
                pushed.remove(0);
            }
            open.remove(0);
            // What was not taken is lost with its stream.
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
