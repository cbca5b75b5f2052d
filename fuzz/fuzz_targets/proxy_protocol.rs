//! Headers of the PROXY protocol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::proxy_protocol::{HEADER_BYTES_MAX, Progress, decode};

fuzz_target!(|input: &[u8]| {
    let whole = decode(input);
    if let Progress::Done { consumed, .. } = whole {
        assert!(consumed <= input.len() && consumed <= HEADER_BYTES_MAX);
        // What follows the header changes nothing, and no part of it is one.
        assert_eq!(decode(&input[..consumed]), whole);
        assert_eq!(decode(&input[..consumed - 1]), Progress::NeedMore);
    }
    if whole == Progress::NeedMore {
        assert!(input.len() < HEADER_BYTES_MAX);
    }
});
