//! Responses of a backend: parsing in pieces equals parsing at once; what goes on is well-formed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::HeadLimits;
use wire::chunked::Step;
use wire::response::{
    BadHeader, Dialect, Fault, Framing, ResponseBody, ResponseHead, ResponseParser,
    ResponseProgress, ResponseRules,
};

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else { return };
    let defaults = ResponseRules::default();
    let rules = ResponseRules {
        strict: choice & 1 != 0,
        bad_header: match choice >> 1 & 3 {
            0 | 3 => BadHeader::IsError,
            1 => BadHeader::Ignore,
            _ => BadHeader::StartBody,
        },
        dialect: if choice >> 1 & 3 == 3 { Dialect::Uwsgi } else { Dialect::Http },
        upgrade: (choice & 8 != 0).then_some(b"websocket"),
        is_of_proxy: choice & 16 != 0,
        line_bytes: if choice & 32 != 0 { 60 } else { defaults.line_bytes },
        head_bytes: if choice & 64 != 0 { 200 } else { defaults.head_bytes },
        fields: if choice & 32 != 0 { 4 } else { defaults.fields },
    };
    let is_head = choice & 128 != 0;
    let whole = read(bytes, usize::MAX >> 1, is_head, &rules);
    assert_eq!(read(bytes, usize::from(*step).max(1), is_head, &rules), whole);
});

/// The fields and the body, or what is wrong.
fn read(
    bytes: &[u8],
    step: usize,
    is_head: bool,
    rules: &ResponseRules<'_>,
) -> Result<(Vec<u8>, Vec<u8>, Option<Fault>), Fault> {
    let (mut parser, mut head) = (ResponseParser::new(), ResponseHead::new());
    let (mut start, mut end) = (0, 0);
    let consumed = loop {
        match parser.parse(&mut head, &bytes[start..end], rules) {
            ResponseProgress::Done { consumed } => break consumed,
            ResponseProgress::Refused(fault) => return Err(*fault),
            ResponseProgress::Interim { consumed } => {
                assert!(consumed > 0 && consumed <= end - start);
                start += consumed;
                head.clear();
                parser.next();
            }
            ResponseProgress::NeedMore if end == bytes.len() => {
                return Err(parser.end_of_input(rules.dialect));
            }
            ResponseProgress::NeedMore => end = bytes.len().min(end.saturating_add(step)),
        }
    };
    let buf = &bytes[start..];
    assert!(consumed <= buf.len() && consumed <= rules.head_bytes);
    assert!(head.fields.len() <= rules.fields);
    head.check(buf)?;
    let framing = head.framing(buf, is_head)?;
    let mut fields = Vec::new();
    head.write_fields(buf, &mut fields);
    // What goes on is one field a line, whatever arrived.
    let kept = head.fields.iter().filter(|field| field.is_kept).count();
    assert_eq!(fields.iter().filter(|byte| **byte == b'\n').count(), kept);
    assert_eq!(fields.iter().filter(|byte| **byte == b'\r').count(), kept);
    assert!(kept == 0 || fields.ends_with(b"\r\n"));
    let mut body = head.preread(buf).to_vec();
    let fault = read_body(&buf[consumed..], framing, step, &mut body);
    Ok((fields, body, fault))
}

fn read_body(bytes: &[u8], framing: Framing, step: usize, body: &mut Vec<u8>) -> Option<Fault> {
    let mut reader = ResponseBody::new(HeadLimits::default(), true);
    reader.start(framing);
    let (mut at, mut end) = (0, 0);
    loop {
        match reader.read(&bytes[at..end]) {
            Ok(Step::Data { consumed, len }) => {
                at += consumed;
                body.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Step::Done { .. }) => return None,
            Ok(Step::NeedMore { .. }) if end == bytes.len() => return reader.end_of_input().err(),
            Ok(Step::NeedMore { consumed }) => {
                at += consumed;
                end = bytes.len().min(end.saturating_add(step));
            }
            Err(fault) => return Some(fault),
        }
    }
}
