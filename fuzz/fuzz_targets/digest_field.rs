//! The credentials of Digest authentication (mod_auth_digest).
#![no_main]

use libfuzzer_sys::fuzz_target;

// By its source: the crate around it has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/aaa/mod_auth_digest/field.rs"]
mod field;

use field::Sent;

fuzz_target!(|input: &[u8]| {
    for text in [input.to_vec(), [b"Digest ", input].concat()] {
        match field::read(&text) {
            Sent::Whole(found) => {
                assert_eq!(found.response.len(), 32);
                assert!(found.qop.is_none() || !text.is_empty());
                // Nothing is longer than what was sent.
                assert!(found.username.len() + found.realm.len() + found.nonce.len() <= text.len());
            }
            Sent::Other(scheme) => assert!(!scheme.eq_ignore_ascii_case(b"Digest")),
            Sent::Incomplete { .. } => {}
        }
    }
});
