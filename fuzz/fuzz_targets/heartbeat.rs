//! Heartbeats (mod_heartmonitor): what servers say of themselves, by UDP or POST.
#![no_main]

use libfuzzer_sys::fuzz_target;

// By their source: the crate around them has no part in this, and would be instrumented too.
// Of `atoi` the parser uses `atol` alone.
#[allow(dead_code)]
#[path = "../../crates/modules/src/atoi.rs"]
mod atoi;
#[allow(dead_code)]
#[path = "../../crates/modules/src/cluster/mod_heartmonitor/message.rs"]
mod message;

use message::{Heartbeat, Words, number};

fuzz_target!(|input: &[u8]| {
    let words = Words::parse(input);
    let [ready, busy, port] = ["ready", "busy", "port"].map(|name| words.get(name));
    let value = |word: Option<&[u8]>| word.and_then(number).unwrap_or(0);
    if let Some(ready) = ready {
        assert!(!ready.contains(&0));
    }
    let (ready, busy, port) = (value(ready) as i32, value(busy) as i32, value(port) as u32);
    let ip = b"192.0.2.1".to_vec();
    let line = Heartbeat { ip, ready, busy, port, seen_s: 1 }.line(7);
    let (_, line) = line.split_once(' ').unwrap_or_default();
    let again = Words::parse(line.as_bytes());
    let same = |name, value: u32| again.get(name) == Some(value.to_string().as_bytes());
    assert!(same("ready", ready as u32) && same("busy", busy as u32) && same("port", port));
});
