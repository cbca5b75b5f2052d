//! The configuration as a tree of directives and sections, untyped.

use bstr::{BString, ByteSlice};

use crate::diag::Diagnostic;
use crate::source::Span;
use crate::text::Text;
use crate::word;

/// A directive, or a section with its contents.
#[derive(Clone, Debug)]
pub struct Node {
    /// The name as written, without `<` of a section.
    pub name: BString,
    /// The position of the name, for a section without the `<`.
    pub span: Span,
    /// The text after the name, trimmed, with `${NAME}` replaced; for a section without the closing
    /// `>` and anything after it.
    pub args: Text,
    /// The contents of a section; `None` for a directive.
    pub children: Option<Vec<Node>>,
}

impl Node {
    /// Whether this is a section, `<Name …>`.
    pub fn is_section(&self) -> bool {
        self.children.is_some()
    }

    /// Whether this is the node's name, ignoring case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Splits and unquotes the arguments as `ap_getword_conf` does.
    ///
    /// Blanks separate arguments. `"…"` and `'…'` may contain blanks; inside quotes a backslash
    /// escapes a quote or another backslash. An empty `""` is a word here; Apache's directives of
    /// one or two arguments treat it as missing, and lists end there. As in Apache, an unclosed
    /// quote extends to the end of the line.
    ///
    /// # Errors
    /// None at present. Reserved for forms that can be refused.
    pub fn words(&self) -> Result<Vec<Arg>, Diagnostic> {
        Ok(word::Words::new(&self.args).collect())
    }

    /// Returns an error about this directive, with the caret under its name.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(self.span, message)
    }
}

/// One argument of a directive, unquoted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arg {
    /// The bytes; file names need not be UTF-8.
    pub text: BString,
    /// The position, including its quotes.
    pub span: Span,
}

impl Arg {
    /// Whether this is the argument's text, ignoring case.
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    /// The span of `length` bytes from `offset` of the text, as in errors of expressions and
    /// patterns. If backslashes or `${}` shift the offsets, the span of the whole argument.
    pub fn part(&self, offset: usize, length: usize) -> Span {
        let chars = |bytes: &[u8]| u32::try_from(bytes.chars().count()).unwrap_or(u32::MAX);
        let quote = match self.span.length.checked_sub(chars(&self.text)) {
            Some(quotes @ (0 | 2)) => quotes / 2,
            _ => return self.span,
        };
        let before = chars(self.text.get(..offset).unwrap_or(&self.text));
        let part = self.text.get(offset..offset.saturating_add(length)).unwrap_or(&[]);
        Span { column: self.span.column + quote + before, length: chars(part), ..self.span }
    }

    /// Returns an error about this argument.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(self.span, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_argument_have_places() {
        let span = Span { line: 1, column: 5, length: 8, ..Span::default() };
        let quoted = Arg { text: "%{NOPE".into(), span };
        let part = quoted.part(2, 4);
        assert_eq!((part.column, part.length), (8, 4));
        let plain = Arg { text: "%{NOPE}x".into(), span };
        assert_eq!(plain.part(7, 1).column, 12);
        assert_eq!(plain.part(90, 1).length, 0);
        let escaped = Arg { text: "abc".into(), span };
        assert_eq!(escaped.part(1, 1), span);
    }
}
