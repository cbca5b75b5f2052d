//! Text with `%xx` escapes.

/// Decodes every `%xx`. Returns `None` for a `%` without two hexadecimal digits, and for `%00`.
pub fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (pair, after) = after.split_at_checked(2)?;
        let decoded = pair.iter().try_fold(0u8, |value, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            Some(value << 4 | u8::try_from(digit).ok()?)
        })?;
        out.push(Some(decoded).filter(|byte| *byte != 0)?);
        rest = after;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_or_refused() {
        assert_eq!(percent_decoded(b"a%20b%2F%ff").unwrap(), b"a b/\xff");
        for bad in [&b"%"[..], b"%2", b"%zz", b"a%00", b"%+1"] {
            assert_eq!(percent_decoded(bad), None);
        }
    }
}
