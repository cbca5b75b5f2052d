//! Magic files and the files that they are asked about (mod_mime_magic): the rules up to a line
//! `%%`, then the file.
#![no_main]

use libfuzzer_sys::fuzz_target;

// By their source: the crate around them has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/ctime.rs"]
mod ctime;
#[path = "../../crates/modules/src/metadata/mod_mime_magic/magic/mod.rs"]
mod magic;

use magic::{Magic, Outcome, Sample};

fuzz_target!(|input: &[u8]| {
    const END: &[u8] = b"\n%%\n";
    let at = input.windows(END.len()).position(|window| window == END);
    let (rules, content) = at.map_or((input, &[][..]), |at| input.split_at(at));
    let (magic, faults) = Magic::parse(rules);
    let lines = 1 + rules.iter().filter(|byte| **byte == b'\n').count() + rules.len() / 8191;
    for fault in &faults {
        assert!(fault.number > 1500 && !fault.text.is_empty());
        assert!(fault.line as usize <= lines);
        assert!(fault.is_fatal <= !magic.is_empty());
    }
    for sample in [Sample::of_file(content), Sample::of_unpacked(content)] {
        let Some(pieces) = magic.identify(&sample, &mut Vec::new()) else { continue };
        assert!(pieces.iter().all(|piece| piece.len() <= 255 && !piece.contains(&0)));
        if let Some(outcome) = Outcome::of(&pieces) {
            assert!(outcome.media_type.contains(&b'/'));
            assert!(outcome.encoding.is_none_or(|encoding| !encoding.is_empty()));
        }
    }
});
