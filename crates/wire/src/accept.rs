//! Reads `Accept`, `Accept-Charset`, `Accept-Encoding` and `Accept-Language` as mod_negotiation's
//! `get_entry` does, including the `qs` and `level` parameters of its type maps.

use crate::chars::is_space;

/// One element of an accept list, or a type with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, in lower case: `text/html`, `*/*`, `gzip`, `en-us`.
    pub name: Vec<u8>,
    /// `q` (or `qs`), in thousandths. Default 1000.
    pub quality_milli: u16,
    /// `level`; 0 when none was given.
    pub level: i32,
    /// `charset`, in lower case; empty when none was given.
    pub charset: Vec<u8>,
}

/// Reads all elements of the field's value, in order.
pub fn parse(value: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        let (entry, after) = parse_one(rest);
        entries.push(entry);
        rest = after;
    }
    entries
}

/// Reads one element and returns it with the text after its comma.
///
/// HTML without a level counts as level 2, and mod_include's types as 2 and 3.
pub fn parse_one(value: &[u8]) -> (Entry, &[u8]) {
    let (name, mut rest) = take_token(value, false);
    let name = name.to_ascii_lowercase();
    let level = match name.as_slice() {
        b"text/html" | b"text/x-server-parsed-html" => 2,
        b"text/x-server-parsed-html3" => 3,
        _ => 0,
    };
    let mut entry = Entry { name, quality_milli: 1000, level, charset: Vec::new() };
    while let Some(after) = rest.strip_prefix(b";") {
        let (parameter, after) = take_token(after, true);
        apply(&mut entry, parameter);
        rest = after;
    }
    (entry, rest.strip_prefix(b",").unwrap_or(rest))
}

/// `ap_get_token`: reads up to `;` or `,` outside of quotes, and up to whitespace unless
/// `accept_space` is set. Skips surrounding whitespace.
fn take_token(text: &[u8], accept_space: bool) -> (&[u8], &[u8]) {
    let text = skip_space(text);
    let mut in_quotes = false;
    let end = text.iter().position(|byte| {
        if *byte == b'"' {
            in_quotes = !in_quotes;
        }
        !in_quotes && (matches!(byte, b';' | b',') || (!accept_space && is_space(*byte)))
    });
    let (token, rest) = text.split_at(end.unwrap_or(text.len()));
    (token, skip_space(rest))
}

fn apply(entry: &mut Entry, parameter: &[u8]) {
    let is_end = |byte: &u8| is_space(*byte) || *byte == b'=';
    let Some(end) = parameter.iter().position(is_end) else { return };
    let (name, rest) = parameter.split_at(end);
    let start = rest.iter().position(|byte| !is_end(byte)).unwrap_or(rest.len());
    let value = rest.get(start..).unwrap_or_default();
    let value = match value.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|byte| matches!(byte, b'"' | b'\r' | b'\n')).next(),
        None => value.split(|byte| is_space(*byte)).next(),
    };
    let value = value.unwrap_or_default();
    match name.to_ascii_lowercase().as_slice() {
        b"q" | b"qs" => entry.quality_milli = quality_milli(value),
        b"level" => entry.level = integer(value),
        b"charset" => entry.charset = value.to_ascii_lowercase(),
        _ => {}
    }
}

/// Parses a quality in thousandths (`atoq`). A value that does not begin with `0` or a point is 1;
/// further digits are truncated.
pub fn quality_milli(value: &[u8]) -> u16 {
    let value = skip_space(value);
    let fraction = match value {
        [] => return 1000,
        [b'.', rest @ ..] | [b'0', b'.', rest @ ..] => rest,
        [b'0', ..] => return 0,
        _ => return 1000,
    };
    let mut quality = 0;
    for (byte, unit) in fraction.iter().zip([100, 10, 1]) {
        let Some(digit) = byte.checked_sub(b'0').filter(|digit| *digit <= 9) else { break };
        quality += u16::from(digit) * unit;
    }
    quality
}

/// `atoi`, saturating.
fn integer(value: &[u8]) -> i32 {
    let (sign, digits) = match skip_space(value) {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0i32, |value, byte| {
        value.saturating_mul(10).saturating_add(sign * i32::from(byte - b'0'))
    })
}

fn skip_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn brief(value: &str) -> Vec<(String, u16)> {
        let name = |entry: &Entry| String::from_utf8_lossy(&entry.name).into_owned();
        parse(value.as_bytes()).iter().map(|entry| (name(entry), entry.quality_milli)).collect()
    }

    #[test]
    fn names_and_qualities() {
        let expected = |rows: &[(&str, u16)]| -> Vec<(String, u16)> {
            rows.iter().map(|row| (row.0.to_string(), row.1)).collect()
        };
        let list = brief("Text/HTML;q=0.8, */* ; Q = \"0.1\",gzip");
        assert_eq!(list, expected(&[("text/html", 800), ("*/*", 100), ("gzip", 1000)]));
        // The old syntax, without commas.
        let list = brief("text/html text/plain");
        assert_eq!(list, expected(&[("text/html", 1000), ("text/plain", 1000)]));
        assert_eq!(brief(""), []);
        assert_eq!(brief("a;q"), expected(&[("a", 1000)]));
    }

    #[test]
    fn qualities_are_cut_to_three_digits() {
        for (value, milli) in [
            ("1", 1000),
            ("0", 0),
            ("0.5", 500),
            (".5", 500),
            ("0.1239", 123),
            ("0.x", 0),
            ("2", 1000),
            ("", 1000),
            ("x", 1000),
            ("00.5", 0),
        ] {
            assert_eq!(quality_milli(value.as_bytes()), milli, "{value}");
        }
    }

    #[test]
    fn other_parameters() {
        let (entry, rest) = parse_one(b"text/html; level=1; charset=\"UTF-8\"; x=\"a,b\", next");
        assert_eq!((entry.level, entry.charset.as_slice()), (1, b"utf-8".as_slice()));
        assert_eq!(rest, b" next");
        assert_eq!(parse_one(b"text/html").0.level, 2);
    }

    proptest! {
        #[test]
        fn reading_ends_on_any_bytes(value: Vec<u8>) {
            prop_assert!(parse(&value).len() <= value.len() + 1);
        }
    }
}
