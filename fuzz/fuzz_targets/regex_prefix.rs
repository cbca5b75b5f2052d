//! A pattern matches no subject that does not begin with its prefix. The first line is the pattern,
//! the rest the subject.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pcre::{Flags, Regex};

/// Longer patterns find nothing new, and take long to compile.
const PATTERN_BYTES: usize = 512;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (pattern, rest) = input.split_at(end.min(PATTERN_BYTES));
    let subject = rest.get(1..).unwrap_or_default();
    for flags in [Flags::default(), Flags { multi_line: true, ..Flags::NONE }] {
        let pattern = [b"^", pattern].concat();
        let Ok(regex) = Regex::new(&pattern, flags) else { return };
        let prefix = regex.prefix();
        let Some((last, start)) = prefix.split_last() else { continue };
        // Also subjects that almost begin with it.
        let near = [start, &[last.wrapping_add(1)], subject].concat();
        let swapped = [start, &[last ^ 0x20], subject].concat();
        for subject in [subject, start, &near, &swapped] {
            if !subject.starts_with(&prefix) {
                assert_ne!(regex.glance(subject, None), Ok(true), "{regex:?}");
            }
        }
    }
});
