//! The `Warning` fields of a backend's response: those whose date is not that of the response are
//! dropped, and each other one becomes a field of its own.
//!
//! Source: `ap_proxy_clean_warnings`.

use wire::Table;

const NAME: &[u8] = b"Warning";

/// Replaces the `Warning` fields among `fields`.
pub(super) fn clean(fields: &mut Table) {
    let date = fields.get(b"Date").and_then(wire::date::parse);
    let values: Vec<Vec<u8>> = fields.get_all(NAME).map(<[u8]>::to_vec).collect();
    fields.unset(NAME);
    for mut rest in values.iter().map(Vec::as_slice) {
        while !rest.is_empty() {
            let Some(warning) = Warning::at_start(rest) else {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            };
            let (text, after) = rest.split_at(warning.length);
            let of_warning = warning.date.and_then(wire::date::parse);
            if of_warning.is_none() || of_warning == date {
                fields.add(NAME, text);
            }
            rest = after;
        }
    }
}

/// `code agent "text" "date"`, the date being optional.
struct Warning<'a> {
    /// Bytes.
    length: usize,
    date: Option<&'a [u8]>,
}

impl Warning<'_> {
    fn at_start(text: &[u8]) -> Option<Warning<'_>> {
        let (code, rest) = text.split_at_checked(3)?;
        if !code.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let (_, rest) = split(blanks(rest)?, |byte| !is_blank(byte))?;
        let (_, rest) = quoted(blanks(rest)?)?;
        let date = blanks(rest).and_then(quoted).filter(|(date, _)| !date.is_empty());
        let rest = date.map_or(rest, |(_, rest)| rest);
        Some(Warning { length: text.len() - rest.len(), date: date.map(|(date, _)| date) })
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Splits off the bytes, at least one, for which `is` holds.
fn split(text: &[u8], is: impl Fn(&u8) -> bool) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !is(byte)).unwrap_or(text.len());
    if end == 0 { None } else { text.split_at_checked(end) }
}

/// What follows at least one blank.
fn blanks(text: &[u8]) -> Option<&[u8]> {
    split(text, is_blank).map(|(_, rest)| rest)
}

/// What is between quotes, and what follows.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    Some((rest.get(..end)?, rest.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_another_date_are_dropped() {
        let mut fields = Table::default();
        fields.add(b"Date", b"Sat, 01 Jan 2022 00:00:00 GMT");
        fields.add(NAME, b"199 a \"x\" \"Fri, 31 Dec 2021 00:00:00 GMT\", 110 b \"y\",112 c \"z\"");
        fields.add(NAME, b"junk 113 d \"\" \"Sat, 01 Jan 2022 00:00:00 GMT\" 11 e \"no\"");
        clean(&mut fields);
        let all: Vec<&[u8]> = fields.get_all(NAME).collect();
        let dated = b"113 d \"\" \"Sat, 01 Jan 2022 00:00:00 GMT\"";
        assert_eq!(all, [&b"110 b \"y\""[..], b"112 c \"z\"", dated]);
    }
}
