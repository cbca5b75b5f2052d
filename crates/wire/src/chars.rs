//! Classes of bytes in HTTP syntax (RFC 9110 section 5.6, RFC 9112 section 2.2).

/// `tchar`: the bytes of method names and field names.
pub const fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether `bytes` is a token: not empty, and only `tchar`.
pub fn is_token_string(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<4>();
    // Four look-ups without a branch between them.
    let are_tokens =
        |[a, b, c, d]: &[u8; 4]| is_token(*a) & is_token(*b) & is_token(*c) & is_token(*d);
    !bytes.is_empty() && chunks.iter().all(are_tokens) && rest.iter().all(|byte| is_token(*byte))
}

/// `VCHAR` or `obs-text`: visible ASCII and everything from 0x80 (`ap_scan_vchar_obstext`).
pub const fn is_visible(byte: u8) -> bool {
    (byte > b' ') & (byte != 0x7f)
}

/// The bytes allowed in a field value: visible bytes, space and tab (`ap_scan_http_field_content`).
pub const fn is_field_content(byte: u8) -> bool {
    (byte == b'\t') | ((byte >= b' ') & (byte != 0x7f))
}

/// Whether all bytes are allowed in a field value.
pub fn is_field_value(bytes: &[u8]) -> bool {
    !crate::scan::contains(bytes, |byte| !is_field_content(byte))
}

/// The C library's `isspace` in the C locale.
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Trims leading spaces and tabs.
pub fn trim_blanks_start(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
    start.and_then(|at| bytes.get(at..)).unwrap_or_default()
}

/// Trims trailing spaces and tabs.
pub fn trim_blanks_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
    end.and_then(|at| bytes.get(..=at)).unwrap_or_default()
}

/// Trims spaces and tabs at both ends.
pub fn trim_blanks(bytes: &[u8]) -> &[u8] {
    trim_blanks_end(trim_blanks_start(bytes))
}

/// The value of a hexadecimal digit.
pub const fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Parses a non-negative decimal number, digits only, at most `i64::MAX`
/// (`ap_parse_strict_length`).
pub fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for byte in bytes {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (value <= i64::MAX as u64).then_some(value)
}

static TOKEN: [bool; 256] = token_table();

const fn token_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
}
