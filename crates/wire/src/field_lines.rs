//! Header fields that a file or a program puts in front of its body, as CGI defines them (RFC 3875
//! section 6). They are not checked like those of a message.

use crate::chars::is_field_value;

/// The longest line in bytes; the rest is the next line (`MAX_STRING_LEN`).
pub const LINE_BYTES_MAX: usize = 8190;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldLine<'l> {
    /// Name and value; the blanks in front of the value are left out.
    Field(&'l [u8], &'l [u8]),
    /// The empty line that ends them.
    End,
    /// Text without a colon.
    Malformed(&'l [u8]),
}

/// Takes a line from a text; `None` at its end.
///
/// Source: `ap_scan_script_header_err_core_ex` (server/util_script.c).
pub fn take<'l>(text: &mut &'l [u8]) -> Option<FieldLine<'l>> {
    if text.is_empty() {
        return None;
    }
    let most = text.get(..LINE_BYTES_MAX).unwrap_or(text);
    let length = most.iter().position(|byte| *byte == b'\n').map_or(most.len(), |at| at + 1);
    let (line, rest) = text.split_at(length);
    *text = rest;
    // A line is a C string.
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let bare = line.strip_suffix(b"\n").unwrap_or(line);
    let bare =
        if bare.len() < line.len() { bare.strip_suffix(b"\r").unwrap_or(bare) } else { bare };
    if bare.is_empty() {
        return Some(FieldLine::End);
    }
    let Some(colon) = bare.iter().position(|byte| *byte == b':') else {
        return Some(FieldLine::Malformed(bare));
    };
    let (name, value) = bare.split_at(colon);
    let blanks = value.iter().skip(1).take_while(|byte| is_space(**byte)).count();
    Some(FieldLine::Field(name, value.get(1 + blanks..).unwrap_or_default()))
}

/// A media type without blanks at its end, and in small letters up to its parameters
/// (`ap_content_type_tolower`).
pub fn media_type(value: &[u8]) -> Vec<u8> {
    let blanks = value.iter().rev().take_while(|byte| is_space(**byte)).count();
    let mut value = value.get(..value.len() - blanks).unwrap_or_default().to_vec();
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    if let Some(bare) = value.get_mut(..end) {
        bare.make_ascii_lowercase();
    }
    value
}

/// Whether a status line begins with three digits, this status, and a space, so that it can be sent
/// (`validate_status_line`).
pub fn is_status_line(line: &[u8], status: u16) -> bool {
    let number = status.to_string();
    let rest = line.strip_prefix(number.as_bytes()).filter(|_| number.len() == 3);
    rest.and_then(|rest| rest.strip_prefix(b" ")).is_some_and(is_field_value)
}

/// `isspace` in the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<FieldLine<'_>> {
        let mut rest = text;
        std::iter::from_fn(|| take(&mut rest)).collect()
    }

    #[test]
    fn lines_are_fields_up_to_an_empty_one() {
        use FieldLine::{End, Field, Malformed};
        let found = lines(b"A: 1\r\nB:2 \nno\n: x\n\r\nrest");
        let expected = [
            Field(b"A", b"1"),
            Field(b"B", b"2 "),
            Malformed(b"no"),
            Field(b"", b"x"),
            End,
            Malformed(b"rest"),
        ];
        assert_eq!(found, expected);
        assert_eq!(lines(b"A: 1\0: 2\n"), [Field(b"A", b"1")]);
        assert_eq!(lines(b"\0A: 1\n"), [End]);
        assert_eq!(lines(b"A:\r"), [Field(b"A", b"")]);
        assert_eq!(lines(&[b'x'; 2 * LINE_BYTES_MAX]).len(), 2);
    }

    #[test]
    fn media_types_and_status_lines() {
        assert_eq!(media_type(b"Text/HTML; Charset=X \t"), b"text/html; Charset=X");
        assert!(is_status_line(b"404 Not here", 404));
        assert!(is_status_line(b"404 ", 404) && is_status_line(b"404 a\t\xff", 404));
        assert!(!is_status_line(b"404", 404) && !is_status_line(b"404\ta", 404));
        assert!(!is_status_line(b"404 \x7f", 404) && !is_status_line(b"404 a\x01", 404));
        assert!(!is_status_line(b"4040 x", 404));
        assert!(!is_status_line(b"many", 200));
    }
}
