//! Regular expressions of old conditions: compiled with the page, unless they have variables.

use pcre::{Error, Flags, Regex};

use super::super::substitute::literal;

/// The most bytes of a page's patterns that are compiled with it; further ones are compiled when
/// they are matched.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A regular expression.
#[derive(Debug)]
pub struct Pattern {
    /// Its text, before variables are replaced.
    pub text: Vec<u8>,
    /// What is matched, if that is known.
    pub kept: Option<Kept>,
}

/// A regular expression without variables.
#[derive(Debug)]
pub struct Kept {
    /// Its text as it is compiled.
    pub text: Vec<u8>,
    /// What it is compiled to; `None` if it is invalid.
    pub regex: Option<Regex>,
}

/// Compiles a pattern.
pub fn compile(text: &[u8]) -> Result<Regex, Error> {
    Regex::new(text, Flags::default())
}

/// Measures the patterns of a page.
pub struct Patterns {
    /// [`pcre::compiled_bytes`] at the beginning.
    begin: usize,
}

impl Patterns {
    /// Those of a page that is about to be parsed.
    pub fn new() -> Patterns {
        Patterns { begin: pcre::compiled_bytes() }
    }

    /// One of them.
    pub fn pattern(&self, text: Vec<u8>) -> Pattern {
        let taken = pcre::compiled_bytes().wrapping_sub(self.begin);
        let kept = (taken < KEPT_BYTES_MAX).then(|| literal(&text)).flatten().map(|text| {
            let regex = compile(&text).ok();
            Kept { text, regex }
        });
        Pattern { text, kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_without_variables_are_kept() {
        let patterns = Patterns::new();
        let of = |text: &[u8]| patterns.pattern(text.to_vec()).kept;
        assert!(of(b"^/a$").unwrap().regex.is_some());
        assert_eq!(of(br"a\$b").unwrap().text, b"a$b");
        assert!(of(b"(").unwrap().regex.is_none());
        for text in [&b"^$a"[..], b"${a}b", b"${a"] {
            assert!(of(text).is_none());
        }
    }

    #[test]
    fn a_page_keeps_a_bounded_number() {
        let patterns = Patterns::new();
        let text = b"(a|b|c|d|e|f|g|h|i|j)+x".repeat(20);
        let kept = (0..10_000).map_while(|_| patterns.pattern(text.clone()).kept);
        let kept: Vec<_> = kept.collect();
        assert!((10..10_000).contains(&kept.len()), "{}", kept.len());
    }
}
