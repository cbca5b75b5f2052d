//! The notation of bytes in a test file: ASCII verbatim, everything else as `\xNN`.

/// Formats bytes as a line of a test file. A space at the end becomes `\x20`, because editors strip
/// it.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b' ' if at + 1 == bytes.len() => text.push_str("\\x20"),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

/// Parses the notation of [`escape`], and `\{TEXT*N}`: the text N times.
pub fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else {
            return Err(format!("a single backslash ends {text:?}"));
        };
        rest = &rest[kind.len_utf8()..];
        match kind {
            '\\' => bytes.push(b'\\'),
            'r' => bytes.push(b'\r'),
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'x' => {
                let digits = rest.get(..2).ok_or_else(|| format!("\\x is cut off in {text:?}"))?;
                let byte = u8::from_str_radix(digits, 16);
                bytes.push(byte.map_err(|_| format!("\\x{digits} is not a byte in {text:?}"))?);
                rest = &rest[2..];
            }
            '{' => rest = repeat(rest, &mut bytes)?,
            other => return Err(format!("unknown escape \\{other} in {text:?}")),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Parses the body of `\{TEXT*N}`, after the brace, and returns the rest.
fn repeat<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    let end = text.find('}').ok_or("\\{ without }")?;
    let (unit, times) = text[..end].rsplit_once('*').ok_or("\\{TEXT*N} requires a *")?;
    let times: usize = times.parse().map_err(|_| "\\{TEXT*N}: N is not a number")?;
    let unit = unescape(unit)?;
    for _ in 0..times {
        bytes.extend_from_slice(&unit);
    }
    Ok(&text[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn every_byte_survives_the_round_trip() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unescape(&escape(&all)), Ok(all));
    }

    #[test]
    fn a_repetition_is_spelled_out() {
        assert_eq!(unescape("a\\{xy*3}b"), Ok(b"axyxyxyb".to_vec()));
        assert!(unescape("\\{xy*3").is_err());
        assert!(unescape("\\q").is_err());
    }

    #[test]
    fn a_space_at_the_end_stays_visible() {
        assert_eq!(escape(b"a "), "a\\x20");
    }
}
