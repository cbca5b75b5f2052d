//! Header fields in front of the body of a file or a program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::field_lines::{self, FieldLine};

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    let mut before = rest.len();
    while let Some(line) = field_lines::take(&mut rest) {
        assert!(rest.len() < before);
        before = rest.len();
        if let FieldLine::Field(name, value) = line {
            assert!(!name.contains(&b':') && !value.contains(&b'\n'));
            assert!(field_lines::media_type(value).len() <= value.len());
            field_lines::is_status_line(value, 200);
        }
    }
    assert!(rest.is_empty());
});
