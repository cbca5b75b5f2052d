//! Comma-separated field values: tokens and items (`ap_find_token`, `ap_find_list_item`).

/// Whether `list` has `token` among its tokens, compared without ASCII case. Tokens end at
/// whitespace, control bytes and the HTTP separators, as in `ap_find_token`.
pub fn contains_token(list: &[u8], token: &[u8]) -> bool {
    tokens(list).any(|found| found.eq_ignore_ascii_case(token))
}

/// The tokens of a field value: every run of bytes between separators.
pub fn tokens(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| is_separator(*byte)).filter(|token| !token.is_empty())
}

fn is_separator(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f || b"()<>@,;\\/[]?={}:\"".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_split_at_separators() {
        assert!(contains_token(b"keep-alive, Upgrade", b"upgrade"));
        assert!(contains_token(b"close;x", b"CLOSE"));
        assert!(!contains_token(b"closed", b"close"));
        assert!(!contains_token(b"", b"close"));
    }
}
