//! The values of a session in a cookie (mod_session): what was read is written so that it is read
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Table;

// By their source: the crate around them has no part in this, and would be instrumented too.
#[allow(dead_code)]
#[path = "../../crates/modules/src/atoi.rs"]
mod atoi;
#[path = "../../crates/modules/src/session/mod_session/coding.rs"]
mod coding;

/// What the coding needs of a session.
#[derive(Default)]
pub struct Values {
    entries: Table,
    expiry_us: i64,
}

fuzz_target!(|input: &[u8]| {
    if input.contains(&0) {
        // No field has one.
        return;
    }
    let mut values = Values::default();
    coding::decode(input, &mut values);
    let written = coding::encode(&mut values);
    assert!(written.iter().all(|byte| byte.is_ascii_graphic()));
    let mut again = Values::default();
    coding::decode(&written, &mut again);
    assert_eq!(again.expiry_us, values.expiry_us);
    assert_eq!(coding::encode(&mut again), written);
});
