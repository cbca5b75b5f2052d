//! Records of FastCGI: decoding in pieces equals decoding at once; written parameters decode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::fastcgi::{
    EndRequest, Event, Fault, HEADER_BYTES, PARAMS_RECORD_BYTES, Pairs, RecordDecoder, write_params,
};

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else { return };
    let step = usize::from(*step).max(1);
    let takes_values = choice & 1 == 0;
    assert_eq!(read(bytes, step, takes_values), read(bytes, usize::MAX, takes_values));

    let mut pairs = Pairs::new(bytes);
    let found: Vec<_> = pairs.by_ref().collect();
    let mut out = Vec::new();
    let Ok(skipped) = write_params(&mut out, found.iter().copied()) else { return };
    assert_eq!(skipped.0, 0);
    let (mut rest, mut decoded) = (out.as_slice(), Vec::new());
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        assert!(len <= PARAMS_RECORD_BYTES);
        let mut pairs = Pairs::new(&after[..len]);
        decoded.extend(pairs.by_ref());
        assert!(pairs.is_whole());
        rest = &after[len..];
    }
    assert_eq!(decoded, found);
});

type Said = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, Option<EndRequest>);

fn read(bytes: &[u8], step: usize, takes_values: bool) -> (Said, Option<Fault>) {
    let mut decoder = RecordDecoder::new(takes_values);
    let mut said = Said::default();
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
                said.0.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Event::Stderr { consumed, len }) => {
                at += consumed;
                said.1.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Event::Values { consumed, len }) => {
                at += consumed;
                said.2.extend_from_slice(&bytes[at - len..at]);
            }
            Ok(Event::EndOfStdout { consumed }) => {
                at += consumed;
                said.3.push(0);
            }
            Ok(Event::Ignored { consumed, kind }) => {
                at += consumed;
                said.3.push(kind);
            }
            Ok(Event::End { consumed, end }) => {
                assert!(at + consumed <= bytes.len());
                said.4 = Some(end);
                return (said, None);
            }
            Err(fault) => return (said, Some(fault)),
        }
    }
}
