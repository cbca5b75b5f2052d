//! Frames of a WSGI worker: decoding in pieces equals decoding at once; heads have valid fields.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::wsgi::{DATA_BYTES, Event, FrameDecoder, LOG_BYTES, ResponseHead, WsgiFault};

const HEAD_BYTES: usize = 512;

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let step = usize::from(*step).max(1);
    assert_eq!(read(bytes, step), read(bytes, usize::MAX));
    if let Ok(head) = ResponseHead::parse(bytes) {
        assert!((200..=999).contains(&head.status));
        for (name, value) in head.fields {
            assert!(!name.is_empty() && !name.contains(&b':') && !name.contains(&b' '));
            assert!(!value.contains(&b'\r') && !value.contains(&b'\n') && !value.contains(&0));
        }
    }
});

/// The events with their contents; pieces of data are joined.
fn read(bytes: &[u8], step: usize) -> (Vec<u8>, Option<WsgiFault>) {
    let mut decoder = FrameDecoder::new(HEAD_BYTES);
    let (mut at, mut end, mut seen) = (0, 0, Vec::new());
    loop {
        let event = match decoder.decode(&bytes[at..end]) {
            Ok(event) => event,
            Err(fault) => return (seen, Some(fault)),
        };
        let (kind, consumed, len) = match event {
            Event::NeedMore { .. } if end == bytes.len() => return (seen, None),
            Event::NeedMore { consumed } => {
                at += consumed;
                end = bytes.len().min(end.saturating_add(step));
                continue;
            }
            Event::Head { consumed, len } => (Some(b'H'), consumed, len),
            Event::Data { consumed, len } => (None, consumed, len),
            Event::Log { consumed, len } => (Some(b'L'), consumed, len),
            Event::Wanted { consumed } => (Some(b'G'), consumed, 0),
            Event::Answer { consumed, len } => (Some(b'A'), consumed, len),
            Event::Failed { consumed, status } => {
                assert!((400..600).contains(&status));
                (Some(b'F'), consumed, 0)
            }
            Event::Retry { consumed } => (Some(b'R'), consumed, 0),
            Event::End { consumed } => (Some(b'E'), consumed, 0),
        };
        assert!(len <= DATA_BYTES.max(LOG_BYTES) && len <= consumed);
        at += consumed;
        assert!(at <= end);
        seen.extend(kind);
        seen.extend_from_slice(&bytes[at - len..at]);
    }
}
