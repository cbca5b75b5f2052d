//! Sessions of balancers (mod_proxy_balancer): values in URLs and cookies.
#![no_main]

use libfuzzer_sys::fuzz_target;

// By its source: the crate around it has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/proxy/mod_proxy_balancer/values.rs"]
mod values;

fuzz_target!(|input: &[u8]| {
    let [length, rest @ ..] = input else { return };
    let (name, text) = rest.split_at((usize::from(length % 8) + 1).min(rest.len()));
    if name.is_empty() {
        return;
    }
    for semicolon_delimits in [false, true] {
        if let Some(value) = values::in_url(text, name, semicolon_delimits) {
            assert!(!value.is_empty() && !value.iter().any(|byte| b"?&".contains(byte)));
            assert!(!(semicolon_delimits && value.contains(&b';')));
        }
    }
    if let Some(value) = values::in_cookies(text, name) {
        assert!(!value.iter().any(|byte| b";,".contains(byte)));
    }
});
