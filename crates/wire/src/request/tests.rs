use super::previous::Previous;
use super::*;
use crate::host::RequestHost;
use crate::uri::{Normalize, Slashes, normalize_path, unescape_path};
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { line_bytes: 200, field_bytes: 100, fields: 10 };

static METHODS: MethodRegistry = MethodRegistry::new();

fn options(strict: bool) -> HeadOptions<'static> {
    HeadOptions { strict, registered_methods: false, allow_http09: true, methods: &METHODS }
}

fn parse(bytes: &[u8], strict: bool) -> (RequestHead, Progress) {
    let mut head = RequestHead::new();
    let progress = HeadParser::new().parse(&mut head, bytes, &LIMITS, &options(strict));
    (head, progress)
}

/// Runs this crate's checks in the order of a request. Returns 0 if all pass, and 1 if the head is
/// incomplete.
fn status(bytes: &[u8], strict: bool) -> Status {
    let (mut head, progress) = parse(bytes, strict);
    match progress {
        Progress::NeedMore => return 1,
        Progress::Error(error) => return error.status,
        Progress::Done { .. } => {}
    }
    let mut host = RequestHost::new();
    let checks = host
        .resolve(&mut head, b"http", strict)
        .and_then(|()| host.check_presence(&head))
        .and_then(|()| head.check_expect());
    if let Err(error) = checks {
        return error.status;
    }
    if !head.has_known_scheme() {
        return 400;
    }
    let mut path = head.path().to_vec();
    if !normalize_path(&mut path, Normalize::request(true)) {
        return 400;
    }
    unescape_path(&mut path, Slashes::Forbid, true).err().map_or(0, |_| 0)
}

fn unescape_row(row: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = row.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'x') => {
                let high = rest.next().and_then(crate::chars::hex_value).unwrap();
                high << 4 | rest.next().and_then(crate::chars::hex_value).unwrap()
            }
            other => other.unwrap(),
        });
    }
    bytes
}

fn recorded() -> impl Iterator<Item = (Status, Status, Vec<u8>)> {
    include_str!("recorded.txt").lines().filter(|row| !row.starts_with('#')).map(|row| {
        let mut parts = row.splitn(3, ' ');
        let strict = parts.next().unwrap().parse().unwrap();
        let lenient = parts.next().unwrap().parse().unwrap();
        (strict, lenient, unescape_row(parts.next().unwrap()))
    })
}

// Every row of recorded.txt is a response of the real Apache 2.4.71.
#[test]
fn answers_are_apaches() {
    let mut wrong = Vec::new();
    for (strict, lenient, bytes) in recorded() {
        for (expected, is_strict) in [(strict, true), (lenient, false)] {
            let seen = status(&bytes, is_strict);
            if expected != 2 && seen != expected {
                wrong.push(format!("{seen} not {expected} strict={is_strict} {:?}", bstr(&bytes)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn bstr(bytes: &[u8]) -> &bstr::BStr {
    bstr::BStr::new(bytes)
}

// Wherever the input is cut, head and response are the same.
#[test]
fn byte_by_byte_is_as_whole() {
    for (_, _, bytes) in recorded() {
        for strict in [true, false] {
            let whole = parse(&bytes, strict);
            assert_eq!(feed(&bytes, 1, strict), seen(whole), "{:?}", bstr(&bytes));
        }
    }
}

type Seen = (Progress, Vec<u8>, Table, HeadFlags, Version);

fn seen((head, progress): (RequestHead, Progress)) -> Seen {
    (progress, head.line.clone(), head.headers.clone(), head.flags, head.version)
}

fn feed(bytes: &[u8], step: usize, strict: bool) -> Seen {
    let (mut head, mut parser) = (RequestHead::new(), HeadParser::new());
    let mut progress = Progress::NeedMore;
    for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
        progress = parser.parse(&mut head, &bytes[..end], &LIMITS, &options(strict));
        if progress != Progress::NeedMore {
            break;
        }
    }
    seen((head, progress))
}

#[test]
fn fields_of_one_name_are_merged() {
    let (head, _) = parse(b"GET /a?b HTTP/1.1\r\nHost: h\r\nA: 1\r\nB:\r\na: 2 \r\n\r\n", true);
    assert_eq!(head.header(b"a"), Some(b"1, 2".as_slice()));
    assert_eq!(head.header(b"b"), Some(b"".as_slice()));
    assert_eq!(head.line(), b"GET /a?b HTTP/1.1");
    assert_eq!(head.path(), b"/a");
    assert_eq!(head.query(), Some(b"b".as_slice()));
    assert!(head.flags.has(HeadFlags::HOST) && !head.flags.any(HeadFlags::CONDITIONAL));
}

// Apache 2.4.71: HTTP_X is `a b c`.
#[test]
fn folded_fields_are_joined_with_one_space() {
    for strict in [true, false] {
        let (head, _) = parse(b"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n  b  \r\n\tc\r\n\r\n", strict);
        assert_eq!(head.header(b"x"), Some(b"a b c".as_slice()));
    }
}

// Apache 2.4.71: both fields together give 200 with Connection: close, and the length is dropped.
// Codings before chunked are not examined.
#[test]
fn framing() {
    let body = |fields: &str| {
        let (head, progress) =
            parse(format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n").as_bytes(), true);
        matches!(progress, Progress::Done { .. }).then_some((head.body, head.flags, head.headers))
    };
    let (framed, flags, headers) =
        body("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n").unwrap();
    assert_eq!(framed, Body::Chunked);
    assert!(flags.has(HeadFlags::CLOSE_AFTER) && !headers.contains(b"Content-Length"));
    assert_eq!(body("Transfer-Encoding: gzip, chunked\r\n").unwrap().0, Body::Chunked);
    assert_eq!(body("Content-Length: 003\r\n").unwrap().0, Body::Length(3));
    assert!(body("Content-Length: 3\r\nContent-Length: 3\r\n").is_none());
    assert!(body("Transfer-Encoding: chunked, gzip\r\n").is_none());
    assert!(body("Transfer-Encoding: x\r\nContent-Length: +3\r\n").is_none());
}

// Apache 2.4.71: the error log at debug level.
#[test]
fn messages_of_framing() {
    let message = |field: &str| match parse(
        format!("POST /cgi/echo HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n").as_bytes(),
        true,
    )
    .1
    {
        Progress::Error(error) => (error.log_number, String::from_utf8(error.message).unwrap()),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        message("Transfer-Encoding: chunked, gzip"),
        (2539, "client sent unknown Transfer-Encoding (chunked, gzip): /cgi/echo".into())
    );
    assert_eq!(
        message("Content-Length: +3"),
        (10242, "client sent invalid Content-Length (+3): /cgi/echo".into())
    );
}

// Apache 2.4.71: 501 (AH02423) with RegisteredMethods; 400 (AH02401) with Require1.0.
#[test]
fn protocol_options() {
    let refuse = |bytes: &[u8], options: &HeadOptions<'_>| {
        let mut head = RequestHead::new();
        match HeadParser::new().parse(&mut head, bytes, &LIMITS, options) {
            Progress::Error(error) => Some((error.status, error.log_number)),
            _ => None,
        }
    };
    let registered = HeadOptions { registered_methods: true, ..options(true) };
    let line = b"XGET / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(refuse(line, &registered), Some((501, 2423)));
    assert_eq!(refuse(line, &options(true)), None);
    let require10 = HeadOptions { allow_http09: false, ..options(true) };
    assert_eq!(refuse(b"GET /\r\n", &require10), Some((400, 2401)));
    assert_eq!(refuse(b"POST /\r\n", &options(true)), Some((400, 3444)));
}

// Apache 2.4.71: the page of a 400 has the text, those of 414 and of syntax errors do not.
#[test]
fn notes_for_the_error_page() {
    let notes = |fields: String| match parse(
        format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes(),
        true,
    )
    .1
    {
        Progress::Error(error) => (error.log_number, error.notes),
        other => panic!("{other:?}"),
    };
    assert_eq!(notes(format!("X: {}\r\n", "a".repeat(99))), (561, fields::TOO_LARGE));
    assert_eq!(notes(format!("X: {0}\r\nX: {0}\r\n", "a".repeat(60))), (560, fields::TOO_LARGE));
    assert_eq!(notes("X: a\r\n".repeat(11)), (563, fields::TOO_MANY));
    assert_eq!(notes("X y: a\r\n".into()), (2426, ""));
}

// A finding of the fuzzer: the colon of the next line was taken for this line's.
#[test]
fn the_message_of_a_long_line_is_its_own() {
    let limits = HeadLimits { field_bytes: 20, ..LIMITS };
    let bytes = b"GET / HTTP/1.1\r\naaaaaaaaaaaaaaaaaaaaaaaaa\r\nX: y\r\n\r\n";
    let mut head = RequestHead::new();
    match HeadParser::new().parse(&mut head, bytes, &limits, &options(true)) {
        Progress::Error(error) => {
            assert_eq!(error.message, b"Request header exceeds LimitRequestFieldSize");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn unfinished_lines_are_refused_at_eight_kilobytes() {
    let line = |len: usize| [b"GET /".as_slice(), &vec![b'a'; len - 5]].concat();
    assert_eq!(parse(&line(8191), true).1, Progress::NeedMore);
    assert!(matches!(parse(&line(8192), true).1, Progress::Error(error) if error.status == 414));
}

#[test]
fn a_head_is_recycled_without_allocation_growth() {
    let (mut head, mut parser) = (RequestHead::new(), HeadParser::new());
    let bytes = b"GET / HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\nrest";
    for _ in 0..3 {
        head.clear();
        parser.reset();
        let progress = parser.parse(&mut head, bytes, &LIMITS, &options(true));
        assert_eq!(progress, Progress::Done { consumed: bytes.len() - 4 });
        assert_eq!(head.headers.len(), 2);
    }
}

fn request_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "GET ", "/", "HTTP/1.1", "\r\n", "\n", " ", "Host: h\r\n", "X: y\r\n", ": ", "\t",
            "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "http://a", "?", "#", "%2e",
            "\0", "\r", "X", "@", "[::1]", "GET / HTTP/1.1\r\n", "\r\n\r\n", " fold\r\n",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..20),
    ];
    prop::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat())
}

/// Heads that differ in a few lines.
fn head_bytes() -> impl Strategy<Value = Vec<u8>> {
    let lines = vec![
        "Host: h\r\n",
        "Host: i\r\n",
        "Accept: */*\r\n",
        "Accept:  */*\r\n",
        "accept: */*\r\n",
        "Accept: */* \r\n",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
        "Te: x\r\n",
        "Content-Length: 3\r\n",
        "X: \t\r\n",
        "X:\r\n",
        "X: \x01\r\n",
        " X: y\r\n",
        "X: y\n",
    ];
    let lines = prop::collection::vec(prop::sample::select(lines), 0..8);
    let end = prop::sample::select(vec!["\r\n", "\r\nHost: h\r\n", "\n", "\r", ""]);
    (lines, end).prop_map(|(lines, end)| {
        [b"GET / HTTP/1.1\r\n".as_slice(), lines.concat().as_bytes(), end.as_bytes()].concat()
    })
}

proptest! {
    #[test]
    fn the_fast_path_agrees_with_the_exact_one(bytes in request_bytes(), strict: bool) {
        let mut quick = RequestHead::new();
        let (mut previous, options) = (Previous::default(), options(strict));
        let consumed = fast::parse(&mut quick, &mut previous, &bytes, &LIMITS, &options);
        if let Some(consumed) = consumed {
            let finished = fields::conclude(&mut quick);
            let progress = match finished {
                Ok(()) => Progress::Done { consumed },
                Err(error) => Progress::Error(error),
            };
            prop_assert_eq!(seen((quick, progress)), feed(&bytes, 1, strict));
        }
    }

    // A parser that has seen a head parses the next one as a new parser does.
    #[test]
    fn repeated_lines_are_as_new_ones(heads in prop::collection::vec(head_bytes(), 1..5)) {
        let mut parser = HeadParser::new();
        for bytes in heads {
            let mut head = RequestHead::new();
            let progress = parser.parse(&mut head, &bytes, &LIMITS, &options(true));
            prop_assert_eq!(seen((head, progress)), seen(parse(&bytes, true)));
            parser.reset_for_next();
        }
    }

    #[test]
    fn pieces_are_as_the_whole(bytes in request_bytes(), step in 1usize..50, strict: bool) {
        prop_assert_eq!(feed(&bytes, step, strict), seen(parse(&bytes, strict)));
    }

    #[test]
    fn hosts_never_panic(bytes in request_bytes(), strict: bool) {
        status(&bytes, strict);
    }
}

#[test]
fn a_request_goes_on_over_http_2() {
    let text = b"GET http://h/a?b HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\n\
        Upgrade: h2c\r\nHTTP2-Settings: x\r\nX-A: 1\r\n\r\n";
    let (head, progress) = parse(text, true);
    assert!(matches!(progress, Progress::Done { .. }));
    let fields = head.headers.clone();
    let Ok(upgraded) = head.upgraded(fields, &LIMITS, &options(true)) else { panic!("refused") };
    assert_eq!(upgraded.line(), b"GET /a?b HTTP/2.0");
    assert_eq!(upgraded.version.0, 2000);
    assert!(!upgraded.flags.has(HeadFlags::UPGRADE));
    let names: Vec<_> = upgraded.headers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, [&b"Host"[..], b"X-A"]);
}
