//! A `RewriteRule`.
//!
//! Source: `cmd_rewriterule`.

use conf::Span;
use pcre::Regex;

use super::condition::Condition;
use super::flags::Flags;
use super::template::{Template, TooDeep};

/// A rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Its position.
    pub span: Span,
    /// The pattern for the path.
    pub regex: Regex,
    /// `!`: whether the rule applies to paths that do not match.
    pub negated: bool,
    /// Further conditions.
    pub conditions: Vec<Condition>,
    /// The substitution.
    pub target: Target,
    /// The flags.
    pub flags: Flags,
}

/// The substitution of a rule.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The new path; `None` to keep it.
    pub template: Option<Template>,
    /// The substitution as written, without a trailing question mark: it determines whether a path
    /// is one of the file system, and is logged.
    pub text: Vec<u8>,
    /// Whether the query is dropped: the text ends with a question mark, or has none with `QSD`.
    pub drops_query: bool,
}

impl Target {
    /// Parses a substitution.
    ///
    /// # Errors
    /// [`TooDeep`]
    pub fn parse(text: &[u8], flags: &Flags) -> Result<Target, TooDeep> {
        let stays = text == b"-" || flags.ends;
        let (text, drops_query) = match text.strip_suffix(b"?") {
            Some(rest) if !flags.appends_query => (rest, true),
            _ => (text, flags.drops_query && !text.contains(&b'?')),
        };
        let template = if stays { None } else { Some(Template::parse(text)?) };
        Ok(Target { template, text: text.to_vec(), drops_query })
    }
}

impl Rule {
    /// Whether the rule sets a type or handler.
    pub fn forces_type(&self) -> bool {
        self.flags.media_type.is_some() || self.flags.handler.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags;
    use super::*;

    #[test]
    fn a_question_mark_at_the_end_goes_unless_the_query_is_appended() {
        let target =
            |text: &[u8], field: &[u8]| Target::parse(text, &flags::parse(field).unwrap()).unwrap();
        assert!(target(b"/a?", b"[L]").drops_query);
        assert_eq!(target(b"/a?", b"[L]").text, b"/a");
        assert!(!target(b"/a?", b"[QSA]").drops_query);
        assert!(target(b"/a", b"[QSD]").drops_query);
        assert!(!target(b"/a?b", b"[QSD]").drops_query);
        assert!(target(b"-", b"[L]").template.is_none());
        assert!(target(b"/a", b"[F]").template.is_none());
    }
}
