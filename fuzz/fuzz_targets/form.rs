//! Forms of logins (mod_auth_form).
#![no_main]

use libfuzzer_sys::fuzz_target;

// By its source: the crate around it has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/aaa/mod_auth_form/fields.rs"]
mod fields;

fuzz_target!(|input: &[u8]| {
    let mut bytes = 0;
    for (name, value) in fields::fields(input) {
        assert!(!name.contains(&0) && !value.contains(&0));
        bytes += name.len() + value.len();
    }
    assert!(bytes <= input.len());
    // What has nothing to unescape stays as it is.
    if let Some((name, value)) = fields::fields(b"a=b").next() {
        assert_eq!((name.as_slice(), value.as_slice()), (&b"a"[..], &b"b"[..]));
    }
});
