use super::*;
use crate::script_head::{EndOfHead, ScriptHead, ScriptHeadParser, ScriptProgress};
use proptest::prelude::*;

/// Everything that a backend says before it closes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    values: Vec<u8>,
    ended_output: bool,
    ignored: Vec<u8>,
    end: Option<EndRequest>,
    rest: Vec<u8>,
}

/// Decodes records that arrive in pieces of `step` bytes.
fn read(bytes: &[u8], step: usize, takes_values: bool) -> (Said, Option<Fault>) {
    let (mut decoder, mut said) = (RecordDecoder::new(takes_values), Said::default());
    let (mut at, mut end) = (0, 0);
    loop {
        match decoder.decode(&bytes[at..end]) {
            Ok(Event::NeedMore { .. }) if end == bytes.len() => {
                return (said, Some(decoder.end_of_input()));
            }
            Ok(Event::NeedMore { consumed }) => {
                at += consumed;
                end = bytes.len().min(end.saturating_add(step));
            }
            Ok(Event::Stdout { consumed, len }) => {
                at += consumed;
                said.stdout.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Event::Stderr { consumed, len }) => {
                at += consumed;
                said.stderr.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Event::Values { consumed, len }) => {
                at += consumed;
                said.values.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Event::EndOfStdout { consumed }) => {
                at += consumed;
                said.ended_output = true;
            }
            Ok(Event::Ignored { consumed, kind }) => {
                at += consumed;
                said.ignored.push(kind);
            }
            Ok(Event::End { consumed, end }) => {
                said.end = Some(end);
                said.rest = bytes[at + consumed..].to_vec();
                return (said, None);
            }
            Err(fault) => return (said, Some(fault)),
        }
    }
}

/// What Apache makes of it: output whose head does not end is all body.
fn answer(bytes: &[u8]) -> (u16, bool, Option<Vec<u8>>, String) {
    let (said, fault) = read(bytes, usize::MAX, false);
    let refused = |status| (status, true, None, String::new());
    let mut head = ScriptHead::new();
    let mut body = said.stdout.as_slice();
    if EndOfHead::default().find(body).is_some() {
        match ScriptHeadParser::new().parse(&mut head, body) {
            ScriptProgress::Done { consumed } => body = &body[consumed..],
            _ => return refused(500),
        }
    } else if let Some(fault) = fault {
        return refused(fault.status());
    }
    let (status, body, fields) = crate::script_head::seen(&mut head, body);
    let is_whole = body.is_none() || fault.is_none() || said.ended_output;
    (status, is_whole, body, fields)
}

// Every row of recorded.txt is what a client of the real Apache 2.4.71 saw.
#[test]
fn answers_are_apaches() {
    for row in crate::recorded_tests::rows(include_str!("recorded.txt")) {
        let shown = row.bytes.get(..80).unwrap_or(&row.bytes).escape_ascii().to_string();
        let (status, is_whole, body, fields) = answer(&row.bytes);
        let is_same = (status, is_whole, &fields) == (row.status, row.is_whole, &row.fields);
        assert!(is_same && body == row.body, "{shown}: {status} {is_whole} {fields:.60}");
    }
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for row in crate::recorded_tests::rows(include_str!("recorded.txt")) {
        for takes_values in [false, true] {
            let whole = read(&row.bytes, usize::MAX, takes_values);
            assert_eq!(read(&row.bytes, 1, takes_values), whole);
            for cut in 1..row.bytes.len().min(100) {
                assert_eq!(read(&row.bytes, cut, takes_values), whole);
            }
        }
    }
}

fn record(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
    let mut record = vec![1, kind];
    record.extend(id.to_be_bytes());
    record.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
    record.extend([padding, 0]);
    record.extend(content);
    record.resize(record.len() + usize::from(padding), 0);
    record
}

#[test]
fn faults_have_apaches_numbers() {
    let fault =
        |bytes: &[u8]| read(bytes, 7, false).1.map(|fault| (fault.log_number(), fault.to_string()));
    let of = |number, text: &str| Some((number, text.to_owned()));
    assert_eq!(fault(b""), of(1067, "Failed to read FastCGI header"));
    assert_eq!(fault(b"HTTP/1.1"), of(1068, "Got bogus version 72"));
    assert_eq!(fault(&record(6, 258, b"", 0)), of(1069, "Got bogus rid 258, expected 1"));
    assert_eq!(fault(&record(6, 1, b"abc", 0)[..10]), of(1075, "Error dispatching request"));
    assert_eq!(fault(&record(6, 1, b"abc", 3)[..12]), of(2537, "Error occurred reading padding"));
    assert_eq!(fault(&record(10, 0, b"", 0)), of(1069, "Got bogus rid 0, expected 1"));
}

#[test]
fn the_end_of_a_request() {
    let bytes = [record(3, 1, b"\0\0\x01\x02\x03xyz and more", 5), b"rest".to_vec()].concat();
    let (said, fault) = read(&bytes, 3, false);
    let end = EndRequest { app_status: 258, protocol_status: 3 };
    assert_eq!((said.end, said.rest.as_slice(), fault), (Some(end), b"rest".as_slice(), None));
    let (said, _) = read(&record(3, 1, b"\0\0\0\x07", 0), 100, false);
    assert_eq!(said.end, Some(EndRequest { app_status: 7, protocol_status: 0 }));
}

#[test]
fn a_decoder_is_recycled() {
    let mut decoder = RecordDecoder::new(false);
    let bytes = [record(6, 1, b"", 0), record(3, 1, &[9; 8], 0)].concat();
    for _ in 0..2 {
        assert_eq!(decoder.decode(&bytes), Ok(Event::EndOfStdout { consumed: 8 }));
        assert!(matches!(decoder.decode(&bytes[8..]), Ok(Event::End { consumed: 16, .. })));
        decoder.reset();
    }
}

#[test]
fn values_can_be_asked_for() {
    let mut question = Vec::new();
    write_get_values(&mut question, &[b"FCGI_MAX_CONNS", b"FCGI_MPXS_CONNS"]);
    assert_eq!(question[..8], [1, 9, 0, 0, 0, 33, 0, 0]);
    let mut pairs = Vec::new();
    write_pair(&mut pairs, b"FCGI_MAX_CONNS", b"5");
    let (said, _) = read(&record(10, 0, &pairs, 1), 1, true);
    let values: Vec<_> = Pairs::new(&said.values).collect();
    assert_eq!(values, [(b"FCGI_MAX_CONNS".as_slice(), b"5".as_slice())]);
    assert_eq!(read(&record(11, 0, b"\x09\0\0\0\0\0\0\0", 0), 1, true).0.ignored, [11]);
}

// Recorded from Apache 2.4.71, but for the parameters.
#[test]
fn a_request_is_written_as_apache_writes_it() {
    let mut out = begin_request(Role::Responder, false).to_vec();
    let long = [b'v'; 200];
    let pairs = [(b"A".as_slice(), b"bar".as_slice()), (b"HTTP_X_BIG", &long), (b"E", b"")];
    assert_eq!(write_params(&mut out, pairs.into_iter()), Ok(Skipped(0)));
    out.extend(stdin_header(10));
    out.extend(b"0123456789");
    out.extend(END_OF_STDIN);
    let mut expected =
        b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0\x01\x04\0\x01\0\xe0\0\0\x01\x03Abar\
        \x0a\x80\0\0\xc8HTTP_X_BIG"
            .to_vec();
    expected.extend(long);
    expected.extend(b"\x01\0E\x01\x04\0\x01\0\0\0\0\x01\x05\0\x01\0\x0a\0\x000123456789");
    expected.extend(b"\x01\x05\0\x01\0\0\0\0");
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(ABORT, [1, 2, 0, 1, 0, 0, 0, 0]);
    assert_eq!(begin_request(Role::Authorizer, true)[9..11], [2, 1]);
}

#[test]
fn parameters_have_limits() {
    let mut out = Vec::new();
    assert_eq!(write_params(&mut out, [].into_iter()), Ok(Skipped(0)));
    assert_eq!(out, [1, 4, 0, 1, 0, 0, 0, 0]);
    let fits = vec![b'v'; PARAMS_RECORD_BYTES - 6];
    let long = vec![b'v'; PARAMS_RECORD_BYTES - 5];
    let pairs = [(b"A".as_slice(), b"b".as_slice()), (b"B", &fits), (b"C", &long), (b"D", b"d")];
    out.clear();
    assert_eq!(write_params(&mut out, pairs.into_iter()), Ok(Skipped(1)));
    let lengths: Vec<_> = contents(&out).iter().map(Vec::len).collect();
    assert_eq!(lengths, [4, PARAMS_RECORD_BYTES, 4, 0]);
    let endless = std::iter::repeat((b"B".as_slice(), fits.as_slice()));
    out.truncate(5);
    assert_eq!(write_params(&mut out, endless), Err(ParamsError));
    assert_eq!(out.len(), 5);
}

/// The contents of records of parameters.
fn contents(mut records: &[u8]) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    while let [1, 4, 0, 1, high, low, 0, 0, rest @ ..] = records {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        contents.push(rest[..len].to_vec());
        records = &rest[len..];
    }
    assert!(records.is_empty());
    contents
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(
        pairs in prop::collection::vec((
            prop::collection::vec(any::<u8>(), 0..300), prop::collection::vec(any::<u8>(), 0..9000),
        ), 0..8),
    ) {
        let mut out = Vec::new();
        let given = pairs.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        prop_assert_eq!(write_params(&mut out, given.clone()), Ok(Skipped(0)));
        let contents = contents(&out);
        prop_assert_eq!(contents.last().map(Vec::len), Some(0));
        let mut decoded = Vec::new();
        for content in &contents {
            let mut pairs = Pairs::new(content);
            decoded.extend(pairs.by_ref());
            prop_assert!(pairs.is_whole());
        }
        prop_assert_eq!(decoded, given.collect::<Vec<_>>());
    }

    #[test]
    fn pieces_are_as_the_whole(
        records in prop::collection::vec((0u8..13, 0u16..3, 0usize..20, 0u8..9), 0..8),
        step in 1usize..30,
        cut in 0usize..9,
    ) {
        let mut bytes = Vec::new();
        for (kind, id, len, padding) in records {
            bytes.extend(record(kind, id.min(1), &vec![kind; len], padding));
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        prop_assert_eq!(read(&bytes, step, true), read(&bytes, usize::MAX, true));
    }
}
