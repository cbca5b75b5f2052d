use super::*;
use crate::MethodRegistry;
use crate::request::{Body, HeadLimits, HeadOptions, HeadParser, Progress, RequestHead};
use proptest::prelude::*;

static METHODS: MethodRegistry = MethodRegistry::new();

const REQUEST: BackendRequest<'_> = BackendRequest {
    method: b"GET",
    target: b"/b/a",
    is_http10: false,
    host: b"127.0.0.1:81",
    via: Some(b"1.1 srv.example:8"),
    forwarded: Some(Forwarded { client: b"127.0.0.1", host: Some(b"h:8"), server: b"srv.example" }),
    framing: RequestFraming::None,
    connection: RequestConnection::KeepAlive,
    expects_continue: false,
    credentials: None,
    drops_authorization: false,
    drops_conditions: false,
};

fn table(fields: &[(&str, &str)]) -> Table {
    let mut table = Table::new();
    for (name, value) in fields {
        table.add(name.as_bytes(), value.as_bytes());
    }
    table
}

fn written(request: &BackendRequest<'_>, fields: &[(&str, &str)]) -> String {
    let mut out = Vec::new();
    request.write(&mut out, &table(fields)).unwrap();
    String::from_utf8(out).unwrap()
}

const ADDED: &str = "Via: 1.1 srv.example:8\r\nX-Forwarded-For: 127.0.0.1\r\n\
    X-Forwarded-Host: h:8\r\nX-Forwarded-Server: srv.example\r\n";

// What a remote proxy of Apache 2.4.71 received.
#[test]
fn credentials_of_a_remote_proxy_follow_via() {
    let begin = "GET /b/a HTTP/1.1\r\nHost: 127.0.0.1:81\r\n";
    let (own, end) = ("Proxy-Authorization: Basic b3du\r\n", "Connection: Keep-Alive\r\n\r\n");
    let request = BackendRequest { credentials: Some(b"Basic b3du"), ..REQUEST };
    assert_eq!(written(&request, &[]), format!("{begin}{ADDED}{own}{end}"));
    let fields = [("Proxy-Authorization", "Basic eA=="), ("X-A", "1")];
    let both = "Proxy-Authorization: Basic eA==, Basic b3du\r\nX-A: 1\r\n";
    assert_eq!(written(&request, &fields), format!("{begin}{both}{ADDED}{end}"));
    let request = BackendRequest { drops_authorization: true, ..request };
    assert_eq!(written(&request, &fields), format!("{begin}X-A: 1\r\n{ADDED}{own}{end}"));
}

// Each is what a backend of Apache 2.4.71 received.
#[test]
fn a_request_is_written_as_apache_writes_it() {
    let begin = "GET /b/a HTTP/1.1\r\nHost: 127.0.0.1:81\r\n";
    let end = "Connection: Keep-Alive\r\n\r\n";
    assert_eq!(written(&REQUEST, &[("Host", "h:8")]), format!("{begin}{ADDED}{end}"));
    let hop = [
        ("Host", "h:8"),
        ("X-A", "1"),
        ("Connection", "X-A, close"),
        ("Keep-Alive", "5"),
        ("TE", "trailers"),
        ("Trailer", "x"),
        ("Upgrade", "h2c"),
        ("Proxy-Connection", "x"),
        ("Proxy-Authorization", "x"),
        ("X-B", "2"),
    ];
    let kept = "Proxy-Authorization: x\r\nX-B: 2\r\n";
    assert_eq!(written(&REQUEST, &hop), format!("{begin}{kept}{ADDED}{end}"));
    let joined = [
        ("X-Forwarded-For", "1.2.3.4"),
        ("X-Forwarded-Host", "o"),
        ("X-Forwarded-Server", "s"),
        ("Via", "1.0 z"),
        ("X-Forwarded-Proto", "https"),
    ];
    let fields = "X-Forwarded-For: 1.2.3.4, 127.0.0.1\r\nX-Forwarded-Host: o, h:8\r\n\
        X-Forwarded-Server: s, srv.example\r\nVia: 1.0 z, 1.1 srv.example:8\r\n\
        X-Forwarded-Proto: https\r\n";
    assert_eq!(written(&REQUEST, &joined), format!("{begin}{fields}{end}"));
    let named = [("Connection", "Via, X-Forwarded-For"), ("X-Forwarded-For", "1.1.1.1")];
    assert_eq!(written(&REQUEST, &named), format!("{begin}{ADDED}{end}"));
    let empty = [("X-E", ""), ("x-lower", "v")];
    let fields = "X-E: \r\nx-lower: v\r\n";
    assert_eq!(written(&REQUEST, &empty), format!("{begin}{fields}{ADDED}{end}"));
}

// Each is what a backend of Apache 2.4.71 received.
#[test]
fn framing_and_connection() {
    let post = BackendRequest { method: b"POST", via: None, forwarded: None, ..REQUEST };
    let begin = "POST /b/a HTTP/1.1\r\nHost: 127.0.0.1:81\r\n";
    let length = BackendRequest { framing: RequestFraming::Length(3), ..post };
    let sent = [("Content-Length", "9"), ("Transfer-Encoding", "x"), ("X-A", "b")];
    let expected = "X-A: b\r\nContent-Length: 3\r\nConnection: Keep-Alive\r\n\r\n";
    assert_eq!(written(&length, &sent), format!("{begin}{expected}"));
    let expect = [("Expect", "100-continue")];
    let expected = "Content-Length: 3\r\nConnection: Keep-Alive\r\n\r\n";
    assert_eq!(written(&length, &expect), format!("{begin}{expected}"));
    let expected = "Expect: 100-continue\r\nContent-Length: 3\r\nConnection: Keep-Alive\r\n\r\n";
    let ping = BackendRequest { expects_continue: true, ..length };
    assert_eq!(written(&ping, &expect), format!("{begin}{expected}"));
    let ping = BackendRequest { forwarded: REQUEST.forwarded, via: REQUEST.via, ..ping };
    let added = ADDED.replacen("\r\n", "\r\nExpect: 100-Continue\r\n", 1);
    let end = "Content-Length: 3\r\nConnection: Keep-Alive\r\n\r\n";
    assert_eq!(written(&ping, &[]), format!("{begin}{added}{end}"));
    let named = [("Expect", "100-continue"), ("Connection", "Expect")];
    assert_eq!(written(&ping, &named), format!("{begin}{added}{end}"));
    let chunked = BackendRequest { framing: RequestFraming::Chunked, ..post };
    let expected = "Transfer-Encoding: chunked\r\nConnection: Keep-Alive\r\n\r\n";
    assert_eq!(written(&chunked, &[]), format!("{begin}{expected}"));
    let old = BackendRequest { is_http10: true, ..post };
    assert_eq!(written(&old, &[]), "POST /b/a HTTP/1.0\r\nHost: 127.0.0.1:81\r\n\r\n");
    let close = BackendRequest { connection: RequestConnection::Close, ..post };
    assert_eq!(written(&close, &[]), format!("{begin}Connection: close\r\n\r\n"));
    let upgrade = BackendRequest { connection: RequestConnection::Upgrade(b"websocket"), ..post };
    let expected = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(written(&upgrade, &[("Upgrade", "x")]), format!("{begin}{expected}"));
}

#[test]
fn fields_that_are_dropped_if_asked() {
    let request = BackendRequest {
        via: None,
        forwarded: None,
        drops_authorization: true,
        drops_conditions: true,
        ..REQUEST
    };
    let fields = [("proxy-authorization", "x"), ("If-Match", "*"), ("if-range", "x"), ("A", "b")];
    let expected =
        "GET /b/a HTTP/1.1\r\nHost: 127.0.0.1:81\r\nA: b\r\nConnection: Keep-Alive\r\n\r\n";
    assert_eq!(written(&request, &fields), expected);
}

#[test]
fn via_names_the_proxy() {
    let mut out = Vec::new();
    write_via(&mut out, Version::HTTP_10, b"srv", None, None);
    out.push(b'|');
    write_via(&mut out, Version::HTTP_11, b"srv", Some(8), Some(b"Apache/2.4.71"));
    assert_eq!(out, b"1.0 srv|1.1 srv:8 (Apache/2.4.71)");
}

#[test]
fn what_could_be_two_requests_is_refused() {
    let fault = |request: &BackendRequest<'_>, fields: &[(&str, &str)]| {
        let mut out = b"x".to_vec();
        let fault = request.write(&mut out, &table(fields)).unwrap_err();
        assert_eq!(out, b"x");
        fault
    };
    let of = |name, value| fault(&REQUEST, &[(name, value)]);
    assert_eq!(of("A", "b\r\nC: d"), RequestFault::Field);
    assert_eq!(of("A", "b\0"), RequestFault::Field);
    assert_eq!(of("A B", "b"), RequestFault::Field);
    assert_eq!(of("", "b"), RequestFault::Field);
    assert_eq!(of("A", &"v".repeat(HEAD_BYTES)), RequestFault::TooLarge);
    for target in ["", "/a b", "/a\r\n", "/\0", "/\t", "/a#b"] {
        let request = BackendRequest { target: target.as_bytes(), ..REQUEST };
        assert_eq!(fault(&request, &[]), RequestFault::Line, "{target:?}");
    }
    assert_eq!(fault(&BackendRequest { method: b"G T", ..REQUEST }, &[]), RequestFault::Line);
    assert_eq!(fault(&BackendRequest { host: b"a\nb", ..REQUEST }, &[]), RequestFault::Field);
    let chunked = BackendRequest { is_http10: true, framing: RequestFraming::Chunked, ..REQUEST };
    assert_eq!(fault(&chunked, &[]), RequestFault::Chunked);
}

proptest! {
    // Our own strict parser finds the one request that was meant, and nothing behind it.
    #[test]
    fn what_is_written_is_one_request(
        fields in prop::collection::vec((
            prop::sample::select(vec![
                "X-A", "Connection", "Content-Length", "Transfer-Encoding", "Via", "Host", "TE",
                "X B",
            ]),
            prop::sample::select(vec![
                "", "a", "3", "chunked", "X-A", "close, via", "a\r\nX: y", "\r\n\r\nGET /", " b ",
                "\u{e4}",
            ]),
        ), 0..6),
        target in prop::sample::select(vec!["/", "/a?b", "/ HTTP/1.1\r\n\r\nGET /", "http://o/"]),
        length in prop::option::of(0u64..9),
    ) {
        let framing = length.map_or(RequestFraming::Chunked, RequestFraming::Length);
        let request = BackendRequest { target: target.as_bytes(), framing, ..REQUEST };
        let mut out = Vec::new();
        if request.write(&mut out, &table(&fields)).is_ok() {
            let options = HeadOptions {
                strict: true, registered_methods: true, allow_http09: false, methods: &METHODS,
            };
            let (mut head, limits) = (RequestHead::new(), HeadLimits::default());
            let done = HeadParser::new().parse(&mut head, &out, &limits, &options);
            prop_assert_eq!(done, Progress::Done { consumed: out.len() });
            prop_assert_eq!(head.target(), target.as_bytes());
            prop_assert_eq!(head.header(b"Host"), Some(REQUEST.host));
            prop_assert_eq!(head.body, length.map_or(Body::Chunked, Body::Length));
        }
    }
}
