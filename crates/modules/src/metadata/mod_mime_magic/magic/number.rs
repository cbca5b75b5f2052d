//! Numbers in magic files.

use super::is_space;

/// Takes the number at the start of a text (`strtol` with base 0): decimal, `0` octal, `0x`
/// hexadecimal. `None` leaves the text as it was.
pub(super) fn take(text: &mut &[u8]) -> Option<i64> {
    let blanks = text.iter().take_while(|byte| is_space(**byte)).count();
    let rest = text.get(blanks..).unwrap_or_default();
    let (is_negative, rest) = match rest {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, rest),
    };
    let (radix, digits) = match rest {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => {
            (16, rest.get(2..).unwrap_or_default())
        }
        [b'0', ..] => (8, rest),
        _ => (10, rest),
    };
    let values = digits.iter().map_while(|byte| char::from(*byte).to_digit(radix));
    let (mut value, mut count) = (0i64, 0);
    for digit in values {
        let digit = i64::from(digit);
        value = value.saturating_mul(i64::from(radix));
        value = if is_negative { value.saturating_sub(digit) } else { value.saturating_add(digit) };
        count += 1;
    }
    if count == 0 {
        return None;
    }
    *text = digits.get(count..).unwrap_or_default();
    Some(value)
}
