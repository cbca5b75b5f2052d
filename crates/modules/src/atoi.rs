//! C's `atoi` and `atol`, by which Apache reads numbers in many places.

use conf::word::blanks;

/// Parses the number at the start of a text as `atoi`: the lower half of [`atol`].
pub(crate) fn atoi(text: &[u8]) -> i32 {
    atol(text) as i32
}

/// Parses the number at the start of a text as `atol`, which saturates; 0 if there is none.
pub(crate) fn atol(text: &[u8]) -> i64 {
    let text = text.get(blanks(text)..).unwrap_or_default();
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        let value = value.saturating_mul(10);
        if is_negative { value.saturating_sub(digit) } else { value.saturating_add(digit) }
    })
}

#[cfg(test)]
mod tests {
    use super::atoi;

    #[test]
    fn numbers_are_atois() {
        for (text, value) in
            [("12x", 12), (" -3", -3), ("+4", 4), ("x", 0), ("99999999999999999999", -1)]
        {
            assert_eq!(atoi(text.as_bytes()), value);
        }
    }
}
