//! The directive `FileETag`.
//!
//! Source: `set_etag_bits` (server/core.c).

use conf::Arg;
use server::context::{Override, Places};
use server::core::{EtagParts, FileEtag};
use server::directive::{Cx, Fault, Row, Set, State, Takes};

use super::Core;

/// The rows of this file.
pub(super) const ROWS: &[Row<Core>] = &[Row {
    name: "FileETag",
    places: Places::ALL,
    allow: Override::FILE_INFO,
    takes: Takes::Some { least: 0, most: usize::MAX, set: set_file_etag },
    syntax: "component ...",
    default: "MTime Size",
    doc: "Sets the components of a file's ETag: modification time, size, inode or a digest of the \
        content.",
    state: State::Done,
}];

fn set_file_etag(cx: &mut Cx<'_, '_, Core>, words: &[Arg]) -> Set {
    let mut etag = cx.dir().file_etag;
    let mut first = true;
    for word in words {
        let (sign, name) = match word.text.split_first() {
            Some((sign @ (b'+' | b'-'), name)) => (Some(*sign), name),
            _ => (None, word.text.as_slice()),
        };
        if sign.is_none() && std::mem::take(&mut first) {
            // A line with an unsigned word replaces the lines before it.
            etag = FileEtag::default();
        }
        let whole = [("None", EtagParts::NONE), ("All", EtagParts::ALL)];
        if let Some((known, parts)) = whole.iter().find(|(known, _)| is(name, known)) {
            if sign.is_some() {
                let signed = "cannot be used with '+' or '-'";
                return Err(Fault::new(format!("FileETag keyword '{known}' {signed}")).at(word));
            }
            etag = FileEtag::whole(*parts);
            continue;
        }
        let single = [
            ("MTime", EtagParts::MTIME),
            ("Size", EtagParts::SIZE),
            ("INode", EtagParts::INODE),
            ("Digest", EtagParts::DIGEST),
        ];
        let Some((_, part)) = single.iter().find(|(known, _)| is(name, known)) else {
            let shown = bstr::BStr::new(name);
            let unknown = format!("Unknown keyword '{shown}' for FileETag directive");
            return Err(Fault::new(unknown).at(word));
        };
        match sign {
            Some(b'+') => etag.add(*part),
            Some(_) => etag.remove(*part),
            None => etag.list(*part),
        }
    }
    cx.dir().file_etag = etag;
    Ok(())
}

fn is(word: &[u8], known: &str) -> bool {
    word.eq_ignore_ascii_case(known.as_bytes())
}
