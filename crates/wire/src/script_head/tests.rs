use super::*;
use crate::chars::{is_field_content, is_token_string};
use crate::table::Overlap;
use proptest::prelude::*;

/// The head and the body, from output that arrives in pieces of `step` bytes.
fn read(bytes: &[u8], step: usize) -> Result<(ScriptHead, Vec<u8>), ScriptFault> {
    let (mut parser, mut head) = (ScriptHeadParser::new(), ScriptHead::new());
    let mut end = 0;
    loop {
        match parser.parse(&mut head, &bytes[..end]) {
            ScriptProgress::Done { consumed } => return Ok((head, bytes[consumed..].to_vec())),
            ScriptProgress::Refused(fault) => return Err(fault),
            ScriptProgress::NeedMore if end == bytes.len() => return Err(parser.end_of_input()),
            ScriptProgress::NeedMore => end = bytes.len().min(end.saturating_add(step)),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Status, body and X- fields, as in a row of recorded.txt.
pub(crate) fn seen(head: &mut ScriptHead, body: &[u8]) -> (u16, Option<Vec<u8>>, String) {
    head.fields.compress(Overlap::Merge);
    let is_valid = head.fields.iter().all(|(name, value)| {
        is_token_string(name) && value.iter().all(|byte| is_field_content(*byte))
    });
    if !is_valid {
        return (500, None, String::new());
    }
    let status = head.status.unwrap_or(200);
    let status = if crate::status::is_response(status) { status } else { 500 };
    let own = head.fields.iter().filter(|(name, _)| name.starts_with(b"X-"));
    let fields = own.map(|(name, value)| format!("{}={}", text(name), text(value).trim_end()));
    let body = if crate::status::is_header_only(status) && status > 199 { b"" } else { body };
    (status, Some(body.to_vec()), fields.collect::<Vec<_>>().join(","))
}

// Every row of recorded.txt is what a client of the real Apache 2.4.71 saw.
#[test]
fn answers_are_apaches() {
    for row in crate::recorded_tests::rows(include_str!("recorded.txt")) {
        let (status, body, fields) = match read(&row.bytes, usize::MAX) {
            Ok((mut head, body)) => seen(&mut head, &body),
            Err(fault) => (fault.status(), None, String::new()),
        };
        let shown = text(row.bytes.get(..60).unwrap_or(&row.bytes));
        assert_eq!((status, body, fields), (row.status, row.body, row.fields), "{shown:?}");
    }
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for row in crate::recorded_tests::rows(include_str!("recorded.txt")) {
        let whole = read(&row.bytes, usize::MAX);
        assert_eq!(read(&row.bytes, 1), whole);
        for cut in 1..row.bytes.len().min(200) {
            assert_eq!(read(&row.bytes, cut), whole);
        }
    }
}

#[test]
fn fields_are_sorted_by_their_meaning() {
    let (mut head, body) = read(
        b"Content-type: Text/HTML; A=B \r\nStatus: 404 Gone\nLast-Modified: Thu, 01 Jan 1970 \
        00:00:09 GMT\nSet-Cookie: a\nset-cookie: b\nLocation: /1\nlocation: /2\nX: 1\nX: 2\n\nabc",
        usize::MAX,
    )
    .unwrap();
    assert_eq!((head.status, head.status_line.as_slice()), (Some(404), b"404 Gone".as_slice()));
    assert_eq!(head.content_type.as_deref(), Some(b"text/html; A=B".as_slice()));
    assert_eq!((head.last_modified, &head.invalid_date), (Some(9), &None));
    assert_eq!((head.cookies.len(), head.own.len(), head.fields.len()), (2, 1, 2));
    assert_eq!(head.own.get(b"Location"), Some(b"/2".as_slice()));
    assert_eq!(body, b"abc");
    head.clear();
    assert_eq!(head, ScriptHead::new());
    let (head, _) = read(b"Status: 99999999 many and more and more\n\n", 9).unwrap();
    let invalid = head.invalid_status.unwrap();
    assert_eq!((head.status, invalid.len(), head.status_line.len()), (Some(65_535), 30, 0));
    let (head, _) = read(b"Status: 700 x\nStatus: 404 y\n\n", 9).unwrap();
    assert_eq!((head.status, head.invalid_status), (Some(404), Some("700 x".into())));
    for (line, shown) in [("418", "418 "), ("404", ""), ("418x", ""), ("418 x", "418 x")] {
        let (head, _) = read(format!("Status: {line}\n\n").as_bytes(), 9).unwrap();
        assert_eq!(text(&head.status_line), shown);
    }
    let (head, _) = read(b"Status: 700 x\n\n", 9).unwrap();
    assert_eq!((head.status, head.invalid_status), (Some(700), Some("700 x".into())));
}

#[test]
fn limits_have_names() {
    let fault = |bytes: &[u8]| read(bytes, usize::MAX).unwrap_err();
    let long = |len: usize| [b"X: ".as_slice(), &vec![b'v'; len - 3], b"\r\n\r\n"].concat();
    assert!(read(&long(LINE_BYTES), usize::MAX).is_ok());
    assert_eq!(fault(&long(LINE_BYTES + 1)), ScriptFault::Empty);
    assert_eq!(fault(&[b"A: b\n", &*long(LINE_BYTES + 1)].concat()), ScriptFault::Premature);
    assert_eq!(fault(&[b'\r'; HEAD_BYTES]), ScriptFault::TooLarge);
    assert!(read(&[&b"A:\n".repeat(FIELDS), b"\n".as_slice()].concat(), usize::MAX).is_ok());
    assert_eq!(fault(&b"A:\n".repeat(FIELDS + 1)), ScriptFault::TooLarge);
    let malformed = fault(b"A: b\nsome text\n\n");
    assert_eq!(malformed, ScriptFault::Malformed("some text".into()));
}

#[test]
fn the_end_of_a_head_in_output() {
    for (bytes, found) in [
        ("A: b\r\n\r\nx", Some(8)),
        ("A: b\n\nx", Some(6)),
        ("A: b\n\r\nx", None),
        ("A: b\r\n\nx", None),
        ("\r\n\r\nx", Some(4)),
        ("\nx", None),
    ] {
        assert_eq!(EndOfHead::default().find(bytes.as_bytes()), found, "{bytes:?}");
        for cut in 0..bytes.len() {
            let (mut end, (before, after)) = (EndOfHead::default(), bytes.split_at(cut));
            let first = end.find(before.as_bytes());
            let whole = first.or_else(|| end.find(after.as_bytes()).map(|at| at + cut));
            assert_eq!(whole, found, "{bytes:?} {cut}");
        }
    }
}

proptest! {
    #[test]
    fn pieces_are_as_the_whole(
        parts in prop::collection::vec(prop::sample::select(vec![
            "A: b", "Status: 404 x", ":", "\r", "\n", "\r\n", "\0", " ", "Content-Type: X;Y",
            "bogus",
        ]), 0..14),
        step in 1usize..9,
    ) {
        let bytes = parts.concat();
        prop_assert_eq!(read(bytes.as_bytes(), step), read(bytes.as_bytes(), usize::MAX));
    }
}
