//! Escapes bytes for URLs, HTML and log lines, as Apache's `ap_escape_*` functions do. Each
//! function appends to `out`.

use crate::scan;

/// Escapes a path segment, including slashes and semicolons (`ap_escape_path_segment`).
pub fn path_segment(out: &mut Vec<u8>, segment: &[u8]) {
    percent(out, segment, |byte| !matches!(byte, b'/' | b';') && is_path_byte(byte));
}

/// Escapes a path for a URL, except slashes (`ap_os_escape_path` with `partial`, `ap_escape_uri`).
pub fn path(out: &mut Vec<u8>, path: &[u8]) {
    percent(out, path, is_path_byte);
}

/// Like [`path()`], for a whole reference: a path whose first segment has a colon gets a `./`
/// prefix, since it would be read as a scheme (`ap_os_escape_path` without `partial`).
pub fn relative_path(out: &mut Vec<u8>, path: &[u8]) {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    if first.contains(&b':') {
        out.extend_from_slice(b"./");
    }
    self::path(out, path);
}

/// Escapes form data: a space is `+` (`ap_escape_urlencoded`).
pub fn urlencoded(out: &mut Vec<u8>, text: &[u8]) {
    let start = out.len();
    percent(out, text, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'*' | b'_' | b' ')
    });
    for byte in out.iter_mut().skip(start).filter(|byte| **byte == b' ') {
        *byte = b'+';
    }
}

/// Escapes text for HTML, including attribute values (`ap_escape_html`).
pub fn html(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.push(*byte),
        }
    }
}

/// Like [`html`], with non-ASCII bytes as character references (`ap_escape_html2` with `toasc`).
pub fn html_ascii(out: &mut Vec<u8>, text: &[u8]) {
    for piece in text.chunk_by(|before, next| before.is_ascii() == next.is_ascii()) {
        if piece.is_ascii() {
            html(out, piece);
            continue;
        }
        for byte in piece {
            out.extend_from_slice(b"&#");
            crate::range::write_decimal(out, u64::from(*byte));
            out.push(b';');
        }
    }
}

/// Escapes a client's text for an access log: quotes, line ends and unprintable bytes
/// (`ap_escape_logitem`).
pub fn log_item(out: &mut Vec<u8>, text: &[u8]) {
    log(out, text, true);
}

/// Escapes what stands in a line since `start`, as [`log_item`] does.
pub fn log_item_from(out: &mut Vec<u8>, start: usize) {
    if out.get(start..).is_some_and(|text| scan::contains(text, is_special_in_log)) {
        let text = out.split_off(start);
        log_item(out, &text);
    }
}

/// Like [`log_item`] for the error log, where quotes stay as they are (`ap_escape_errorlog_item`).
pub fn error_log_item(out: &mut Vec<u8>, text: &[u8]) {
    log(out, text, false);
}

/// Puts a backslash before every quote without one (`ap_escape_quotes`).
pub fn quotes(out: &mut Vec<u8>, text: &[u8]) {
    let mut is_escaped = false;
    for byte in text {
        if *byte == b'"' && !is_escaped {
            out.push(b'\\');
        }
        out.push(*byte);
        is_escaped = *byte == b'\\' && !is_escaped;
    }
}

fn log(out: &mut Vec<u8>, text: &[u8], escape_quotes: bool) {
    // In almost every text there is nothing to escape.
    if !scan::contains(text, is_special_in_log) {
        return out.extend_from_slice(text);
    }
    let mut rest = text;
    loop {
        let plain = rest.iter().position(|byte| is_special_in_log(*byte)).unwrap_or(rest.len());
        let (plain, special) = rest.split_at(plain);
        out.extend_from_slice(plain);
        let [byte, after @ ..] = special else { return };
        rest = after;
        match byte {
            b'"' if !escape_quotes => out.push(b'"'),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x0b => out.extend_from_slice(b"\\v"),
            _ => {
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(&hex(*byte));
            }
        }
    }
}

/// Whether a log does not show the byte as it is.
fn is_special_in_log(byte: u8) -> bool {
    !byte.is_ascii_graphic() & (byte != b' ') | (byte == b'"') | (byte == b'\\')
}

fn percent(out: &mut Vec<u8>, text: &[u8], is_safe: impl Fn(u8) -> bool) {
    for byte in text {
        if is_safe(*byte) {
            out.push(*byte);
        } else {
            out.push(b'%');
            out.extend_from_slice(&hex(*byte));
        }
    }
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"$-_.+!*'(),:;@&=/~".contains(&byte)
}

fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::{Slashes, unescape_query, unescape_url};
    use proptest::prelude::*;

    fn of(escape: fn(&mut Vec<u8>, &[u8]), text: &[u8]) -> String {
        let mut out = Vec::new();
        escape(&mut out, text);
        String::from_utf8_lossy(&out).into_owned()
    }

    // Apache 2.4.71: the bytes that mod_dir's Location leaves unescaped.
    #[test]
    fn safe_bytes_of_a_path() {
        let safe: Vec<u8> = (1..=255).filter(|byte| of(path, &[*byte]).len() == 1).collect();
        let expected = "!$&'()*+,-./0123456789:;=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_\
            abcdefghijklmnopqrstuvwxyz~";
        assert_eq!(String::from_utf8_lossy(&safe), expected);
        assert_eq!(of(path, b"/a b\xe4?\n"), "/a%20b%e4%3f%0a");
        assert_eq!(of(path_segment, b"a;b/c:d"), "a%3bb%2fc:d");
        assert_eq!(of(relative_path, b"a:b/c"), "./a:b/c");
        assert_eq!(of(relative_path, b"a/b:c"), "a/b:c");
        assert_eq!(of(urlencoded, b"a b&c"), "a+b%26c");
    }

    #[test]
    fn html_and_quotes() {
        assert_eq!(of(html, b"<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
        assert_eq!(of(html_ascii, b"\xe4<"), "&#228;&lt;");
        assert_eq!(of(quotes, b"a\"b\\\"c\\\\\""), "a\\\"b\\\"c\\\\\\\"");
    }

    // Apache 2.4.71: access log of `GET /"\<0x80>x`, error log of odd header values.
    #[test]
    fn log_lines() {
        assert_eq!(of(log_item, b"/\"\\\x80x"), "/\\\"\\\\\\x80x");
        assert_eq!(of(error_log_item, b"a\"b\\\x0b\x0c\r\x7f"), "a\"b\\\\\\v\\x0c\\r\\x7f");
    }

    proptest! {
        #[test]
        fn a_log_line_is_escaped_byte_by_byte(text in prop::collection::vec(any::<u8>(), 0..90)) {
            for escape in [log_item, error_log_item] {
                let (mut whole, mut each) = (Vec::new(), Vec::new());
                escape(&mut whole, &text);
                text.iter().for_each(|byte| escape(&mut each, &[*byte]));
                prop_assert_eq!(whole, each);
            }
        }

        #[test]
        fn what_is_escaped_can_be_unescaped(text in prop::collection::vec(1u8.., 0..50)) {
            let mut escaped = Vec::new();
            path_segment(&mut escaped, &text);
            prop_assert_eq!(unescape_url(&mut escaped, Slashes::Decode), Ok(()));
            prop_assert_eq!(&escaped, &text);
            let mut form = Vec::new();
            urlencoded(&mut form, &text);
            prop_assert_eq!(unescape_query(&mut form), Ok(()));
            prop_assert_eq!(&form, &text);
        }
    }
}
