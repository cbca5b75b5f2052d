//! The argument of a section: a path, a pattern, or words.

use conf::Arg;
use server::directive::Fault;

/// The argument of a section.
pub(super) struct Argument {
    /// The path or pattern.
    pub text: Vec<u8>,
    /// Whether it is a regular expression, by the section's name or by a preceding `~`.
    pub is_regex: bool,
    /// The rest.
    pub rest: Vec<u8>,
}

impl Argument {
    /// Parses it; a regular expression if `is_match`, or after a `~`.
    pub fn read(name: &str, raw: &Arg, is_match: bool) -> Result<Argument, Fault> {
        let missing =
            || Fault::new(format!("<{name}> directive requires additional arguments")).at(raw);
        let (mut text, mut rest) = split(&raw.text).ok_or_else(missing)?;
        let tilde = !is_match && text == b"~";
        if tilde {
            // Without a pattern, it is the empty one, which matches everything.
            (text, rest) = split(&rest).unwrap_or_default();
        }
        Ok(Argument { text, is_regex: is_match || tilde, rest })
    }
}

/// The first word and the rest.
pub(super) fn split(text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = text.trim_ascii_start();
    let (word, length) = conf::word::first_word(text)?;
    Some((word.to_vec(), text.get(length..).unwrap_or_default().trim_ascii().to_vec()))
}

/// The words of the whole argument.
pub(super) fn words(raw: &Arg) -> Vec<Arg> {
    let mut rest = raw.text.to_vec();
    let mut found = Vec::new();
    while let Some((word, after)) = split(&rest) {
        found.push(Arg { text: word.into(), span: raw.span });
        rest = after;
    }
    found
}
