//! Recorded answers of Apache to the bytes of backends, for tests.

use crate::chars::hex_value;

/// What a client saw of a backend's bytes.
pub(crate) struct Row {
    pub(crate) status: u16,
    pub(crate) is_whole: bool,
    /// The body; `None` for a page of Apache's own, or none.
    pub(crate) body: Option<Vec<u8>>,
    /// The X- fields.
    pub(crate) fields: String,
    /// What the backend sent.
    pub(crate) bytes: Vec<u8>,
}

/// The rows of a `recorded.txt`, which says what its columns are.
pub(crate) fn rows(file: &str) -> impl Iterator<Item = Row> {
    file.lines().filter(|row| !row.starts_with('#')).map(|row| {
        let parts: Vec<_> = row.split('|').collect();
        let [status, whole, body, fields, bytes] = parts[..] else { panic!("{row}") };
        Row {
            status: status.parse().unwrap(),
            is_whole: whole == "whole",
            body: (body != "-").then(|| unescape(body)),
            fields: unescape(fields).iter().map(|byte| char::from(*byte)).collect(),
            bytes: unescape(bytes),
        }
    })
}

/// The bytes of a text with `\r`, `\n`, `\t`, `\xHH`, and `\*NNNNNc` for NNNNN times the c.
pub(crate) fn unescape(row: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = row.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'*') => {
                let count: String = rest.by_ref().take(5).map(char::from).collect();
                let of = match rest.next() {
                    Some(b'\\') => escaped(&mut rest),
                    of => of.unwrap(),
                };
                bytes.resize(bytes.len() + count.parse::<usize>().unwrap(), of);
            }
            Some(b'x') => bytes.push(hex(&mut rest)),
            other => bytes.push(control(other)),
        }
    }
    bytes
}

fn escaped(rest: &mut impl Iterator<Item = u8>) -> u8 {
    match rest.next() {
        Some(b'x') => hex(rest),
        other => control(other),
    }
}

fn hex(rest: &mut impl Iterator<Item = u8>) -> u8 {
    let high = rest.next().and_then(hex_value).unwrap();
    high << 4 | rest.next().and_then(hex_value).unwrap()
}

fn control(letter: Option<u8>) -> u8 {
    match letter {
        Some(b'r') => b'\r',
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        other => panic!("{other:?}"),
    }
}
