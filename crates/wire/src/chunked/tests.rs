use super::*;
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { line_bytes: 200, field_bytes: 100, fields: 10 };

/// Decodes a body that arrives in pieces of `step` bytes. The error is the status of the response,
/// or 0 if the body is incomplete.
fn decode(bytes: &[u8], step: usize, strict: bool) -> Result<(Vec<u8>, Table), u16> {
    let mut decoder = Decoder::new(LIMITS, strict);
    let (mut body, mut held) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(step.max(1)) {
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
                Step::Done { .. } => return Ok((body, decoder.trailers().clone())),
            }
        }
    }
    Err(0)
}

fn status(bytes: &str, strict: bool) -> u16 {
    match decode(bytes.as_bytes(), 4096, strict) {
        Ok((body, _)) if body == b"abc" => 200,
        Ok((body, _)) => panic!("{body:?}"),
        Err(status) => status,
    }
}

// Each row is Apache 2.4.71's response to a CGI POST: with Strict, and with Unsafe.
#[test]
fn answers_are_apaches() {
    let ext_96 = format!("3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(95));
    let ext_97 = format!("3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(97));
    let zeros = format!("{}3\r\nabc\r\n0\r\n\r\n", "0".repeat(40));
    let blanks_10 = format!("3{}\r\nabc\r\n0\r\n\r\n", " ".repeat(10));
    let blanks_11 = format!("3{}\r\nabc\r\n0\r\n\r\n", " ".repeat(11));
    let long_trailer = format!("3\r\nabc\r\n0\r\nX: {}\r\n\r\n", "v".repeat(200));
    let many_trailers = format!("3\r\nabc\r\n0\r\n{}\r\n", "X: v\r\n".repeat(11));
    for (bytes, strict, lenient) in [
        ("3\r\nabc\r\n0\r\n\r\n", 200, 200),
        ("3\nabc\r\n0\r\n\r\n", 400, 200),
        ("3\r\nabc\n0\r\n\r\n", 400, 200),
        ("3\r\nabc\r\n0\n\r\n", 400, 200),
        ("3\r\nabc\r\n0\r\n\n", 400, 200),
        ("3;a=\"b\\\"c\"\r\nabc\r\n0\r\n\r\n", 200, 200),
        ("3 \r\nabc\r\n0\r\n\r\n", 200, 200),
        ("3\t;a\r\nabc\r\n0\r\n\r\n", 200, 200),
        (" 3\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("3 x\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("003\r\nabc\r\n000;x\r\n\r\n", 200, 200),
        ("FFFFFFFFFFFFFFFF\r\nabc", 413, 413),
        ("FFFFFFFFFFFFFFFFF\r\nabc", 413, 413),
        ("0x3\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("-3\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("g\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("3\r\nabcd\r\n0\r\n\r\n", 400, 400),
        ("3\rabc\r\n0\r\n\r\n", 400, 400),
        ("3;a\u{1}\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("3;a\t\r\nabc\r\n0\r\n\r\n", 200, 200),
        ("3;a\rb\r\nabc\r\n0\r\n\r\n", 400, 400),
        ("3;\u{e4}\r\nabc\r\n0\r\n\r\n", 200, 200),
        ("3\r\nabc\r\n0\r\nX-T: v\r\n\r\n", 200, 200),
        ("3\r\nabc\r\n0\r\nX T\r\n\r\n", 400, 400),
        ("3\r\nabc\r\n0\r\nX-T: v\n\r\n", 400, 200),
        (&ext_96, 200, 200),
        (&ext_97, 413, 413),
        (&zeros, 200, 200),
        (&blanks_10, 200, 200),
        (&blanks_11, 400, 400),
        (&long_trailer, 400, 400),
        (&many_trailers, 400, 400),
    ] {
        assert_eq!(status(bytes, true), strict, "strict {bytes:?}");
        assert_eq!(status(bytes, false), lenient, "unsafe {bytes:?}");
    }
    // 7FFFFFFFFFFFFFFF is a valid size; Apache waits for the data.
    let mut decoder = Decoder::new(LIMITS, true);
    let step = decoder.decode(b"7FFFFFFFFFFFFFFF\r\nabc");
    assert_eq!(step, Ok(Step::Data { consumed: 21, len: 3 }));
}

#[test]
fn trailers_are_merged_by_name() {
    let (_, trailers) = decode(b"0\r\nX-T: v\r\nx-t: w\r\n\r\nnext", 3, true).unwrap();
    assert_eq!(trailers.get(b"X-T"), Some(b"v, w".as_slice()));
}

#[test]
fn a_decoder_is_recycled() {
    let mut decoder = Decoder::new(LIMITS, true);
    for _ in 0..2 {
        assert_eq!(decoder.decode(b"0\r\nA: b\r\n\r\nGET"), Ok(Step::Done { consumed: 11 }));
        assert_eq!(decoder.trailers().len(), 1);
        decoder.reset();
        assert!(!decoder.is_done() && decoder.trailers().is_empty());
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6),
        step in 1usize..400,
    ) {
        let mut bytes = Vec::new();
        for piece in &pieces {
            write_chunk(&mut bytes, piece);
        }
        bytes.extend_from_slice(LAST_CHUNK);
        let (body, _) = decode(&bytes, step, true).unwrap();
        prop_assert_eq!(body, pieces.concat());
    }

    #[test]
    fn pieces_are_as_the_whole(
        bytes in prop::collection::vec(
            prop::sample::select(b"0123aF;\r\r\n\n \tx:-\0".to_vec()), 0..60),
        step in 1usize..20,
        strict: bool,
    ) {
        prop_assert_eq!(decode(&bytes, step, strict), decode(&bytes, 4096, strict));
    }
}
