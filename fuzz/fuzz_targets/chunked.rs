//! Chunked bodies: decoding in pieces equals decoding at once; encoded bodies decode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::HeadLimits;
use wire::chunked::{Decoder, LAST_CHUNK, Step, write_chunk};

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else { return };
    let strict = choice & 1 == 0;
    let step = usize::from(*step).max(1);
    assert_eq!(decode(bytes, step, strict), decode(bytes, usize::MAX, strict));

    let mut encoded = Vec::new();
    for piece in bytes.chunks(step) {
        write_chunk(&mut encoded, piece);
    }
    encoded.extend_from_slice(LAST_CHUNK);
    assert_eq!(decode(&encoded, step, strict), Ok((bytes.to_vec(), true)));
});

/// The body and whether it is complete, or the status of the error.
fn decode(bytes: &[u8], step: usize, strict: bool) -> Result<(Vec<u8>, bool), u16> {
    let limits = HeadLimits { line_bytes: 200, field_bytes: 60, fields: 4 };
    let mut decoder = Decoder::new(limits, strict);
    let (mut body, mut held) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(step) {
        held.extend_from_slice(piece);
        loop {
            match decoder.decode(&held).map_err(|error| error.status())? {
                Step::Data { consumed, len } => {
                    body.extend_from_slice(&held[consumed - len..consumed]);
                    held.drain(..consumed);
                }
                Step::NeedMore { consumed } => {
                    held.drain(..consumed);
                    break;
                }
                Step::Done { .. } => return Ok((body, true)),
            }
        }
    }
    Ok((body, false))
}
