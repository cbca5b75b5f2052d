//! Fills a template from a match: Apache's `ap_pregsub`.

use crate::captures::Captures;

/// Most bytes of a substituted text; Apache's `AP_PREGSUB_MAXLEN`.
pub const MAX_SUBSTITUTION_BYTES: usize = 64 * 1024;

/// The substituted text exceeds its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("substitution is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit in bytes.
    pub limit: usize,
}

/// Appends `template` to `out` with `$0`–`$9` replaced by the text of the groups.
///
/// A backslash escapes the byte behind it and is dropped. An unset group is empty. If `captures` is
/// empty, the template is copied unchanged, including backslashes. Source: `regsub_core` behind
/// `ap_pregsub` of Apache 2.4, where `&` has no special meaning.
///
/// # Errors
/// [`TooLong`] once the substituted text would reach `limit` bytes; text already appended stays.
pub fn substitute(
    template: &[u8],
    subject: &[u8],
    captures: &Captures,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let start = out.len();
    let mut rest = template;
    while !rest.is_empty() {
        let (piece, next) = match rest {
            _ if captures.is_empty() => (rest, &[][..]),
            [b'$', digit @ b'0'..=b'9', next @ ..] => {
                let group = captures.text(usize::from(digit - b'0'), subject);
                (group.unwrap_or(&[]), next)
            }
            [b'\\', escaped @ ..] if !escaped.is_empty() => escaped.split_at(1),
            _ => literal(rest),
        };
        if out.len() - start + piece.len() >= limit {
            return Err(TooLong { limit });
        }
        out.extend_from_slice(piece);
        rest = next;
    }
    Ok(())
}

/// The first byte and all bytes up to the next special one.
fn literal(text: &[u8]) -> (&[u8], &[u8]) {
    let special = |byte: &u8| matches!(byte, b'$' | b'\\');
    let tail = text.get(1..).unwrap_or(&[]);
    let length = tail.iter().position(special).unwrap_or(tail.len()) + 1;
    text.split_at(length.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Regex};

    fn filled(template: &str) -> String {
        let subject = b"/old/name.html";
        let mut captures = Captures::new();
        let regex = Regex::new(b"^/(\\w+)/(\\w+)(z)?", Flags::default()).unwrap();
        assert!(regex.matches(subject, Some(&mut captures)).surely());
        let mut out = Vec::new();
        substitute(template.as_bytes(), subject, &captures, MAX_SUBSTITUTION_BYTES, &mut out)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn groups_and_escapes() {
        assert_eq!(filled("/new/$2"), "/new/name");
        assert_eq!(filled("<$0>&"), "</old/name>&");
        assert_eq!(filled("\\&\\$1\\x\\\\"), "&$1x\\");
        assert_eq!(filled("$3$9$"), "$");
        assert_eq!(filled("a$b\\"), "a$b\\");
    }

    #[test]
    fn the_limit_holds() {
        let error = substitute(b"abcdef", b"", &Captures::new(), 5, &mut Vec::new());
        assert_eq!(error, Err(TooLong { limit: 5 }));
        let mut out = b"before".to_vec();
        substitute(b"a\\$1", b"", &Captures::new(), 5, &mut out).unwrap();
        assert_eq!(out, b"beforea\\$1");
    }

    proptest::proptest! {
        #[test]
        fn text_without_specials_is_kept(template in "[^$&\\\\]*") {
            let mut out = Vec::new();
            substitute(template.as_bytes(), b"", &Captures::new(), usize::MAX, &mut out).unwrap();
            assert_eq!(out, template.as_bytes());
        }
    }
}
