//! SCGI requests: what is written reads as the fields that were given, by the specification.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::scgi::{FIELDS_BYTES, write_request};

fuzz_target!(|input: (u64, Vec<(Vec<u8>, Vec<u8>)>)| {
    let (content_length, given) = input;
    let pairs = given.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    let mut out = b"before".to_vec();
    if write_request(&mut out, content_length, pairs.clone()).is_err() {
        assert_eq!(out, b"before");
        return;
    }
    let text = out.strip_prefix(b"before").unwrap_or_default();
    let colon = text.iter().position(|byte| *byte == b':').expect("a length");
    let digits = std::str::from_utf8(&text[..colon]).expect("digits");
    let length: usize = digits.parse().expect("a length");
    assert!(length <= FIELDS_BYTES);
    let (fields, end) = text[colon + 1..].split_at(length);
    assert_eq!(end, b",");
    let fields = fields.strip_suffix(b"\0").expect("fields end with NUL");
    let read: Vec<&[u8]> = fields.split(|byte| *byte == 0).collect();
    let length = content_length.to_string();
    let own = [&b"CONTENT_LENGTH"[..], length.as_bytes(), b"SCGI", b"1"];
    let others = pairs.filter(|(name, _)| !matches!(*name, b"CONTENT_LENGTH" | b"SCGI"));
    let expected = others.flat_map(|(name, value)| [name, value]);
    assert!(own.into_iter().chain(expected).eq(read));
});
