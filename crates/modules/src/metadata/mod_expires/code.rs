//! A time of expiry, as the directives write it: `access plus 1 month`, `M3600`.
//!
//! Source: `check_code` (modules/metadata/mod_expires.c).

use bstr::BStr;

use crate::atoi::atoi;

/// A parsed code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// What the seconds are counted from.
    pub base: Base,
    /// Seconds, as Apache's `int`.
    pub seconds: i32,
}

/// What the seconds are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The request: `access`, `now`, `A`.
    Access,
    /// The modification of the file: `modification`, `M`.
    Modification,
}

/// The units: their first letters, and their seconds.
const UNITS: [(&[u8], i32); 7] = [
    (b"y", 60 * 60 * 24 * 365),
    (b"mo", 60 * 60 * 24 * 30),
    (b"w", 60 * 60 * 24 * 7),
    (b"d", 60 * 60 * 24),
    (b"h", 60 * 60),
    (b"mi", 60),
    (b"s", 1),
];

impl Code {
    /// Parses a code.
    ///
    /// # Errors
    /// Apache's message.
    pub fn parse(text: &[u8]) -> Result<Code, String> {
        match text {
            [b'A', seconds @ ..] => {
                return Ok(Code { base: Base::Access, seconds: atoi(seconds) });
            }
            [b'M', seconds @ ..] => {
                return Ok(Code { base: Base::Modification, seconds: atoi(seconds) });
            }
            _ => {}
        }
        let mut rest = text;
        let base = next_word(&mut rest);
        let base = match base.first().map(u8::to_ascii_lowercase) {
            Some(b'n' | b'a') => Base::Access,
            Some(b'm') => Base::Modification,
            _ => {
                let base = BStr::new(&base);
                return Err(format!("bad expires code, unrecognised <base> '{base}'"));
            }
        };
        let mut word = next_word(&mut rest);
        if matches!(word.first(), Some(b'p' | b'P')) {
            word = next_word(&mut rest);
        }
        let mut seconds = 0i32;
        while !word.is_empty() {
            if !word.first().is_some_and(u8::is_ascii_digit) {
                let word = BStr::new(&word);
                return Err(format!("bad expires code, numeric value expected <num> '{word}'"));
            }
            let unit = unit(&next_word(&mut rest))?;
            // Apache's ints overflow.
            seconds = seconds.wrapping_add(unit.wrapping_mul(atoi(&word)));
            word = next_word(&mut rest);
        }
        Ok(Code { base, seconds })
    }
}

fn unit(word: &[u8]) -> Result<i32, String> {
    if word.is_empty() {
        return Err("bad expires code, missing <type>".to_owned());
    }
    seconds_of(word).ok_or_else(|| {
        let word = BStr::new(word);
        format!("bad expires code, unrecognised <type>'{word}'")
    })
}

/// The seconds of a unit, which its first letters determine.
pub(in crate::metadata) fn seconds_of(unit: &[u8]) -> Option<i32> {
    let lower = unit.to_ascii_lowercase();
    let found = UNITS.iter().find(|(letters, _)| lower.starts_with(letters));
    found.map(|(_, seconds)| *seconds)
}

/// Takes the next word; it is empty at the end.
pub(in crate::metadata) fn next_word(rest: &mut &[u8]) -> Vec<u8> {
    let text = rest.trim_ascii_start();
    let Some((word, length)) = conf::word::first_word(text) else {
        *rest = b"";
        return Vec::new();
    };
    *rest = text.get(length..).unwrap_or_default();
    word.into()
}

#[cfg(test)]
mod tests {
    use super::Base::{Access, Modification};
    use super::Code;

    fn parsed(text: &str) -> Option<Code> {
        Code::parse(text.as_bytes()).ok()
    }

    #[test]
    fn codes_of_words_and_of_letters() {
        let access = |seconds| Some(Code { base: Access, seconds });
        assert_eq!(parsed("A3600"), access(3600));
        assert_eq!(parsed("Access plus 1 hour"), access(0));
        assert_eq!(parsed("access plus 1 month 2 minutes"), access(2_592_120));
        assert_eq!(parsed("now 1 d"), access(86_400));
        assert_eq!(parsed("access plus 100 years"), access(100i32.wrapping_mul(31_536_000)));
        assert_eq!(parsed("m"), Some(Code { base: Modification, seconds: 0 }));
        assert_eq!(parsed("access plus 1 m"), None);
        assert_eq!(parsed("access 1"), None);
        assert_eq!(parsed(""), None);
    }
}
