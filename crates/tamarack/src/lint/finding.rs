//! A finding, and how it is written.

use std::fmt::Write as _;

use conf::Span;

use crate::explain::places::Places;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It exposes what should be protected.
    Severe,
    /// It does not do what it seems to do.
    Hint,
}

/// A line that does not do what it seems to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The directive; `None` if it is about a file.
    pub span: Option<Span>,
    /// A path: the finding concerns only requests whose URL or file contains it.
    pub about: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Finding {
    /// Returns a hint about a directive.
    pub fn hint(span: Span, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let (message, remedy) = (message.into(), remedy.into());
        Finding { severity: Severity::Hint, span: Some(span), about: None, message, remedy }
    }

    /// The same about a path.
    #[must_use]
    pub fn about(self, path: &str) -> Finding {
        Finding { about: Some(path.to_owned()), ..self }
    }

    /// The same, but severe if `is_severe`.
    #[must_use]
    pub fn severe_if(self, is_severe: bool) -> Finding {
        let severity = if is_severe { Severity::Severe } else { self.severity };
        Finding { severity, ..self }
    }
}

/// Writes findings, each with its place and remedy.
pub fn write(found: &[Finding], places: &Places) -> String {
    let mut out = String::new();
    for one in found {
        let word = if one.severity == Severity::Severe { "severe" } else { "hint" };
        let place = one.span.and_then(|span| places.of(span));
        let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
        let _ = writeln!(out, "{place}{word}: {}\n    remedy: {}", one.message, one.remedy);
    }
    let severe = found.iter().filter(|one| one.severity == Severity::Severe).count();
    let hints = found.len() - severe;
    let ending = if hints == 1 { "" } else { "s" };
    let _ = writeln!(out, "{severe} severe, {hints} hint{ending}");
    out
}
