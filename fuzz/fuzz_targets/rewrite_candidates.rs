//! Rules of mod_rewrite: one that is passed over for a path, because of how its pattern begins,
//! would not have matched. The first byte is the number of patterns, which follow, a line each; the
//! rest is the path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pcre::{Flags, Regex};

// By its source: the crate around it has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/mappers/mod_rewrite/prefixes.rs"]
mod prefixes;

use prefixes::Prefixes;

/// More or longer patterns find nothing new, and take long to compile.
const PATTERNS: usize = 16;
const PATTERN_BYTES: usize = 128;

/// The places that are not passed over, as a pass asks for them: each from the one before.
fn candidates(prefixes: &Prefixes, path: &[u8], length: usize) -> Vec<usize> {
    let deepest = prefixes.deepest(path);
    let next = |at: usize| Some(prefixes.next(deepest, at)).filter(|at| *at < length);
    std::iter::successors(next(0), |place| next(place + 1)).collect()
}

fuzz_target!(|input: &[u8]| {
    let Some((count, rest)) = input.split_first() else { return };
    let count = usize::from(*count) % PATTERNS + 1;
    let mut lines = rest.splitn(count + 1, |byte| *byte == b'\n');
    let mut regexes = Vec::new();
    for line in lines.by_ref().take(count) {
        // An exclamation mark: `NC`.
        let (line, caseless) = line.strip_prefix(b"!").map_or((line, false), |line| (line, true));
        let flags = Flags { caseless, ..Flags::default() };
        let pattern = line.get(..PATTERN_BYTES).unwrap_or(line);
        regexes.extend(Regex::new(pattern, flags));
    }
    let path = lines.next().unwrap_or_default();
    let prefixes = Prefixes::new(regexes.iter().map(Regex::prefix));
    // Also paths that are, or begin with, a pattern's text, or almost.
    let mut paths = vec![path.to_vec()];
    for regex in &regexes {
        let text = regex.pattern().strip_prefix(b"^").unwrap_or(regex.pattern());
        let prefix = regex.prefix();
        let start = prefix.split_last().map(|(_, start)| start.to_vec()).unwrap_or_default();
        paths.extend([text.to_vec(), [&prefix[..], path].concat(), [&start[..], path].concat()]);
    }
    for path in paths {
        let found = candidates(&prefixes, &path, regexes.len());
        assert!(found.is_sorted_by(|one, other| one < other));
        for (at, regex) in regexes.iter().enumerate() {
            if !found.contains(&at) {
                assert_ne!(regex.glance(&path, None), Ok(true), "{regex:?}");
            }
        }
    }
});
