//! Comma-separated field values: tokens and items (`ap_find_token`, `ap_find_list_item`).

use crate::chars::{is_token, trim_blanks};

/// Whether `list` contains `token`, as compared by [`token_means`].
pub fn contains_token(list: &[u8], token: &[u8]) -> bool {
    tokens(list).any(|found| token_means(found, token))
}

/// Whether a received token means `token`: it is that token **or a prefix of it**, ignoring case.
/// So `Connection: c` closes, as with `ap_find_token` of httpd 2.4.
pub fn token_means(sent: &[u8], token: &[u8]) -> bool {
    !sent.is_empty()
        && token.get(..sent.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(sent))
}

/// The tokens of a field value: each run of `tchar`. All other bytes separate.
pub fn tokens(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| !is_token(*byte)).filter(|token| !token.is_empty())
}

/// The elements of a comma-separated list, without surrounding blanks. Commas in quoted strings do
/// not separate; empty elements are skipped.
pub fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = item_end(rest);
            let item = trim_blanks(rest.get(..end).unwrap_or_default());
            rest = rest.get(end + 1..).unwrap_or_default();
            if !item.is_empty() {
                return Some(item);
            }
        }
        None
    })
}

/// An element as Apache hands it out: in small letters, with one space for several and none around
/// `;`, `=` and `/`, but for quoted strings, which stay (`ap_get_list_item`).
pub fn condensed(item: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(item.len());
    let (mut in_quotes, mut is_escaped, mut has_space) = (false, false, false);
    for byte in item {
        let is_special = matches!(byte, b';' | b'=' | b'/');
        if in_quotes {
            out.push(*byte);
            in_quotes = *byte != b'"' || is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
        } else if matches!(byte, b' ' | b'\t') {
            has_space = true;
        } else {
            let follows_special = matches!(out.last(), None | Some(b';' | b'=' | b'/'));
            if has_space && !is_special && !follows_special {
                out.push(b' ');
            }
            has_space = false;
            in_quotes = *byte == b'"';
            out.push(byte.to_ascii_lowercase());
        }
    }
    out
}

/// Whether the list contains `item` as an element, ignoring case outside of quotes
/// (`ap_find_list_item`).
pub fn contains_item(list: &[u8], item: &[u8]) -> bool {
    items(list).any(|found| match found.first() {
        Some(b'"') => found == item,
        _ => found.eq_ignore_ascii_case(item),
    })
}

/// Position of the comma that ends the first element, or the length.
fn item_end(list: &[u8]) -> usize {
    let (mut in_quotes, mut is_escaped) = (false, false);
    for (at, byte) in list.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_quotes => is_escaped = true,
            b'"' => in_quotes = !in_quotes,
            b',' if !in_quotes => return at,
            _ => {}
        }
    }
    list.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Apache 2.4.71: Content-Language beside AddLanguage.
    #[test]
    fn elements_condensed() {
        let of = |item: &str| String::from_utf8_lossy(&condensed(item.as_bytes())).into_owned();
        assert_eq!(of("EN"), "en");
        assert_eq!(of("en ; q = 1"), "en;q=1");
        assert_eq!(of("e \t n"), "e n");
        assert_eq!(of("\"A  b\\\" C\" D"), "\"A  b\\\" C\" d");
        assert_eq!(of(""), "");
    }

    // Apache 2.4.71 closes the connection after each of these, except for the last three.
    #[test]
    fn tokens_of_connection() {
        for value in [
            "close",
            "c",
            "clos",
            "\"close\"",
            "x close",
            "x/close",
            "close\u{e4}",
            "CLOSE",
            "keep-alive, close",
            "{close}",
        ] {
            assert!(contains_token(value.as_bytes(), b"close"), "{value}");
        }
        for value in ["closes", "x|close", ""] {
            assert!(!contains_token(value.as_bytes(), b"close"), "{value}");
        }
    }

    #[test]
    fn items_respect_quotes() {
        let list = b"a , \"b,\\\",c\",, d";
        let found: Vec<_> = items(list).collect();
        assert_eq!(found, [b"a".as_slice(), b"\"b,\\\",c\"", b"d"]);
        assert!(contains_item(b"Accept, Accept-Encoding", b"accept-encoding"));
        assert!(!contains_item(b"Accept-Encoding", b"accept"));
    }
}
