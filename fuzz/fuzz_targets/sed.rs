//! Scripts of mod_sed, and what they make of a text: it does not depend on how the text is cut.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;

// By their source: the crate around them has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/filters/mod_sed/commands.rs"]
mod commands;
#[path = "../../crates/modules/src/filters/mod_sed/labels.rs"]
mod labels;
#[path = "../../crates/modules/src/filters/mod_sed/lines.rs"]
mod lines;
#[path = "../../crates/modules/src/filters/mod_sed/list.rs"]
mod list;
#[allow(dead_code)]
#[path = "../../crates/modules/src/filters/mod_sed/machine.rs"]
mod machine;
#[allow(dead_code)]
#[path = "../../crates/modules/src/filters/mod_sed/output.rs"]
mod output;
#[path = "../../crates/modules/src/filters/mod_sed/parser.rs"]
mod parser;
#[path = "../../crates/modules/src/filters/mod_sed/pattern.rs"]
mod pattern;
#[allow(dead_code)]
#[path = "../../crates/modules/src/filters/mod_sed/script.rs"]
mod script;
#[path = "../../crates/modules/src/filters/mod_sed/search.rs"]
mod search;
#[path = "../../crates/modules/src/filters/mod_sed/substitute.rs"]
mod substitute;

use machine::{Machine, Next, Wrong};
use output::Output;
use parser::Parser;

/// Bytes of output, and turns, after which a script has been watched long enough.
const OUTPUT_BYTES: usize = 256 * 1024;
const TURNS: usize = 4;

/// What a script makes of a text in pieces; `None` if it takes long.
fn cut(script: &Arc<Parser>, text: &[u8], length: usize) -> Option<Result<Vec<u8>, Wrong>> {
    let (mut machine, mut out) = (Machine::new(script.clone()), Output::default());
    let (mut whole, mut turns) = (Vec::new(), 0);
    let mut pieces = text.chunks(length);
    loop {
        match pieces.next() {
            Some(piece) => machine.lines.push(piece),
            None => machine.lines.complete(),
        }
        loop {
            let next = match machine.next(&mut out) {
                Ok(next) => next,
                Err(wrong) => return Some(Err(wrong)),
            };
            whole.append(&mut out.text);
            match next {
                Next::Input => break,
                Next::Over => return Some(Ok(whole)),
                Next::Turn => turns += 1,
                Next::Write(_) => whole.extend_from_slice(machine.text()),
                Next::Read(_) | Next::Log(_) => {}
            }
            if turns > TURNS || whole.len() > OUTPUT_BYTES {
                return None;
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first() else { return };
    let end = rest.iter().position(|byte| *byte == 0xff).unwrap_or(rest.len());
    let (script, text) = rest.split_at(end);
    let text = text.get(1..).unwrap_or_default();
    let mut parser = Parser::default();
    if script.contains(&0) || parser.add(script).is_err() {
        return;
    }
    let parser = Arc::new(parser);
    if parser.script.unfinished.is_some() {
        return;
    }
    let whole = cut(&parser, text, text.len().max(1));
    let pieces = cut(&parser, text, usize::from(*length) + 1);
    if let (Some(whole), Some(pieces)) = (whole, pieces) {
        assert_eq!(whole, pieces);
    }
});
