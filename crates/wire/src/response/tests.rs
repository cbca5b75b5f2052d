use super::*;
use crate::chunked::Step;
use crate::recorded_tests::unescape;
use crate::request::HeadLimits;
use crate::table::Table;
use proptest::prelude::*;

/// All bytes at once.
const WHOLE: usize = usize::MAX >> 1;

/// What a client sees of a response.
#[derive(Debug, PartialEq)]
struct Seen {
    statuses: String,
    is_persistent: bool,
    is_whole: bool,
    body: Option<Vec<u8>>,
    fields: String,
}

fn refused(mut interims: Vec<String>, fault: &Fault) -> Seen {
    interims.push(fault.status().to_string());
    Seen {
        statuses: interims.join("+"),
        is_persistent: false,
        is_whole: true,
        body: None,
        fields: String::new(),
    }
}

/// Reads all that a backend sends before it closes, in pieces of `step` bytes.
fn read(bytes: &[u8], is_head: bool, step: usize, rules: &ResponseRules<'_>) -> Seen {
    let (mut parser, mut head) = (ResponseParser::new(), ResponseHead::new());
    let (mut start, mut end, mut interims) = (0, 0, Vec::new());
    let consumed = loop {
        match parser.parse(&mut head, &bytes[start..end], rules) {
            ResponseProgress::Done { consumed } => break consumed,
            ResponseProgress::Refused(fault) => return refused(interims, &fault),
            ResponseProgress::Interim { consumed } => {
                // Apache sends a 100 on only if the client asked for it.
                if head.status != 100 {
                    interims.push(head.status.to_string());
                }
                start += consumed;
                head.clear();
                parser.next();
            }
            ResponseProgress::NeedMore if end == bytes.len() => {
                return refused(interims, &parser.end_of_input(rules.dialect));
            }
            ResponseProgress::NeedMore => end = bytes.len().min(end + step),
        }
    };
    let buf = &bytes[start..];
    let checked = head.check(buf).and_then(|()| head.framing(buf, is_head));
    let framing = match checked {
        Ok(framing) => framing,
        Err(fault) => return refused(interims, &fault),
    };
    let (body, read, fault) = read_body(&buf[consumed..], framing, step);
    let mut whole = head.preread(buf).to_vec();
    whole.extend_from_slice(&body);
    if let (Some(fault), true) = (&fault, whole.is_empty())
        && !matches!(fault, Fault::Incomplete)
    {
        return refused(interims, fault);
    }
    interims.push(head.status.to_string());
    let is_own = |name: &&[u8]| name.starts_with(b"X-");
    let field = |name, value| format!("{}={}", text(name), text(value));
    let mut table = Table::new();
    head.fill(buf, &mut table);
    let fields = table.iter().filter(|(name, _)| is_own(name));
    Seen {
        statuses: interims.join("+"),
        is_persistent: head.is_persistent(framing)
            && fault.is_none()
            && consumed + read == buf.len(),
        is_whole: fault.is_none(),
        body: Some(if is_head { Vec::new() } else { whole }),
        fields: fields.map(|(name, value)| field(name, value)).collect::<Vec<_>>().join(","),
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The body, the number of bytes consumed, and what is wrong.
fn read_body(bytes: &[u8], framing: Framing, step: usize) -> (Vec<u8>, usize, Option<Fault>) {
    let mut reader = ResponseBody::new(HeadLimits::default(), true);
    reader.start(framing);
    let (mut body, mut at, mut end) = (Vec::new(), 0, 0);
    loop {
        match reader.read(&bytes[at..end]) {
            Ok(Step::Data { consumed, len }) => {
                at += consumed;
                body.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Step::Done { consumed }) => return (body, at + consumed, None),
            Ok(Step::NeedMore { consumed }) if end == bytes.len() => {
                return (body, at + consumed, reader.end_of_input().err());
            }
            Ok(Step::NeedMore { consumed }) => {
                at += consumed;
                end = bytes.len().min(end + step);
            }
            Err(fault) => return (body, at, Some(fault)),
        }
    }
}

struct Row {
    is_head: bool,
    bytes: Vec<u8>,
    seen: Seen,
}

fn recorded() -> impl Iterator<Item = Row> {
    let rows = include_str!("recorded.txt").lines().filter(|row| !row.starts_with('#'));
    rows.map(|row| {
        let parts: Vec<_> = row.split('|').collect();
        let [method, statuses, reuse, whole, body, fields, bytes] = parts[..] else {
            panic!("{row}")
        };
        let body = (body != "-").then(|| unescape(body));
        Row {
            is_head: method == "HEAD",
            bytes: unescape(bytes),
            seen: Seen {
                statuses: statuses.to_owned(),
                is_persistent: reuse == "keep",
                is_whole: whole == "whole",
                body,
                fields: text(&unescape(fields)),
            },
        }
    })
}

// Every row of recorded.txt is what a client of the real Apache 2.4.71 saw. Where Apache sends a
// page of its own, it may keep the connection to the backend; we never do. Of a body without a head
// whose first line is longer than the limit, Apache loses the rest of that line; we keep it.
#[test]
fn answers_are_apaches() {
    let mut wrong = Vec::new();
    for mut row in recorded() {
        row.seen.is_persistent &= row.seen.body.is_some();
        if row.bytes.starts_with(&[b'x'; 9000]) {
            row.seen.body = Some(row.bytes.clone());
        }
        let seen = read(&row.bytes, row.is_head, WHOLE, &ResponseRules::default());
        if seen != row.seen {
            let start = row.bytes.get(..120).unwrap_or(&row.bytes);
            wrong.push(format!("{:?}\n  {seen:.300?}\nnot {:.300?}", text(start), row.seen));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    let strict = ResponseRules { strict: true, ..ResponseRules::default() };
    for row in recorded() {
        for rules in [&ResponseRules::default(), &strict] {
            let whole = read(&row.bytes, row.is_head, WHOLE, rules);
            let shown = text(row.bytes.get(..120).unwrap_or(&row.bytes));
            assert_eq!(read(&row.bytes, row.is_head, 1, rules), whole, "{shown:?}");
            if row.bytes.len() > 300 {
                continue;
            }
            for cut in 1..row.bytes.len() {
                assert_eq!(read(&row.bytes, row.is_head, cut, rules), whole, "{cut} {shown:?}");
            }
        }
    }
}

// Every row of recorded_uwsgi.txt is what a client of the real Apache 2.4.71 saw of a uwsgi server.
#[test]
fn answers_to_uwsgi_are_apaches() {
    let rules = ResponseRules { dialect: Dialect::Uwsgi, ..ResponseRules::default() };
    for row in crate::recorded_tests::rows(include_str!("recorded_uwsgi.txt")) {
        let seen = read(&row.bytes, false, WHOLE, &rules);
        let shown = text(row.bytes.get(..60).unwrap_or(&row.bytes));
        assert!(row.is_whole || row.body.is_some());
        // The 500 for an invalid field is the module's to turn into a 502.
        let status = if shown.contains("X-A :") { 500 } else { row.status };
        let found = (seen.statuses.as_str(), seen.body.as_ref(), seen.fields.as_str());
        let status = status.to_string();
        assert_eq!(found, (status.as_str(), row.body.as_ref(), row.fields.as_str()), "{shown:?}");
        for cut in 1..row.bytes.len().min(100) {
            assert_eq!(read(&row.bytes, false, cut, &rules), seen, "{cut} {shown:?}");
        }
    }
}

#[test]
fn lies_are_refused_if_asked() {
    let rules = ResponseRules { strict: true, ..ResponseRules::default() };
    let lie = |bytes: &str| {
        let (mut parser, mut head) = (ResponseParser::new(), ResponseHead::new());
        match parser.parse(&mut head, bytes.as_bytes(), &rules) {
            ResponseProgress::Refused(fault) => match *fault {
                Fault::Lie(lie) => Some(lie),
                other => panic!("{other}"),
            },
            _ => None,
        }
    };
    let of = |fields: &str| lie(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
    assert_eq!(lie("hello\r\n"), Some(Lie::Simple));
    assert_eq!(lie("HTTP/1.1 200 OK\nA: b\r\n\r\n"), Some(Lie::BareLineEnd));
    assert_eq!(of("A: b\rc\r\n"), Some(Lie::BareLineEnd));
    assert_eq!(of("A: b\r\n c\r\n"), Some(Lie::Folded));
    assert_eq!(
        of("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
        Some(Lie::CodingAndLength)
    );
    assert_eq!(of("Content-Length: 3\r\nContent-Length: 03\r\n"), Some(Lie::Lengths));
    assert_eq!(of("Content-Length: 3\r\nContent-Length: 3\r\n"), None);
    assert_eq!(of("Transfer-Encoding: identity\r\n"), Some(Lie::Coding));
    assert_eq!(of("Transfer-Encoding: gzip, chunked\r\n"), None);
}

fn progress(bytes: &[u8], rules: &ResponseRules<'_>) -> (ResponseHead, ResponseProgress) {
    let mut head = ResponseHead::new();
    let progress = ResponseParser::new().parse(&mut head, bytes, rules);
    (head, progress)
}

fn fault(bytes: &[u8], rules: &ResponseRules<'_>) -> Fault {
    match progress(bytes, rules).1 {
        ResponseProgress::Refused(fault) => *fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn limits_have_names() {
    let of = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: v\r\n".repeat(count));
    let default = ResponseRules::default();
    let done = |bytes: &str| {
        matches!(progress(bytes.as_bytes(), &default).1, ResponseProgress::Done { .. })
    };
    assert!(done(&of(FIELDS)));
    assert_eq!(fault(of(FIELDS + 1).as_bytes(), &default), Fault::TooManyFields(FIELDS));
    let rules = ResponseRules { head_bytes: 40, ..default };
    assert_eq!(fault(of(5).as_bytes(), &rules), Fault::HeadTooLarge(40));
    assert_eq!(fault(&[b'x'; 41], &rules), Fault::HeadTooLarge(40));
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "v".repeat(2 * LINE_BYTES));
    let seen = fault(long.as_bytes(), &default);
    assert_eq!((seen.status(), seen.log_number()), (502, 10124));
    assert!(seen.to_string().len() < 200, "{seen}");
    assert!(fault(&long.as_bytes()[..LINE_BYTES + 30], &default) == seen);
    // A fault shows the same whether more of the line has arrived or not.
    let rules = ResponseRules { line_bytes: 20, ..default };
    assert_eq!(fault(&long.as_bytes()[..17 + 21], &rules), fault(long.as_bytes(), &rules));
}

#[test]
fn a_line_without_a_colon_is_what_is_configured() {
    let bytes = b"HTTP/1.1 200 OK\r\nX-A: b\r\nbogus\r\nX-B: c\r\n\r\nabc";
    let of = |bad_header| ResponseRules { bad_header, ..ResponseRules::default() };
    assert_eq!(fault(bytes, &of(BadHeader::IsError)), Fault::NotAField { minor: 1 });
    let ignored = read(bytes, false, WHOLE, &of(BadHeader::Ignore));
    assert_eq!((ignored.fields.as_str(), ignored.body), ("X-A=b,X-B=c", Some(b"abc".to_vec())));
    let body = read(bytes, false, WHOLE, &of(BadHeader::StartBody));
    let expected = Some(b"X-B: c\r\n\r\nabc".to_vec());
    assert_eq!((body.fields.as_str(), body.body), ("X-A=b", expected));
}

#[test]
fn a_switch_has_to_be_asked_for() {
    let bytes = b"HTTP/1.1 101 Switching\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\r\nabc";
    let rules = ResponseRules { upgrade: Some(b"websocket"), ..ResponseRules::default() };
    let (head, done) = progress(bytes, &rules);
    assert_eq!(done, ResponseProgress::Done { consumed: bytes.len() - 3 });
    assert_eq!(head.framing(bytes, false), Ok(Framing::None));
    assert!(!head.is_persistent(Framing::None));
    let other = ResponseRules { upgrade: Some(b"h2c"), ..ResponseRules::default() };
    let why = "Unexpected Upgrade: WebSocket (expecting h2c)";
    assert_eq!(fault(bytes, &other).to_string(), why);
}

#[test]
fn lines_that_are_as_they_should_be_are_forwarded_in_runs() {
    let bytes = b"HTTP/1.1 200 Fine\r\nX-A: b\r\nDate: d\r\nKeep-Alive: 5\r\nX-C:  d\r\nX-E: f\n\
        X-G: h\r\n i\r\nX-J:\r\nX-K: \r\nX-L: m\r\nConnection: x-l\r\nX-N: o\r\n\r\nabc";
    let (mut head, done) = progress(bytes, &ResponseRules::default());
    assert_eq!(done, ResponseProgress::Done { consumed: bytes.len() - 3 });
    assert_eq!((head.status, head.reason(bytes)), (200, b"Fine".as_slice()));
    let runs: Vec<_> = head
        .pieces(bytes)
        .map(|piece| match piece {
            Piece::Lines(lines) => text(lines),
            Piece::Field(field) => format!("({})", text(field.name(bytes))),
        })
        .collect();
    let expected =
        ["X-A: b\r\nDate: d\r\n", "(X-C)", "(X-E)", "(X-G)", "(X-J)", "X-K: \r\n", "X-N: o\r\n"];
    assert_eq!(runs, expected);
    head.remove(bytes, b"date");
    let mut out = Vec::new();
    head.write_fields(bytes, &mut out);
    let expected = "X-A: b\r\nX-C: d\r\nX-E: f\r\nX-G: h i\r\nX-J: \r\nX-K: \r\nX-N: o\r\n";
    assert_eq!(text(&out), expected);
    assert_eq!(head.get(bytes, b"x-g").as_deref(), Some(b"h i".as_slice()));
    assert_eq!(head.get(bytes, b"date"), None);
}

#[test]
fn a_reason_goes_on_if_it_is_printable() {
    for (line, is_valid) in [
        ("HTTP/1.1 200 OK", true),
        ("HTTP/1.1 200", true),
        ("HTTP/1.1 200  a\tb \u{e4}", true),
        ("HTTP/1.1 200\tOK", false),
        ("HTTP/1.1 2000 OK", false),
        ("HTTP/1.1 200 a\u{1}b", false),
        ("HTTP/1.1 200 a\rb", false),
    ] {
        let bytes = [line.as_bytes(), b"\r\n\r\n"].concat();
        let (head, _) = progress(&bytes, &ResponseRules::default());
        assert_eq!(head.has_valid_reason(&bytes), is_valid, "{line:?}");
    }
}

#[test]
fn a_connection_that_says_nothing_can_be_told() {
    let (mut parser, mut head) = (ResponseParser::new(), ResponseHead::new());
    assert_eq!(parser.parse(&mut head, b"", &ResponseRules::default()), ResponseProgress::NeedMore);
    assert!(!parser.has_begun());
    parser.parse(&mut head, b"H", &ResponseRules::default());
    assert!(parser.has_begun());
}

proptest! {
    #[test]
    fn pieces_are_as_the_whole(
        parts in prop::collection::vec(prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 C\r\n", "HTTP/1.0 204 N\n", "\r\n", "\n", "\r",
            "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close, x-a\r\n",
            "X-A: b\r\n", "X-A", ":", " ", "\t", "\0", "\u{1}", "abc", "3\r\n", "0\r\n",
            "Keep-Alive: x\r\n",
        ]), 0..12),
        step in 1usize..9,
        line_bytes in 1usize..40,
        head_bytes in 1usize..120,
        strict: bool,
        choice in 0..3,
    ) {
        let bytes = parts.concat();
        let bad_header =
            [BadHeader::IsError, BadHeader::Ignore, BadHeader::StartBody][choice as usize];
        for limits in [(line_bytes, head_bytes), (LINE_BYTES, HEAD_BYTES)] {
            let rules = ResponseRules {
                line_bytes: limits.0, head_bytes: limits.1, strict, bad_header, fields: 4,
                ..ResponseRules::default()
            };
            let whole = read(bytes.as_bytes(), false, WHOLE, &rules);
            prop_assert_eq!(read(bytes.as_bytes(), false, step, &rules), whole);
        }
    }
}
