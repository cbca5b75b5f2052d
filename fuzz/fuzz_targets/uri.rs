//! Targets and paths: the parts come from the whole, normalising is idempotent and never leaves the
//! root, and unescaping reverses escaping.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::uri::{
    Normalize, Slashes, Target, normalize_path, resolve_dots, unescape_query, unescape_url,
};

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    if let Ok(target) = Target::of_request(bytes, choice & 1 != 0) {
        let parts = [target.scheme, target.host, target.path, target.query, target.fragment];
        assert!(parts.iter().flatten().map(|part| part.len()).sum::<usize>() <= bytes.len());
    }
    let how = Normalize {
        allow_relative: choice & 2 != 0,
        not_above_root: choice & 4 != 0,
        decode_unreserved: choice & 8 != 0,
        merge_slashes: choice & 16 != 0,
        drop_parameters: choice & 32 != 0,
    };
    let mut path = bytes.to_vec();
    if normalize_path(&mut path, how) {
        assert!(path.len() <= bytes.len());
        assert!(!path.split(|byte| *byte == b'/').any(|segment| segment == b".."));
        let mut again = path.clone();
        let how = Normalize { allow_relative: true, ..how };
        // A decoded percent sign can't make a new escape: `%25` is not unreserved.
        assert!(normalize_path(&mut again, how));
        assert_eq!(path, again);
    }
    let mut path = bytes.to_vec();
    resolve_dots(&mut path);
    for slashes in [Slashes::Forbid, Slashes::Decode, Slashes::Keep] {
        let mut path = bytes.to_vec();
        if unescape_url(&mut path, slashes).is_ok() && slashes == Slashes::Forbid {
            assert!(!path.contains(&0) || bytes.contains(&0));
        }
    }
    let mut escaped = Vec::new();
    wire::escape::path_segment(&mut escaped, bytes);
    if !bytes.contains(&0) {
        assert_eq!(unescape_url(&mut escaped, Slashes::Decode), Ok(()));
        assert_eq!(escaped, bytes);
    }
    let _ = unescape_query(&mut bytes.to_vec());
    for escape in [wire::escape::html, wire::escape::html_ascii, wire::escape::quotes] {
        escape(&mut Vec::new(), bytes);
    }
    for escape in [wire::escape::log_item, wire::escape::error_log_item] {
        let mut line = Vec::new();
        escape(&mut line, bytes);
        assert!(line.iter().all(|byte| matches!(byte, b' '..=b'~')));
    }
});
