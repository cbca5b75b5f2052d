//! The words of a directive's text, and its options, as mod_wsgi reads them.

use bstr::ByteSlice;

/// Takes a word off a text; empty if there is none.
///
/// Source: `ap_getword_conf`
pub(super) fn word(text: &mut &[u8]) -> Vec<u8> {
    let rest = text.trim_ascii_start();
    let (word, after) = match rest.first() {
        Some(quote @ (b'"' | b'\'')) => quoted(rest.get(1..).unwrap_or_default(), *quote),
        _ => {
            let end = rest.find_byteset(b" \t\r\n\x0b\x0c").unwrap_or(rest.len());
            (rest.get(..end).unwrap_or_default().to_vec(), rest.get(end..).unwrap_or_default())
        }
    };
    *text = after.trim_ascii_start();
    word
}

/// All words of a text.
pub(super) fn all(mut text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    while !text.is_empty() {
        words.push(word(&mut text));
    }
    words
}

/// Takes an option, `NAME=VALUE`, off a text that is not empty; `None` if there is no `=`.
///
/// Source: `wsgi_parse_option`
pub(super) fn option(text: &mut &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let rest = text.trim_ascii_start();
    let equals = rest.find_byte(b'=')?;
    let name = rest.get(..equals)?.to_vec();
    let rest = rest.get(equals + 1..)?.trim_ascii_start();
    let value = word(&mut { rest });
    let mut after = rest;
    word(&mut after);
    *text = after;
    Some((name, value))
}

/// The text up to an unescaped quote, and what follows it.
fn quoted(text: &[u8], quote: u8) -> (Vec<u8>, &[u8]) {
    let (mut word, mut at) = (Vec::new(), 0);
    while let Some(byte) = text.get(at) {
        if *byte == quote {
            return (word, text.get(at + 1..).unwrap_or_default());
        }
        let escaped = text.get(at + 1).filter(|next| **next == quote || **next == b'\\');
        match escaped.filter(|_| *byte == b'\\') {
            Some(next) => {
                word.push(*next);
                at += 2;
            }
            None => {
                word.push(*byte);
                at += 1;
            }
        }
    }
    (word, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_options_are_taken_one_by_one() {
        let mut text = &b" one  \"two \\\" three\" a=b  c='d e' f= g"[..];
        assert_eq!(word(&mut text), b"one");
        assert_eq!(word(&mut text), b"two \" three");
        assert_eq!(option(&mut text).unwrap(), (b"a".to_vec(), b"b".to_vec()));
        assert_eq!(option(&mut text).unwrap(), (b"c".to_vec(), b"d e".to_vec()));
        // As in mod_wsgi, blanks may follow the equals sign.
        assert_eq!(option(&mut text).unwrap(), (b"f".to_vec(), b"g".to_vec()));
        assert!(text.is_empty());
        for empty in ["a=", "a=  "] {
            let found = option(&mut empty.as_bytes());
            assert_eq!(found, Some((b"a".to_vec(), Vec::new())), "{empty:?}");
        }
        assert_eq!(option(&mut &b"word"[..]), None);
        assert_eq!(word(&mut &b""[..]), b"");
    }
}
