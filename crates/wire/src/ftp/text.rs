//! Texts in commands: what may be in them, and what has a meaning for servers.

/// Characters that servers replace by names of files (`FTP_GLOBBING_CHARS`).
const WILDCARDS: &[u8] = b"*?[{~";

/// Whether a text, once decoded, has neither line ends nor non-ASCII bytes (`ftp_check_string`).
pub fn is_clean(text: &[u8]) -> bool {
    unescape(text).iter().all(|byte| byte.is_ascii() && !matches!(byte, b'\r' | b'\n'))
}

/// Replaces `%xx`; other percent signs stay (`decodeenc`). A NUL ends the text.
pub fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = unescape(text);
    let end = decoded.iter().position(|byte| *byte == 0).unwrap_or(decoded.len());
    decoded.truncate(end);
    decoded
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let (byte, after) = match (byte, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                ((high * 16 + low) as u8, after.get(2..).unwrap_or_default())
            }
            _ => (byte, after),
        };
        decoded.push(byte);
        rest = after;
    }
    decoded
}

/// Whether a text has wildcards without a backslash before them (`ftp_check_globbingchars`).
pub fn has_wildcards(text: &[u8]) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let byte = if *byte == b'\\' { bytes.next() } else { Some(byte) };
        if byte.is_some_and(|byte| WILDCARDS.contains(byte)) {
            return true;
        }
    }
    false
}

/// Puts a backslash before each wildcard (`ftp_escape_globbingchars`).
pub fn escape_wildcards(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len() + 2);
    for byte in text {
        if WILDCARDS.contains(byte) {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_and_checked() {
        assert_eq!(decode(b"a%20b%2fc%zz%4"), b"a b/c%zz%4");
        assert_eq!(decode(b"a%00b"), b"a");
        assert!(is_clean(b"a%20b") && !is_clean(b"a%0d") && !is_clean(b"\xe4"));
        assert!(!is_clean(b"a%00\r\nDELE x"));
    }

    #[test]
    fn wildcards_are_found_and_escaped() {
        assert_eq!(escape_wildcards(b"a*[1]~{?"), b"a\\*\\[1]\\~\\{\\?");
        assert!(has_wildcards(b"a*") && !has_wildcards(b"ab]"));
        // As in Apache, a backslash is skipped and the next character looked at.
        assert!(has_wildcards(b"\\*") && !has_wildcards(b"\\"));
    }
}
