//! Regular expressions: machine code, the interpreter and the counted match have the same outcome
//! and groups, unless undecided. The first line is the pattern, the rest the subject.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use pcre::{Captures, Flags, MAX_SUBSTITUTION_BYTES, Matched, Regex, Watch, substitute};

/// Longer patterns find nothing new, and take long to compile.
const PATTERN_BYTES: usize = 512;
/// The time limit of the counted match.
const PATIENCE: Duration = Duration::from_millis(50);

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (pattern, rest) = input.split_at(end.min(PATTERN_BYTES));
    let subject = rest.get(1..).unwrap_or_default();
    let flags = Flags::default();
    let compiled = Regex::new(pattern, flags);
    let interpreted = Regex::new(pattern, Flags { interpreted: true, ..flags });
    let (Ok(compiled), Ok(interpreted)) = (&compiled, &interpreted) else {
        return assert_eq!(compiled.is_err(), interpreted.is_err());
    };
    assert_eq!(compiled.names(), interpreted.names());
    let mut found = Vec::new();
    for regex in [compiled, interpreted] {
        let mut captures = Captures::new();
        if let Ok(matched) = regex.glance(subject, Some(&mut captures)) {
            found.push((matched, captures));
        }
        assert!(found.last().is_none_or(|(matched, captures)| *matched != captures.is_empty()));
    }
    let mut captures = Captures::new();
    let watch = Watch::until(Instant::now() + PATIENCE);
    match compiled.decide(subject, Some(&mut captures), &watch) {
        Matched::Undecided(_) => assert!(captures.is_empty()),
        decided => found.push((decided.surely(), captures)),
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
    if let Some((true, captures)) = found.first() {
        let mut out = Vec::new();
        let template = b"$0-$1-$9-\\$1-&";
        let filled = substitute(template, subject, captures, MAX_SUBSTITUTION_BYTES, &mut out);
        assert!(filled.is_err() || out.len() <= MAX_SUBSTITUTION_BYTES);
    }
});
