//! The first line of a response, by Apache's masks (`apr_date_checkmask`).

/// Splits `HTTP/#.# ###*` into versions and status (`apr_date_checkmask`).
pub(super) fn status_line(text: &[u8]) -> Option<(u8, u8, u16)> {
    let rest = text.strip_prefix(b"HTTP/")?;
    let [major, b'.', minor, b' ', status @ ..] = rest else { return None };
    Some((digit(*major)?, digit(*minor)?, three_digits(status)?))
}

/// Splits `HTTP/# ###*`.
pub(super) fn short_status_line(text: &[u8]) -> Option<(u8, u8, u16)> {
    let [major, b' ', status @ ..] = text.strip_prefix(b"HTTP/")? else { return None };
    Some((digit(*major)?, 0, three_digits(status)?))
}

fn digit(byte: u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}

fn three_digits(text: &[u8]) -> Option<u16> {
    let digits = text.first_chunk::<3>()?;
    digits.iter().try_fold(0, |number, byte| Some(number * 10 + u16::from(digit(*byte)?)))
}
