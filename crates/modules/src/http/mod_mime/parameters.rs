//! Parameters of media types, in Apache's spelling.
//!
//! Source: `analyze_ct` and the end of `find_ct` (modules/http/mod_mime.c).

/// Why a media type can't be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Apache's number of the message.
    pub number: u32,
    /// The message before the type, if it names it.
    pub text: &'static str,
    /// Whether it names the type.
    pub names_type: bool,
}

impl Mistake {
    const BLANK: Mistake =
        Mistake::naming(1598, "mod_mime: analyze_ct: cannot get media type from");
    const NO_TYPE: Mistake = Mistake::naming(1599, "Cannot get media type from");
    const OTHER_TYPE: Mistake =
        Mistake::naming(1600, "mod_mime: analyze_ct: cannot get media type from");
    const NO_SUBTYPE: Mistake =
        Mistake { number: 1601, text: "Cannot get media subtype.", names_type: false };

    const fn naming(number: u32, text: &'static str) -> Mistake {
        Mistake { number, text, names_type: true }
    }

    const fn parameter(number: u32) -> Mistake {
        Mistake { number, text: "Cannot get media parameter.", names_type: false }
    }
}

/// A media type, taken apart.
struct Parts<'t> {
    kind: &'t [u8],
    subtype: &'t [u8],
    parameters: Vec<(&'t [u8], &'t [u8])>,
}

/// Whether a media type is one without parameters and blanks, as nearly all are.
pub(super) fn is_plain(media_type: &[u8]) -> bool {
    let slash = media_type.iter().position(|byte| *byte == b'/');
    let is_odd = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
    slash.is_some_and(|at| at > 0 && at + 1 < media_type.len()) && !media_type.iter().any(is_odd)
}

/// The media type with one space before each parameter, and the charset of an extension.
///
/// # Errors
/// It can't be parsed, and is left as it is.
pub(super) fn rewritten(media_type: &[u8], charset: Option<&[u8]>) -> Result<Vec<u8>, Mistake> {
    let parts = parts(media_type)?;
    let mut out = [parts.kind, b"/", parts.subtype].concat();
    let mut charset = charset;
    let asked = charset.is_some();
    let mut append = |name: &[u8], value: &[u8]| {
        for piece in [b"; ", name, b"=", value] {
            out.extend_from_slice(piece);
        }
    };
    for (name, value) in parts.parameters {
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
    Ok(out)
}

fn parts(media_type: &[u8]) -> Result<Parts<'_>, Mistake> {
    let text = media_type.trim_ascii_start();
    if text.is_empty() {
        return Err(Mistake::BLANK);
    }
    // As in Apache, the first byte may be any.
    let ends_type = |byte: &u8| matches!(byte, b'/' | b';') || byte.is_ascii_whitespace();
    let (kind, rest) = after_first(text, ends_type);
    if matches!(rest.first(), None | Some(b';')) {
        return Err(Mistake::NO_TYPE);
    }
    let rest = rest.trim_ascii_start().strip_prefix(b"/").ok_or(Mistake::OTHER_TYPE)?;
    let rest = rest.trim_ascii_start();
    if rest.is_empty() {
        return Err(Mistake::NO_SUBTYPE);
    }
    let ends_subtype = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
    let (subtype, rest) = after_first(rest, ends_subtype);
    let mut rest = rest.trim_ascii_start();
    let mut parameters = Vec::new();
    if !rest.is_empty() {
        rest = rest.get(1..).unwrap_or_default().trim_ascii_start();
        if rest.is_empty() {
            return Err(Mistake::parameter(1602));
        }
    }
    while let Some(parameter) = parameter(&mut rest)? {
        parameters.push(parameter);
    }
    Ok(Parts { kind, subtype, parameters })
}

/// Splits before the first byte that ends a word, which the word's own first byte never does.
fn after_first(text: &[u8], ends: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().skip(1).position(ends).map_or(text.len(), |at| at + 1);
    text.split_at(end)
}

/// Takes a parameter; `None` if no further one is whole.
fn parameter<'t>(rest: &mut &'t [u8]) -> Result<Option<(&'t [u8], &'t [u8])>, Mistake> {
    let is_name = |byte: &u8| is_word(*byte) || byte.is_ascii_whitespace();
    let end = rest.iter().position(|byte| !is_name(byte));
    let Some((name, after)) = end.map(|end| rest.split_at(end)) else { return Ok(None) };
    let after = after.strip_prefix(b"=").ok_or(Mistake::parameter(1605))?;
    let name = name.trim_ascii();
    if name.is_empty() {
        return Err(Mistake::parameter(1603));
    }
    let after = after.trim_ascii_start();
    let end = match after.first() {
        None => return Err(Mistake::parameter(1604)),
        Some(b'"') => quoted(after)?,
        Some(_) => after.iter().position(|byte| !is_word(*byte)).unwrap_or(after.len()),
    };
    let (value, after) = after.split_at(end);
    if !matches!(after.first(), None | Some(b';')) {
        return Err(Mistake::parameter(1608));
    }
    let value = value.trim_ascii();
    if value.is_empty() {
        return Err(Mistake::parameter(1609));
    }
    *rest = after.get(1..).unwrap_or_default().trim_ascii_start();
    Ok(Some((name, value)))
}

/// The end of a quoted value, with the blanks after it. It may lack its last quote.
fn quoted(text: &[u8]) -> Result<usize, Mistake> {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let after = text.get(at + 1..).unwrap_or_default();
                let rest = after.trim_ascii_start();
                if !matches!(rest.first(), None | Some(b';')) {
                    return Err(Mistake::parameter(1606));
                }
                return Ok(text.len() - rest.len());
            }
            b'\\' if text.get(at + 1).is_some_and(u8::is_ascii) => at += 2,
            b'\\' | b'\r' | 0x80.. => return Err(Mistake::parameter(1607)),
            _ => at += 1,
        }
    }
    Ok(text.len())
}

/// Whether a byte may stand in a word: a visible one that is none of RFC 1521's special ones.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\/[]?=\"".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::rewritten;

    #[test]
    fn one_space_stands_before_each_parameter() {
        let plain = |text: &[u8]| rewritten(text, None);
        assert_eq!(plain(b"text/html"), Ok(b"text/html".to_vec()));
        assert_eq!(plain(b"a/b;c=d;  e=\"f;g\""), Ok(b"a/b; c=d; e=\"f;g\"".to_vec()));
        for invalid in [&b"foo"[..], b"a b", b"a/", b"text/html;", b"a/b;c=\"d\"e"] {
            assert!(plain(invalid).is_err(), "{}", bstr::BStr::new(invalid));
        }
    }

    #[test]
    fn an_extension_has_the_last_word_on_the_charset() {
        let with = |text: &[u8]| rewritten(text, Some(b"koi8-r"));
        assert_eq!(with(b"a/b"), Ok(b"a/b; charset=koi8-r".to_vec()));
        let twice = b"a/b;charset=x;c=d;charset=y";
        assert_eq!(with(twice), Ok(b"a/b; charset=koi8-r; c=d".to_vec()));
    }
}
