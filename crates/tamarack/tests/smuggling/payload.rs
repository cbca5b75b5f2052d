//! A payload, and a list of them.

use std::collections::HashSet;

/// Stands for the payload's tag, which has as many bytes.
pub const TAG: &str = "tTTTT";

/// Bytes with a name.
#[derive(Clone)]
pub struct Payload {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The payloads of a corpus. Names are unique.
#[derive(Default)]
pub struct List {
    pub payloads: Vec<Payload>,
    names: HashSet<String>,
}

impl List {
    pub fn add(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        let name = name.into();
        assert!(!name.contains(' ') && self.names.insert(name.clone()), "{name} twice");
        self.payloads.push(Payload { name, bytes: bytes.into() });
    }
}

/// The tag of a payload by its number.
pub fn tag(number: usize) -> String {
    format!("t{number:04}")
}

/// The first tag in some bytes.
pub fn tag_in(bytes: &[u8]) -> Option<String> {
    let is_tag = |five: &&[u8]| five[0] == b't' && five[1..].iter().all(u8::is_ascii_digit);
    bytes.windows(5).find(is_tag).map(|five| String::from_utf8_lossy(five).into_owned())
}

/// The payload's bytes with its tag.
pub fn tagged(bytes: &[u8], tag: &str) -> Vec<u8> {
    let mut tagged = bytes.to_vec();
    for at in 0..tagged.len().saturating_sub(TAG.len() - 1) {
        if tagged[at..].starts_with(TAG.as_bytes()) {
            tagged[at..at + TAG.len()].copy_from_slice(tag.as_bytes());
        }
    }
    tagged
}

/// Joins pieces of different kinds.
#[macro_export]
macro_rules! join {
    ($($piece:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend_from_slice($piece.as_ref());)*
        bytes
    }};
}

/// Bytes with which fields, lines and numbers are spoilt.
pub const ODD: &[u8] = &[
    0x00, 0x01, 0x02, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x1b, 0x1f, 0x20, 0x22, 0x2c,
    0x3a, 0x3b, 0x5f, 0x7f, 0x80, 0x85, 0xa0, 0xad, 0xc4, 0xff,
];
