//! Parameters of media types, in Apache's spelling.
//!
//! Source: `analyze_ct` and the end of `find_ct` (modules/http/mod_mime.c).

use wire::chars::is_token;

/// The media type with one space before each parameter, and the charset of an extension; `None` if
/// the type can't be parsed, and is left as it is.
pub(super) fn rewritten(media_type: &[u8], charset: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut parts = split(media_type).into_iter();
    let base = parts.next()?.trim_ascii();
    let slash = base.iter().position(|byte| *byte == b'/')?;
    let (kind, subtype) = (base.get(..slash)?, base.get(slash + 1..)?);
    if !is_word(kind) || !is_word(subtype) {
        return None;
    }
    let mut out = base.to_vec();
    let mut charset = charset;
    let asked = charset.is_some();
    let mut append = |name: &[u8], value: &[u8]| {
        for piece in [b"; ", name, b"=", value] {
            out.extend_from_slice(piece);
        }
    };
    for part in parts {
        let equals = part.iter().position(|byte| *byte == b'=')?;
        let (name, value) =
            (part.get(..equals)?.trim_ascii(), part.get(equals + 1..)?.trim_ascii());
        if !is_word(name) || value.is_empty() {
            return None;
        }
        match (name == b"charset" && asked, charset) {
            (true, Some(charset)) => append(name, charset),
            // A second charset is dropped.
            (true, None) => continue,
            (false, _) => {
                append(name, value);
                continue;
            }
        }
        charset = None;
    }
    if let Some(charset) = charset {
        append(b"charset", charset);
    }
    Some(out)
}

fn is_word(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_token(*byte))
}

/// Splits at semicolons outside of quotes.
fn split(text: &[u8]) -> Vec<&[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let mut in_quotes = |byte: &u8| {
        match *byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_quoted
    };
    text.split(|byte| !in_quotes(byte) && *byte == b';').collect()
}

#[cfg(test)]
mod tests {
    use super::rewritten;

    #[test]
    fn one_space_stands_before_each_parameter() {
        let plain = |text: &[u8]| rewritten(text, None);
        assert_eq!(plain(b"text/html"), Some(b"text/html".to_vec()));
        assert_eq!(plain(b"a/b;c=d;  e=\"f;g\""), Some(b"a/b; c=d; e=\"f;g\"".to_vec()));
        assert_eq!(plain(b"text/html;"), None);
        assert_eq!(plain(b"foo"), None);
    }

    #[test]
    fn an_extension_has_the_last_word_on_the_charset() {
        let with = |text: &[u8]| rewritten(text, Some(b"koi8-r"));
        assert_eq!(with(b"a/b"), Some(b"a/b; charset=koi8-r".to_vec()));
        let twice = b"a/b;charset=x;c=d;charset=y";
        assert_eq!(with(twice), Some(b"a/b; charset=koi8-r; c=d".to_vec()));
    }
}
