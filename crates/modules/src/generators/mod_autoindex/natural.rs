//! Compares names with embedded numbers by value: `VersionSort`.
//!
//! Source: the results of `apr_strnatcmp`.

use std::cmp::Ordering;

/// Compares; `folding` ignores case.
pub fn compare(a: &[u8], b: &[u8], folding: bool) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        (a, b) = (skip_blanks(a), skip_blanks(b));
        let (first_a, first_b) = (a.first().copied(), b.first().copied());
        let (Some(byte_a), Some(byte_b)) = (first_a, first_b) else {
            return first_a.cmp(&first_b);
        };
        if byte_a.is_ascii_digit() && byte_b.is_ascii_digit() {
            // A number with a leading zero is a fraction, which is compared from the left.
            let ordering = match byte_a == b'0' || byte_b == b'0' {
                true => fractions(a, b),
                false => integers(a, b),
            };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        let fold = |byte: u8| if folding { byte.to_ascii_uppercase() } else { byte };
        // Apache compares plain chars: bytes above 127 are negative.
        let ordering = fold(byte_a).cast_signed().cmp(&fold(byte_b).cast_signed());
        if ordering != Ordering::Equal {
            return ordering;
        }
        (a, b) = (a.get(1..).unwrap_or_default(), b.get(1..).unwrap_or_default());
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | 9..=13)).count();
    text.get(blanks..).unwrap_or_default()
}

fn digits(text: &[u8]) -> &[u8] {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(..count).unwrap_or_default()
}

/// The longer number is greater; at equal length the first differing digit decides.
fn integers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (digits(a), digits(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The first differing digit decides; otherwise the longer number is greater.
fn fractions(a: &[u8], b: &[u8]) -> Ordering {
    digits(a).cmp(digits(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_numbers_and_zeros_make_fractions() {
        let versions =
            ["foo-1.7", "foo-1.7.2", "foo-1.7.12", "foo-1.8.2", "foo-1.8.2a", "foo-1.12"];
        let fractions = ["foo-1.001", "foo-1.002", "foo-1.030", "foo-1.04"];
        for list in [&versions[..], &fractions[..]] {
            for pair in list.windows(2) {
                let (a, b) = (pair[0].as_bytes(), pair[1].as_bytes());
                assert_eq!(compare(a, b, false), Ordering::Less, "{pair:?}");
            }
        }
        assert_eq!(compare(b"a", b"A", true), Ordering::Equal);
        assert_eq!(compare(b"a", b"A", false), Ordering::Greater);
    }

    proptest! {
        #[test]
        fn swapping_reverses(a in "[a-c0-3 .]{0,9}", b in "[a-c0-3 .]{0,9}") {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            prop_assert_eq!(compare(a, b, false), compare(b, a, false).reverse());
        }
    }
}
