//! The time in a reply to `MDTM`.

use crate::date::days_from_civil;

/// Digits of the fields of `YYYYMMDDhhmmss`.
const DIGITS: [usize; 6] = [4, 2, 2, 2, 2, 2];

/// Seconds since 1970 of `YYYYMMDDhhmmss` at the beginning of a text. Fields that are too large go
/// over into the next one (`timegm`), and each may have fewer digits if the text goes on otherwise.
pub fn modified(text: &[u8]) -> Option<i64> {
    let mut rest = text;
    let mut fields = [0i64; DIGITS.len()];
    for (field, most) in fields.iter_mut().zip(DIGITS) {
        let count = rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, after) = rest.split_at_checked(count).filter(|_| count > 0)?;
        *field = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        rest = after;
    }
    let [year, month, day, hour, minute, second] = fields;
    let months = year * 12 + month - 1;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let days = days_from_civil(u32::try_from(year).ok()?, month as u32, 1) + day - 1;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(modified(b"19700102000001"), Some(86_401));
        assert_eq!(modified(b"20221332256199.5"), Some(1_675_303_359));
        assert_eq!(modified(b"2022"), None);
        assert_eq!(modified(b"x"), None);
    }
}
