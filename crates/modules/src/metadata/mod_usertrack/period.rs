//! How long a cookie lives: `3600`, `2 weeks 3 days`.
//!
//! Source: `set_cookie_exp` (modules/metadata/mod_usertrack.c).

use crate::atoi::atoi;
use crate::metadata::mod_expires::code::{next_word, seconds_of};

/// Parses a period into seconds, as Apache's `int`.
///
/// # Errors
/// Apache's message.
pub(super) fn parse(text: &[u8]) -> Result<i32, &'static str> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    if is_digit(text.first()) && is_digit(text.last()) {
        return Ok(atoi(text));
    }
    let mut rest = text;
    let mut word = next_word(&mut rest);
    if matches!(word.first(), Some(b'p' | b'P')) {
        word = next_word(&mut rest);
    }
    let mut seconds = 0i32;
    while !word.is_empty() {
        if !is_digit(word.first()) {
            return Err("bad expires code, numeric value expected.");
        }
        let unit = next_word(&mut rest);
        if unit.is_empty() {
            return Err("bad expires code, missing <type>");
        }
        let unit = seconds_of(&unit).ok_or("bad expires code, unrecognized type")?;
        seconds = seconds.wrapping_add(unit.wrapping_mul(atoi(&word)));
        word = next_word(&mut rest);
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn periods_of_numbers_and_of_words() {
        assert_eq!(parse(b"3600"), Ok(3600));
        assert_eq!(parse(b"1 day 2"), Ok(1));
        assert_eq!(parse(b"2 weeks 3 days 7 hours"), Ok(1_494_000));
        assert_eq!(parse(b"plus 1 minute"), Ok(60));
        assert_eq!(parse(b"5x"), Err("bad expires code, missing <type>"));
        assert_eq!(parse(b"1 m"), Err("bad expires code, unrecognized type"));
        assert_eq!(parse(b"-5"), Err("bad expires code, numeric value expected."));
    }
}
