//! Heads of programs' output: parsing in pieces equals parsing at once, and ends no later than the
//! scanner for FastCGI does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::script_head::{EndOfHead, ScriptFault, ScriptHead, ScriptHeadParser, ScriptProgress};

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let step = usize::from(*step).max(1);
    let whole = read(bytes, usize::MAX);
    assert_eq!(read(bytes, step), whole);
    let end = EndOfHead::default().find(bytes);
    let mut scanner = EndOfHead::default();
    let mut at = 0;
    let pieced = bytes.chunks(step).find_map(|piece| {
        at += piece.len();
        scanner.find(piece).map(|end| at - piece.len() + end)
    });
    assert_eq!(pieced, end);
    if let (Some(end), Ok((head, consumed))) = (end, whole) {
        assert!(consumed <= end);
        assert_eq!(read(&bytes[..end], step), Ok((head, consumed)));
    }
});

fn read(bytes: &[u8], step: usize) -> Result<(ScriptHead, usize), ScriptFault> {
    let (mut parser, mut head) = (ScriptHeadParser::new(), ScriptHead::new());
    let mut end = 0;
    loop {
        match parser.parse(&mut head, &bytes[..end]) {
            ScriptProgress::Done { consumed } => return Ok((head, consumed)),
            ScriptProgress::Refused(fault) => return Err(fault),
            ScriptProgress::NeedMore if end == bytes.len() => return Err(parser.end_of_input()),
            ScriptProgress::NeedMore => end = bytes.len().min(end.saturating_add(step)),
        }
    }
}
