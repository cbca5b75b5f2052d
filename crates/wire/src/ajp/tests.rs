use super::*;
use crate::chars::{is_field_content, is_token_string};
use crate::status::{is_header_only, is_valid};
use proptest::prelude::*;

/// What a container says before it closes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said {
    head: Option<(u16, Option<Vec<u8>>)>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    asked: usize,
    reuse: Option<bool>,
}

/// Decodes packets that arrive in pieces of `step` bytes.
fn read(bytes: &[u8], step: usize, packet_bytes: usize) -> (Said, Option<AjpFault>) {
    let (mut decoder, mut said) = (PacketDecoder::new(packet_bytes), Said::default());
    let (mut at, mut end) = (0, 0);
    loop {
        match decoder.decode(&bytes[at..end]) {
            Ok(AjpEvent::NeedMore) if end == bytes.len() => {
                return (said, Some(decoder.end_of_input(&bytes[at..])));
            }
            Ok(AjpEvent::NeedMore) => end = bytes.len().min(end.saturating_add(step)),
            Ok(AjpEvent::Headers { consumed, headers }) => {
                at += consumed;
                said.head = Some((headers.status, headers.message.map(<[u8]>::to_vec)));
                let fields = headers.fields();
                said.fields = fields.map(|pair| (pair.0.to_vec(), pair.1.to_vec())).collect();
            }
            Ok(AjpEvent::Body { consumed, bytes }) => {
                at += consumed;
                said.body.extend_from_slice(bytes);
            }
            Ok(AjpEvent::GetBody { consumed, .. }) => {
                at += consumed;
                said.asked += 1;
            }
            Ok(AjpEvent::End { reuse, .. }) => {
                said.reuse = Some(reuse);
                return (said, None);
            }
            Ok(AjpEvent::Pong { .. }) => panic!("no ping was sent"),
            Err(fault) => return (said, Some(fault)),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// What a client of Apache would see.
fn answer(bytes: &[u8]) -> (u16, bool, Option<Vec<u8>>, String) {
    let (said, fault) = read(bytes, usize::MAX, PACKET_BYTES);
    let is_valid_field = |(name, value): &(Vec<u8>, Vec<u8>)| {
        is_token_string(name) && value.iter().all(|byte| is_field_content(*byte))
    };
    let status = said.head.as_ref().map_or(200, |head| head.0);
    let is_refused = fault.is_some() && said.body.is_empty();
    if is_refused || !is_valid(status) || !said.fields.iter().all(is_valid_field) {
        return (500, true, None, String::new());
    }
    let own = said.fields.iter().filter(|(name, _)| name.starts_with(b"X-"));
    let fields: Vec<_> = own.map(|pair| format!("{}={}", text(&pair.0), text(&pair.1))).collect();
    let body = if is_header_only(status) { Vec::new() } else { said.body };
    (status, fault.is_none(), Some(body), fields.join(","))
}

// Every row of recorded.txt is what a client of the real Apache 2.4.71 saw. A body before its head
// is not among them: Apache sends bytes of another packet then.
#[test]
fn answers_are_apaches() {
    for row in crate::recorded_tests::rows(include_str!("recorded.txt")) {
        let shown = row.bytes.get(..80).unwrap_or(&row.bytes).escape_ascii().to_string();
        let found = answer(&row.bytes);
        let expected = (row.status, row.is_whole, row.body, row.fields);
        assert_eq!(format!("{found:.200?}"), format!("{expected:.200?}"), "{shown}");
    }
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for row in crate::recorded_tests::rows(include_str!("recorded.txt")) {
        let whole = read(&row.bytes, usize::MAX, PACKET_BYTES);
        for cut in 1..row.bytes.len().min(150) {
            assert_eq!(read(&row.bytes, cut, PACKET_BYTES), whole);
        }
    }
}

fn packet(content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).unwrap().to_be_bytes();
    [b"AB".as_slice(), &len, content].concat()
}

#[test]
fn faults_have_apaches_numbers() {
    let lines = |bytes: &[u8]| {
        let lines = read(bytes, 7, PACKET_BYTES).1.unwrap().lines();
        let shown = lines.into_iter().map(|line| format!("AH{:05}: {}", line.number, line.text));
        shown.collect::<Vec<_>>()
    };
    let failed = "AH00992: ajp_read_header: ajp_ilink_receive failed";
    assert_eq!(lines(b"AB\0"), ["AH01030: ajp_ilink_receive() can't receive header", failed]);
    let length = "AH01032: ajp_ilink_receive() error while receiving message body of length 4";
    assert_eq!(lines(b"AB\0\x05\x05"), [length, failed]);
    let signature = "AH01080: ajp_msg_check_header() got bad signature 5858";
    let bad = "AH01031: ajp_ilink_receive() received bad header";
    assert_eq!(lines(b"XX\0\x02\x05\x01"), [signature, bad, failed]);
    let too_big = "AH01081: ajp_msg_check_header() incoming message is too big 8189, max is 8188";
    assert_eq!(lines(b"AB\x1f\xfd"), [too_big, bad, failed]);
    let empty = "AH00993: ajp_read_header: ajp_msg_peek_uint8 failed";
    let overflow = |function: &str, numbers| {
        format!("AH03229: {function}(): BufferOverflowException {numbers}")
    };
    assert_eq!(lines(&packet(b"")), [&overflow("ajp_msg_peek_uint8", "4 4"), empty]);
    let code = "AH00984: ajp_unmarshal_response: No such sc (0000a00c)";
    assert_eq!(lines(&packet(b"\x04\0\xc8\0\x02OK\0\0\x01\xa0\x0c\0\x01w\0")), [code]);
    let name = "AH00985: ajp_unmarshal_response: Null header name";
    let head = packet(b"\x04\0\xc8\0\0\0\0\x01\0\x05");
    assert_eq!(lines(&head), [&overflow("ajp_msg_get_string", "14 14"), name]);
    let chunk = |part: &[u8]| [packet(b"\x04\0\xc8\0\0\0\0\0"), packet(part)].concat();
    let why = "Length of chunk is 4, expected length is 3.";
    let why = format!("AH00998: ajp_parse_data: Wrong chunk length. {why}");
    assert_eq!(lines(&chunk(b"\x03\0\x04abc\0")), [why]);
    assert_eq!(lines(&chunk(b"\x03\0\0")), ["AH10546: ajp_parse_data: Message too small"]);
    assert_eq!(lines(&chunk(b"\x03\0")), [overflow("ajp_msg_get_uint16", "5 6")]);
    // Apache sends three bytes of the next packet.
    let early = read(&packet(b"\x03\0\x03abc\0"), 7, PACKET_BYTES).1;
    assert_eq!(early, Some(AjpFault::Unexpected(3)));
}

#[test]
fn a_ping_is_answered() {
    assert_eq!(CPING, [0x12, 0x34, 0, 1, 10]);
    let mut decoder = PacketDecoder::new(PACKET_BYTES);
    assert_eq!(decoder.decode(&packet(b"\x09")), Err(AjpFault::Unexpected(9)));
    decoder.expect_pong();
    assert_eq!(decoder.decode(&packet(b"\x09")), Ok(AjpEvent::Pong { consumed: 5 }));
    assert_eq!(decoder.decode(&packet(b"\x05\x01")), Err(AjpFault::Unexpected(5)));
    decoder.expect_response();
    let end = AjpEvent::End { consumed: 6, reuse: true };
    assert_eq!(decoder.decode(&packet(b"\x05\x01")), Ok(end));
    assert_eq!(decoder.decode(&packet(b"\x05\x01")), Err(AjpFault::Unexpected(5)));
    decoder.expect_response();
    let most = AjpEvent::GetBody { consumed: 7, most: Some(8186) };
    assert_eq!(decoder.decode(&packet(b"\x06\x1f\xfa")), Ok(most));
}

const REQUEST: ForwardRequest<'_> = ForwardRequest {
    method: b"POST",
    protocol: b"HTTP/1.1",
    path: b"/x",
    remote_addr: b"127.0.0.1",
    remote_host: None,
    server_name: b"h",
    server_port: 49137,
    ssl: None,
    secret: Some(b"s3cret"),
    user: None,
    auth_type: None,
    query: Some(b"q=1"),
    route: None,
    remote_port: 54102,
    local_addr: b"127.0.0.1",
};

type Pair<'p> = (&'p [u8], &'p [u8]);

fn write(request: &ForwardRequest<'_>, fields: &[Pair<'_>], own: &[Pair<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    request.write(&mut out, PACKET_BYTES, fields.iter().copied(), own.iter().copied()).unwrap();
    out
}

// Recorded from Apache 2.4.71.
#[test]
fn a_request_is_written_as_apache_writes_it() {
    let fields: [Pair<'_>; 5] = [
        (b"Host", b"h"),
        (b"Connection", b"close"),
        (b"Content-Length", b"10"),
        (b"X-Big", b"v"),
        (b"accept-language", b"en"),
    ];
    let mut out = write(&REQUEST, &fields, &[(b"foo", b"bar")]);
    out.extend(body_header(10));
    out.extend(b"0123456789");
    out.extend(END_OF_BODY);
    let expected = b"\x124\0\xab\x02\x04\0\x08HTTP/1.1\0\0\x02/x\0\0\x09127.0.0.1\0\xff\xff\0\
        \x01h\0\xbf\xf1\0\0\x05\xa0\x0b\0\x01h\0\xa0\x06\0\x05close\0\xa0\x08\0\x0210\0\
        \0\x05X-Big\0\0\x01v\0\xa0\x04\0\x02en\0\x0c\0\x06s3cret\0\x05\0\x03q=1\0\
        \x0a\0\x0fAJP_REMOTE_PORT\0\0\x0554102\0\x0a\0\x0eAJP_LOCAL_ADDR\0\0\x09127.0.0.1\0\
        \x0a\0\x03foo\0\0\x03bar\0\xff\x124\0\x0c\0\x0a0123456789\x124\0\x02\0\0";
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

// Recorded from Apache 2.4.71: FOO and PATCH are attributes, HEAD has a code.
#[test]
fn a_method_without_a_code_is_an_attribute() {
    for (method, code) in [("GET", 2), ("HEAD", 3), ("PATCH", 255), ("FOO", 255), ("", 255)] {
        let request = ForwardRequest { method: method.as_bytes(), ..REQUEST };
        let out = write(&request, &[], &[]);
        assert_eq!(out[5], code, "{method}");
        let stored =
            [b"\x05\0\x03q=1\0\x0d\0".as_slice(), &[method.len() as u8], method.as_bytes()]
                .concat();
        let has_stored = out.windows(stored.len()).any(|window| window == stored);
        assert_eq!(has_stored, code == 255, "{method}");
    }
}

#[test]
fn a_request_with_tls() {
    let ssl = Ssl { cert: b"C", key_size: Some(256), protocol: b"TLSv1.3", ..Ssl::default() };
    let request = ForwardRequest { ssl: Some(ssl), user: Some(b"u"), route: Some(b"r"), ..REQUEST };
    let out = write(&request, &[], &[]);
    let attributes =
        b"\x03\0\x01u\0\x05\0\x03q=1\0\x06\0\x01r\0\x07\0\x01C\0\x0b\x01\0\x0a\0\x10AJP_SSL_\
        PROTOCOL\0\0\x07TLSv1.3\0\x0a\0\x0fAJP_REM";
    assert!(out.windows(attributes.len()).any(|window| window == attributes));
}

#[test]
fn a_packet_has_a_limit() {
    let bare = write(&REQUEST, &[], &[]).len();
    let mut out = b"x".to_vec();
    let mut of = |packet_bytes, len| {
        let value = vec![b'v'; len];
        let fields: [Pair<'_>; 1] = [(b"Host", &value)];
        out.truncate(1);
        let written = REQUEST.write(&mut out, packet_bytes, fields.into_iter(), [].into_iter());
        (written, out.len())
    };
    assert_eq!(of(PACKET_BYTES, PACKET_BYTES - bare - 5), (Ok(()), PACKET_BYTES + 1));
    let full = |why: &AjpOverflow| (why.log_number(), why.room());
    let (written, len) = of(PACKET_BYTES, PACKET_BYTES - bare - 4);
    let room = "ajp_msg_append_uint8(): BufferOverflowException 4 8192".to_owned();
    assert_eq!((written.as_ref().map_err(full), len), (Err((982, room)), 1));
    let (written, len) = of(usize::MAX, 70_000);
    let room = "ajp_msg_append_cvt_string(): BufferOverflowException 4 47".to_owned();
    assert_eq!((written.as_ref().map_err(full), len), (Err((971, room)), 1));
    assert_eq!(
        written.unwrap_err().to_string(),
        "ajp_marshal_into_msgb: Error appending the header value"
    );
}

proptest! {
    #[test]
    fn pieces_are_as_the_whole(
        parts in prop::collection::vec(prop::sample::select(vec![
            b"AB\0\x08\x04\0\xc8\0\0\0\0\0".as_slice(), b"AB\0\x07\x03\0\x03abc\0",
            b"AB\0\x0f\x04\0\xc8\0\x02OK\0\0\x01\xa0\x01\0\0\0", b"AB\0\x04\x03\0\0\0",
            b"AB\0\x03\x06\0\x09", b"AB\0\x02\x05\x01", b"\x124", b"AB\0", b"\x04",
            b"\0", b"\xff\xff", b"\xa0\x01",
        ]), 0..8),
        step in 1usize..9,
        packet_bytes in 0usize..40,
    ) {
        let bytes = parts.concat();
        for packet_bytes in [packet_bytes, PACKET_BYTES] {
            let whole = read(&bytes, usize::MAX, packet_bytes);
            prop_assert_eq!(read(&bytes, step, packet_bytes), whole);
        }
    }
}
