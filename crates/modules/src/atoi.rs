//! C's `atoi`, by which Apache reads numbers in many places.

use conf::word::blanks;

/// Parses the number at the start of a text as `atoi`: the lower half of a long, which saturates.
pub(crate) fn atoi(text: &[u8]) -> i32 {
    let text = text.get(blanks(text)..).unwrap_or_default();
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let long = digits.fold(0i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        let value = value.saturating_mul(10);
        if is_negative { value.saturating_sub(digit) } else { value.saturating_add(digit) }
    });
    long as i32
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
