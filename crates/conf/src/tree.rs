//! The configuration as a tree of directives and sections, untyped.

use bstr::BString;

use crate::diag::Diagnostic;
use crate::source::Span;
use crate::text::Text;
use crate::word;

/// A directive, or a section with what stands in it.
#[derive(Clone, Debug)]
pub struct Node {
    /// The name as written, without `<` of a section.
    pub name: BString,
    /// Where the name stands (for a section without the `<`).
    pub span: Span,
    /// All behind the name, trimmed, with `${NAME}` replaced; for a section without the closing `>`
    /// and what follows it.
    pub args: Text,
    /// What stands in the section; `None` for a directive.
    pub children: Option<Vec<Node>>,
}

impl Node {
    /// Is it `<Name …>`?
    pub fn is_section(&self) -> bool {
        self.children.is_some()
    }

    /// Is this its name? Case does not count.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The arguments, split and unquoted as `ap_getword_conf` does.
    ///
    /// Blanks separate; `"…"` and `'…'` hold blanks; a backslash before a quote (or another
    /// backslash) inside quotes takes its meaning off. A quote that is not closed reaches to the
    /// end of the line, as in Apache.
    ///
    /// # Errors
    /// None today: every line has words. Kept for forms that can be refused.
    pub fn words(&self) -> Result<Vec<Arg>, Diagnostic> {
        Ok(word::Words::new(&self.args).collect())
    }

    /// An error about this directive, with the caret under its name.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(self.span, message)
    }
}

/// One argument of a directive, unquoted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arg {
    /// The bytes; file names need not be UTF-8.
    pub text: BString,
    /// Where it stands, its quotes included.
    pub span: Span,
}

impl Arg {
    /// Is this its text? Case does not count.
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    /// An error about this argument.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(self.span, message)
    }
}
