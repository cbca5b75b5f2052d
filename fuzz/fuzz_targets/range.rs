//! Ranges lie inside the body and do not exceed it in total; conditions never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::conditional::{Validators, if_range, meets_conditions};
use wire::range::{RangeLimits, Selection, select};
use wire::{Method, Table};

fuzz_target!(|input: &[u8]| {
    let [high, low, bytes @ ..] = input else { return };
    let length = u64::from(*high) << 8 | u64::from(*low);
    let mut ranges = Vec::new();
    let value = [b"bytes=".as_slice(), bytes].concat();
    for value in [bytes, &value] {
        if select(value, length, &RangeLimits::default(), &mut ranges) == Selection::Parts {
            assert!(!ranges.is_empty());
            assert!(ranges.iter().all(|range| range.first <= range.last && range.last < length));
            assert!(ranges.iter().map(|range| range.len()).sum::<u64>() <= length);
        }
    }
    let mut request = Table::new();
    let names: [&[u8]; 5] =
        [b"If-Match", b"If-None-Match", b"If-Range", b"Range", b"If-Modified-Since"];
    for (name, value) in names.iter().zip(bytes.split(|byte| *byte == b'\n')) {
        request.add(name, value);
    }
    let etag = b"\"1-2\"".as_slice();
    for method in [Method::GET, Method::POST] {
        let known =
            Validators { method, etag: Some(etag), last_modified: Some(1), now: i64::from(*low) };
        meets_conditions(&request, &known);
        if_range(&request, &known);
    }
});
