//! Dates: a parsed date, formatted and parsed again, is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::date;

fuzz_target!(|input: &[u8]| {
    if let Some(seconds) = date::parse(input) {
        assert_eq!(date::parse(&date::format(seconds)), Some(seconds));
    }
    if let Some(bytes) = input.first_chunk::<8>() {
        let seconds = i64::from_le_bytes(*bytes);
        assert_eq!(date::format(seconds).len(), date::DATE_BYTES);
    }
});
