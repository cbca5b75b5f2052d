//! Replies of memcached and Redis: a reply that is whole stays the same whatever follows, and
//! nothing shorter is one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{memcache, redis};

const VALUE_BYTES: usize = 1000;

fuzz_target!(|input: &[u8]| {
    if let Ok(Some((reply, length))) = memcache::read_reply(input, VALUE_BYTES) {
        let again = memcache::read_reply(&input[..length], VALUE_BYTES);
        assert_eq!(again, Ok(Some((reply, length))));
        assert_eq!(memcache::read_reply(&input[..length - 1], VALUE_BYTES), Ok(None));
    }
    if let Ok(Some((reply, length))) = redis::read_reply(input, VALUE_BYTES) {
        assert_eq!(redis::read_reply(&input[..length], VALUE_BYTES), Ok(Some((reply, length))));
        assert_eq!(redis::read_reply(&input[..length - 1], VALUE_BYTES), Ok(None));
    }
});
