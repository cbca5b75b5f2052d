//! uwsgi requests: what is written reads as the variables that were given. Responses are those of
//! the target `response`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::uwsgi::{Modifiers, VARIABLES_BYTES, write_request};

fuzz_target!(|input: (u8, u8, Vec<(Vec<u8>, Vec<u8>)>)| {
    let (first, second, given) = input;
    let pairs = given.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    let mut out = b"before".to_vec();
    if let Err(why) = write_request(&mut out, Modifiers { first, second }, pairs) {
        assert!(why.bytes > VARIABLES_BYTES);
        assert_eq!(out, b"before");
        return;
    }
    let packet = out.strip_prefix(b"before").unwrap_or_default();
    let (head, mut rest) = packet.split_at(4);
    assert_eq!((head[0], head[3]), (first, second));
    assert_eq!(usize::from(u16::from_le_bytes([head[1], head[2]])), rest.len());
    for text in given.iter().flat_map(|(name, value)| [name, value]) {
        let (length, after) = rest.split_at(2);
        let (read, after) = after.split_at(usize::from(u16::from_le_bytes([length[0], length[1]])));
        assert_eq!(read, text);
        rest = after;
    }
    assert!(rest.is_empty());
});
