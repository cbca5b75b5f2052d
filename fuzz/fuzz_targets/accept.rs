//! Accept lists, token lists, entity tag lists.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{accept, etag, list};

fuzz_target!(|input: &[u8]| {
    let entries = accept::parse(input);
    assert!(entries.len() <= input.len());
    assert!(entries.iter().all(|entry| entry.quality_milli <= 1000));
    for item in list::items(input) {
        assert!(!item.is_empty());
    }
    list::contains_token(input, b"close");
    list::contains_item(input, b"accept-encoding");
    if etag::list_has_strong(input, b"\"a\"") {
        assert!(etag::list_has_weak(input, b"W/\"a\""));
    }
});
