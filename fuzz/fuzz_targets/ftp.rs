//! FTP: replies and listings read in pieces equal those read at once; a listing's text has no tags
//! of its own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::ftp::{
    ListingWriter, Reply, ReplyFault, ReplyParser, ReplyProgress, decode, epsv_port,
    escape_wildcards, has_wildcards, is_clean, modified, pasv_address,
};

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let step = usize::from(*step).max(1);
    let whole = replies(bytes, usize::MAX);
    assert_eq!(replies(bytes, step), whole);
    for Reply { code, text } in &whole.0 {
        assert!(*code <= 999 && !text.contains(&b'\r') && !text.contains(&0));
        assert!(epsv_port(text) != Some(0));
        let _ = (pasv_address(text), modified(text));
    }
    let page = listing(bytes, usize::MAX);
    assert_eq!(listing(bytes, step), page);
    let tags = page.split(|byte| *byte == b'<').skip(1);
    for tag in tags {
        assert!(tag.starts_with(b"a href=\"") || tag.starts_with(b"/a>"));
    }
    assert!(decode(bytes).len() <= bytes.len());
    assert!(!is_clean(bytes) || !bytes.contains(&b'\n') && decode(bytes).is_ascii());
    let _ = has_wildcards(&escape_wildcards(bytes));
});

fn replies(bytes: &[u8], step: usize) -> (Vec<Reply>, Option<ReplyFault>) {
    let (mut parser, mut found) = (ReplyParser::default(), Vec::new());
    let (mut at, mut end) = (0, 0);
    loop {
        match parser.parse(&bytes[at..end]) {
            Ok(ReplyProgress::Done { consumed, reply }) => {
                at += consumed;
                found.push(reply);
            }
            Ok(ReplyProgress::NeedMore { consumed }) => {
                at += consumed;
                if end == bytes.len() {
                    return (found, None);
                }
                end = bytes.len().min(end.saturating_add(step));
            }
            // How much of it was used depends on the pieces.
            Err(ReplyFault::Malformed { line, .. }) => {
                return (found, Some(ReplyFault::Malformed { consumed: 0, line }));
            }
            Err(fault) => return (found, Some(fault)),
        }
    }
}

fn listing(bytes: &[u8], step: usize) -> Vec<u8> {
    let (mut writer, mut out) = (ListingWriter::default(), Vec::new());
    for mut piece in bytes.chunks(step.min(bytes.len()).max(1)) {
        while let Some((used, _)) = writer.write(piece, &mut out) {
            piece = &piece[used..];
        }
    }
    out
}
