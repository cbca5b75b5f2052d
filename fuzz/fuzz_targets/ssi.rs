//! Server-side includes (mod_include): the pieces of a page do not depend on how it is cut, and its
//! texts lie in it, in order.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// What the parser needs of the module's configuration.
mod config {
    pub struct Tags {
        pub start: Vec<u8>,
        pub end: Vec<u8>,
    }
}
// By its source: the crate around it has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/filters/mod_include/parse.rs"]
mod parse;

use config::Tags;
use parse::{Parser, Piece};

fn cut(tags: &Tags, page: &[u8], length: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut parser = Parser::new(tags);
    page.chunks(length).for_each(|part| parser.push(part, &mut pieces));
    parser.finish(&mut pieces);
    pieces
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, page)) = input.split_first() else { return };
    let (start, end): (&[u8], &[u8]) = match kind % 3 {
        0 => (b"<!--#", b"-->"),
        1 => (b"--->", b"--"),
        _ => (b"aab", b"=\"="),
    };
    let tags = Tags { start: start.to_vec(), end: end.to_vec() };
    let pieces = parse::parse(&tags, page);
    let length = usize::from(kind / 3) + 1;
    assert_eq!(cut(&tags, page, length), pieces);
    assert_eq!(cut(&tags, page, 1), pieces);
    let mut last = 0;
    for piece in pieces {
        if let Piece::Text(range) = piece {
            assert!(last <= range.start && range.start < range.end && range.end <= page.len());
            last = range.end;
        }
    }
});
