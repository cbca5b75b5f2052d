//! What is wrong with a configuration, where, and what may help.

use std::fmt::Write as _;

use crate::source::{Sources, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; the configuration works.
    Warning,
    /// The configuration can't be used.
    Error,
}

/// One finding about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Apache's number for the event, `AH00526` for a syntax error.
    pub code: &'static str,
    /// What is wrong, in Apache's words where it has some.
    pub message: String,
    /// Where; `None` for what has no place, as a file that is not there.
    pub span: Option<Span>,
    /// Short words for under the caret; may be empty.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Apache's number of "Syntax error on line …".
pub const SYNTAX_ERROR: &str = "AH00526";

impl Diagnostic {
    /// An error at `span`, with Apache's number of syntax errors.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: SYNTAX_ERROR,
            message: message.into(),
            span: Some(span),
            label: String::new(),
            help: None,
        }
    }

    /// A warning at `span`, with Apache's number for the event (empty when it has none).
    pub fn warning(span: Span, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, code, ..Diagnostic::error(span, message) }
    }

    /// An error that belongs to no line.
    pub fn without_place(message: impl Into<String>) -> Diagnostic {
        Diagnostic { span: None, ..Diagnostic::error(Span::default(), message) }
    }

    /// The same with words under the caret.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// The same with a help line.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The form that Apache's tools parse: `AH00526: Syntax error on line 3 of /path:`, then the
    /// message on a line of its own. No line end at the end.
    pub fn render_plain(&self, sources: &Sources) -> String {
        let mut out = String::new();
        if !self.code.is_empty() {
            let _ = write!(out, "{}: ", self.code);
        }
        if let (Some(span), Severity::Error) = (self.span, self.severity) {
            let name = sources.name(span.file);
            let _ = writeln!(out, "Syntax error on line {} of {name}:", span.line);
        }
        out.push_str(&self.message);
        out
    }
}

/// The candidate nearest to `word` (case does not count), if it is near enough to be a slip.
///
/// Near: at most a third of the word's letters changed, added, left out or swapped.
pub fn suggest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = word.to_ascii_lowercase();
    let limit = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Damerau's distance in its restricted form: insert, delete, replace, swap neighbours.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (row, letter) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let at =
                |list: &[usize], index: usize| list.get(index).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&above, column) + usize::from(letter != *other);
            let mut best = replaced.min(at(&above, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = column
                .checked_sub(1)
                .filter(|earlier| right.get(*earlier) == Some(&letter) && previous == Some(*other));
            if let Some(earlier) = swapped {
                best = best.min(at(&before, earlier) + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
        previous = Some(letter);
    }
    above.last().copied().unwrap_or(0)
}
