//! Times as `strftime` formats them.
//!
//! Source: `ap_ht_time`

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The longest text of a time (`MAX_STRING_LEN`).
const TEXT_BYTES_MAX: usize = 8191;

/// Formats a time in microseconds since the epoch, local or as GMT.
pub fn format(time_us: u64, format: &[u8], is_gmt: bool) -> Vec<u8> {
    let seconds = i64::try_from(time_us / 1_000_000).unwrap_or(0);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    let zone = if is_gmt { TimeZone::UTC } else { TimeZone::system() };
    let zoned = time.to_zoned(zone);
    let mut out = Vec::with_capacity(format.len() * 2);
    for part in parts(format) {
        match part {
            Part::Text(text) => out.extend_from_slice(text),
            // `ap_ht_time` replaces these itself.
            Part::Field(b"%Z") if is_gmt => out.extend_from_slice(b"GMT"),
            Part::Field(b"%z") if is_gmt => out.extend_from_slice(b"+0000"),
            Part::Field(field) => put_field(&zoned, field, &mut out),
        }
    }
    if out.len() > TEXT_BYTES_MAX {
        out.clear();
    }
    out
}

enum Part<'f> {
    Text(&'f [u8]),
    Field(&'f [u8]),
}

/// The parts of a format.
fn parts(format: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = format;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = match rest.iter().position(|byte| *byte == b'%') {
            Some(0) => field_length(rest),
            Some(at) => {
                let (text, after) = rest.split_at(at);
                rest = after;
                return Some(Part::Text(text));
            }
            None => {
                return Some(Part::Text(std::mem::take(&mut rest)));
            }
        };
        let (field, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        Some(Part::Field(field))
    })
}

/// The length of a field with its flags, width and modifier.
fn field_length(field: &[u8]) -> usize {
    let flags = |byte: &u8| b"_-0^#+".contains(byte);
    let mut at = 1;
    at += field.get(at..).unwrap_or_default().iter().take_while(|byte| flags(byte)).count();
    at += field.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    at += usize::from(matches!(field.get(at), Some(b'E' | b'O')));
    at + 1
}

/// The letters of fields in C.
const KNOWN: &[u8] = b"%aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ";

/// Appends a field. What no field is stays as it is, as in glibc.
fn put_field(time: &jiff::Zoned, field: &[u8], out: &mut Vec<u8>) {
    let (Some(letter), Ok(text)) = (field.last(), std::str::from_utf8(field)) else {
        return out.extend_from_slice(field);
    };
    if !KNOWN.contains(letter) {
        return out.extend_from_slice(field);
    }
    let is_plain = field.len() == 2;
    let same = match letter {
        b'c' if is_plain => "%a %b %e %H:%M:%S %Y",
        b'x' if is_plain => "%m/%d/%y",
        b'X' if is_plain => "%H:%M:%S",
        b'r' if is_plain => "%I:%M:%S %p",
        _ => text,
    };
    // The modifiers mean nothing in the C locale.
    let same: String = match field.get(1) {
        Some(b'E' | b'O') => ["%", text.get(2..).unwrap_or_default()].concat(),
        _ => same.to_owned(),
    };
    match jiff::fmt::strtime::format(&same, time) {
        Ok(text) => out.extend_from_slice(text.as_bytes()),
        Err(_) => out.extend_from_slice(field),
    }
}
