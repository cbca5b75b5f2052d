//! The fields of a form (`application/x-www-form-urlencoded`). Source: `ap_parse_form_data`.

/// The names and values of a form, in order.
pub(crate) fn fields(text: &[u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    text.split(|byte| *byte == b'&').map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at(at);
        (unescape(name), unescape(value.get(1..).unwrap_or_default()))
    })
}

/// A value up to its first NUL; a bad escape stays as it is.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let digit = |at: usize| (*tail.get(at)? as char).to_digit(16);
        let byte = match first {
            0 => break,
            b'+' => b' ',
            b'%' => match (digit(0), digit(1)) {
                (Some(high), Some(low)) => {
                    rest = tail.get(2..).unwrap_or_default();
                    match u8::try_from(high * 16 + low) {
                        Ok(byte) if byte != 0 => out.push(byte),
                        _ => break,
                    }
                    continue;
                }
                _ => b'%',
            },
            other => *other,
        };
        out.push(byte);
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn a_value_ends_at_its_first_nul() {
        assert_eq!(unescape(b"a%00b"), b"a");
        assert_eq!(unescape(b"a\0b"), b"a");
        assert_eq!(unescape(b"%zz%4+%41"), b"%zz%4 A");
    }
}
