//! A process without machine code for patterns.
#![allow(clippy::unwrap_used)]

use pcre::{Flags, Regex, compiled_bytes, interpret};

#[test]
fn patterns_match_without_machine_code() {
    let compile = || {
        let before = compiled_bytes();
        let regex = Regex::new(b"^/a(.*)x+$", Flags::default()).unwrap();
        (compiled_bytes() - before, regex)
    };
    let (with_code, _) = compile();
    interpret();
    let (without, regex) = compile();
    assert!(without * 2 < with_code, "{without} {with_code}");
    assert!(regex.matches(b"/a-xx", None).surely());
    assert!(!regex.matches(b"/b-xx", None).surely());
}
