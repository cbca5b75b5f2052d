//! Names of fields, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;

/// The highest bit of each byte.
const HIGH: u64 = ONES << 7;

/// Compares two names, ignoring ASCII case.
#[inline]
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let (Some(one_end), Some(other_end)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) else {
        return one.iter().zip(other).all(|(a, b)| a.eq_ignore_ascii_case(b));
    };
    // The last word overlaps the one before it.
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    words
        .chain([(one_end, other_end)])
        .all(|(a, b)| is_same(u64::from_le_bytes(*a), u64::from_le_bytes(*b)))
}

/// Compares eight bytes, ignoring ASCII case.
#[inline]
fn is_same(one: u64, other: u64) -> bool {
    let difference = one ^ other;
    // What differs may only be the bit of a letter's case.
    difference == 0 || (difference & !(ONES << 5) == 0 && (difference << 2) & !letters(one) == 0)
}

/// The number of letters and hyphens, the usual bytes of a name, at the beginning of `text`; the
/// last few of a text are not counted.
#[inline]
pub(crate) fn name_start(text: &[u8]) -> usize {
    let mut len = 0;
    for word in text.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        let hyphen = word ^ (ONES * b'-' as u64);
        let hyphens = !(((hyphen & !HIGH) + !HIGH) | hyphen);
        let others = !(letters(word) | hyphens) & HIGH;
        if others != 0 {
            return len + others.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len
}

/// The highest bit of each byte that is a letter; lower bits are arbitrary.
#[inline]
const fn letters(word: u64) -> u64 {
    let low = (word | (ONES << 5)) & !HIGH;
    let from_a = low + ONES * (0x80 - b'a' as u64);
    let after_z = low + ONES * (0x7f - b'z' as u64);
    from_a & !after_z & !word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = Vec<u8>> {
        let byte =
            prop_oneof![prop::sample::select(b"aAbBzZ@[`{-\r\x0d\x4d".to_vec()), any::<u8>()];
        prop::collection::vec(byte, 0..30)
    }

    /// What distinguishes two bytes: often nothing, or the bit of a letter's case.
    fn flip() -> impl Strategy<Value = u8> {
        prop_oneof![8 => Just(0), 8 => Just(0x20), 1 => any::<u8>()]
    }

    proptest! {
        #[test]
        fn case_is_ignored_only_in_letters(
            one in name(),
            flips in prop::collection::vec(flip(), 30),
        ) {
            let other: Vec<u8> = one.iter().zip(&flips).map(|(byte, flip)| byte ^ flip).collect();
            prop_assert_eq!(same(&one, &other), one.eq_ignore_ascii_case(&other));
            prop_assert!(same(&one, &one.to_ascii_uppercase()));
        }

        #[test]
        fn a_name_starts_with_letters_and_hyphens(text in name()) {
            let is_usual = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-';
            let whole = text.len() / 8 * 8;
            let expected = text[..whole].iter().take_while(|byte| is_usual(byte)).count();
            prop_assert_eq!(name_start(&text), expected);
        }
    }

    #[test]
    fn every_byte_has_its_class() {
        for byte in 0..=255u8 {
            let expected = if byte.is_ascii_alphabetic() || byte == b'-' { 8 } else { 3 };
            let mut text = *b"abcdefgh";
            text[3] = byte;
            assert_eq!(name_start(&text), expected, "{byte}");
            for other in 0..=255u8 {
                let mut flipped = text;
                flipped[3] = other;
                assert_eq!(same(&text, &flipped), byte.eq_ignore_ascii_case(&other));
            }
        }
    }
}
