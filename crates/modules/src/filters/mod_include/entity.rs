//! Character references in HTML, as Apache decodes them: to Latin-1, and only those of HTML 2.
//!
//! Source: `decodehtml`

use bstr::ByteSlice;

/// Names and bytes.
const ENTITIES: &[(&[u8], u8)] = &[
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"amp", b'&'),
    (b"quot", b'"'),
    (b"Agrave", 192),
    (b"Aacute", 193),
    (b"Acirc", 194),
    (b"Atilde", 195),
    (b"Auml", 196),
    (b"Aring", 197),
    (b"AElig", 198),
    (b"Ccedil", 199),
    (b"Egrave", 200),
    (b"Eacute", 201),
    (b"Ecirc", 202),
    (b"Euml", 203),
    (b"Igrave", 204),
    (b"Iacute", 205),
    (b"Icirc", 206),
    (b"Iuml", 207),
    (b"ETH", 208),
    (b"Ntilde", 209),
    (b"Ograve", 210),
    (b"Oacute", 211),
    (b"Ocirc", 212),
    (b"Otilde", 213),
    (b"Ouml", 214),
    (b"Oslash", 216),
    (b"Ugrave", 217),
    (b"Uacute", 218),
    (b"Ucirc", 219),
    (b"Uuml", 220),
    (b"Yacute", 221),
    (b"THORN", 222),
    (b"szlig", 223),
    (b"agrave", 224),
    (b"aacute", 225),
    (b"acirc", 226),
    (b"atilde", 227),
    (b"auml", 228),
    (b"aring", 229),
    (b"aelig", 230),
    (b"ccedil", 231),
    (b"egrave", 232),
    (b"eacute", 233),
    (b"ecirc", 234),
    (b"euml", 235),
    (b"igrave", 236),
    (b"iacute", 237),
    (b"icirc", 238),
    (b"iuml", 239),
    (b"eth", 240),
    (b"ntilde", 241),
    (b"ograve", 242),
    (b"oacute", 243),
    (b"ocirc", 244),
    (b"otilde", 245),
    (b"ouml", 246),
    (b"oslash", 248),
    (b"ugrave", 249),
    (b"uacute", 250),
    (b"ucirc", 251),
    (b"uuml", 252),
    (b"yacute", 253),
    (b"thorn", 254),
    (b"yuml", 255),
];

/// Decodes the references in `text`.
pub fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find_byte(b'&') {
        let (before, reference) = rest.split_at(at);
        out.extend_from_slice(before);
        let Some(end) = reference.find_byte(b';') else {
            rest = reference;
            break;
        };
        let name = reference.get(1..end).unwrap_or_default();
        let after = reference.get(end + 1..).unwrap_or_default();
        if let Some(number) = name.strip_prefix(b"#") {
            out.extend(numbered(number));
            rest = after;
        } else if let Some((_, byte)) = ENTITIES.iter().find(|(known, _)| *known == name) {
            out.push(*byte);
            rest = after;
        } else {
            out.push(b'&');
            rest = reference.get(1..).unwrap_or_default();
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The byte with this number, if it is a character.
fn numbered(digits: &[u8]) -> Option<u8> {
    let mut value = 0u32;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    }
    let byte = u8::try_from(value).ok()?;
    let is_control = byte <= 8 || (11..=31).contains(&byte) || (127..=160).contains(&byte);
    (!is_control).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn references_become_latin_1() {
        assert_eq!(decoded(b"a&lt;b&gt;&amp;&quot;"), b"a<b>&\"");
        assert_eq!(decoded(b"&eacute;&#233;&yuml;"), [233, 233, 255]);
        assert_eq!(decoded(b"&nbsp;&copy;&LT;"), b"&nbsp;&copy;&LT;");
        assert_eq!(decoded(b"x&#8;&#300;&#x41;&#;y&#10;"), b"xy\n");
        assert_eq!(decoded(b"a & b &lt"), b"a & b &lt");
        assert_eq!(decoded(b"& a &lt;"), b"& a <");
    }
}
