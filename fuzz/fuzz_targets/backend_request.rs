//! Requests to a backend: what is written is exactly one request for our own strict parser.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::backend_request::{BackendRequest, Forwarded, RequestConnection, RequestFraming};
use wire::{
    Body, HeadLimits, HeadOptions, HeadParser, MethodRegistry, Progress, RequestHead, Table,
};

static METHODS: MethodRegistry = MethodRegistry::new();

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    let mut texts = bytes.split(|byte| *byte == 0xff);
    let mut text = || texts.next().unwrap_or_default();
    // The form of a target, such as an authority behind two slashes, is the caller's concern.
    let target = [b"/x", text()].concat();
    let (method, host, client, protocol) = (text(), text(), text(), text());
    let framing = match choice & 3 {
        0 => RequestFraming::None,
        1 => RequestFraming::Chunked,
        _ => RequestFraming::Length(u64::from(*choice)),
    };
    let request = BackendRequest {
        method,
        target: &target,
        is_http10: choice & 4 != 0,
        host,
        via: (choice & 8 != 0).then_some(client),
        forwarded: (choice & 16 != 0).then_some(Forwarded {
            client,
            host: Some(host),
            server: b"srv",
        }),
        framing,
        connection: match choice >> 6 {
            0 => RequestConnection::KeepAlive,
            1 => RequestConnection::Close,
            _ => RequestConnection::Upgrade(protocol),
        },
        expects_continue: choice & 32 != 0,
        credentials: None,
        drops_authorization: choice & 64 != 0,
        drops_conditions: choice & 128 != 0,
    };
    let mut fields = Table::new();
    for _ in 0..8 {
        let (name, value) = (text(), text());
        if !name.is_empty() {
            fields.add(name, value);
        }
    }
    let mut out = Vec::new();
    if request.write(&mut out, &fields).is_err() {
        assert!(out.is_empty());
        return;
    }
    let limits = HeadLimits { line_bytes: 1 << 20, field_bytes: 1 << 20, fields: 0 };
    let options = HeadOptions {
        strict: true,
        registered_methods: false,
        allow_http09: false,
        methods: &METHODS,
    };
    let mut head = RequestHead::new();
    let progress = HeadParser::new().parse(&mut head, &out, &limits, &options);
    match progress {
        Progress::Done { consumed } => assert_eq!(consumed, out.len()),
        // CONNECT has another form of target.
        Progress::Error(error) if method == b"CONNECT" => {
            assert_eq!(error.status, 400);
            return;
        }
        Progress::Error(error) => panic!("{}", String::from_utf8_lossy(&error.message)),
        Progress::NeedMore => panic!("a head without end"),
    }
    assert_eq!(head.method_name(), method);
    assert_eq!(head.target(), target);
    let expected = match framing {
        RequestFraming::None => Body::None,
        RequestFraming::Length(length) => Body::Length(length),
        RequestFraming::Chunked => Body::Chunked,
    };
    assert_eq!(head.body, expected);
});
