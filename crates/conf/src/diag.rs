//! Findings about a configuration: what is wrong, where, and how to fix it.

use std::fmt::Write as _;

use crate::source::{Sources, Span};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The configuration works.
    Warning,
    /// The configuration can't be used.
    Error,
}

/// One finding about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// Apache's number for the event; `AH00526` for a syntax error.
    pub code: &'static str,
    /// The message, in Apache's words if Apache has one.
    pub message: String,
    /// The location; `None` for a finding without one, such as a missing file.
    pub span: Option<Span>,
    /// The `Include` lines that led to the file, the outermost first.
    pub via: Box<[Span]>,
    /// A short label for the caret; may be empty.
    pub label: Box<str>,
    /// A remedy.
    pub help: Option<String>,
}

/// Apache's number of "Syntax error on line …".
pub const SYNTAX_ERROR: &str = "AH00526";

impl Diagnostic {
    /// Returns an error at `span` with Apache's number for syntax errors.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: SYNTAX_ERROR,
            message: message.into(),
            span: Some(span),
            via: Box::default(),
            label: Box::default(),
            help: None,
        }
    }

    /// Returns a warning at `span` with Apache's number for the event, or an empty one.
    pub fn warning(span: Span, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, code, ..Diagnostic::error(span, message) }
    }

    /// Returns an error without a location.
    pub fn without_place(message: impl Into<String>) -> Diagnostic {
        Diagnostic { span: None, ..Diagnostic::error(Span::default(), message) }
    }

    /// Adds a label for the caret.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<Box<str>>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds a help line.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Formats the finding as Apache's tools parse it, without a final line end.
    ///
    /// As in Apache there are two forms: for errors found while files are read (`Syntax error on
    /// line 3 of /path: message`, repeated per `Include` on the way; Apache puts the program's name
    /// in front), and for errors found when directives are processed (`AH00526: Syntax error on
    /// line 3 of /path:`, with the message on its own line). The line is the last one of a
    /// continued line, as Apache counts.
    pub fn render_plain(&self, sources: &Sources) -> String {
        let message = escaped(&self.message);
        let Some(span) = self.span.filter(|_| self.severity == Severity::Error) else {
            return match self.code {
                "" => message,
                code => format!("{code}: {message}"),
            };
        };
        let place = |span: Span| {
            let name = sources.name(span.file);
            let name = escaped(&name.to_string());
            format!("Syntax error on line {} of {name}:", sources.last_line(span))
        };
        if !self.code.is_empty() {
            return format!("{}: {}\n{message}", self.code, place(span));
        }
        if sources.name(span.file) == COMMAND_LINE_SOURCE {
            return format!("Syntax error in -C/-c directive: {message}");
        }
        let mut out = String::new();
        for step in self.via.iter().chain([&span]) {
            let _ = write!(out, "{} ", place(*step));
        }
        out + &message
    }

    /// Formats the finding for people: message, file, line and column, the source line with a
    /// caret, and help. `colour` is for a terminal.
    pub fn render(&self, sources: &Sources, colour: bool) -> String {
        crate::render::render(self, sources, colour)
    }
}

/// The name of the source that holds the arguments of `-C` or `-c`.
pub const COMMAND_LINE_SOURCE: &str = "-c/-C directives";

/// Escapes a text as Apache does for logs: bytes outside of printable ASCII as `\\n` or `\\xhh`,
/// and a backslash doubled. Source: `ap_escape_logitem`, without its treatment of quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x20..0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out
}

/// The candidate nearest to `word`, ignoring case, if it is near enough to suggest a typing error.
///
/// Near means: at most a third of the word's letters are changed, added, omitted or swapped.
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

/// The restricted Damerau-Levenshtein distance: insert, delete, replace, swap neighbours.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found() {
        let known = ["DocumentRoot", "ServerName", "KeepAlive", "Listen"];
        assert_eq!(suggest("DocmentRoot", known), Some("DocumentRoot"));
        assert_eq!(suggest("severname", known), Some("ServerName"));
        assert_eq!(suggest("Lisetn", known), Some("Listen"));
        assert_eq!(suggest("Bogus", known), None);
    }

    #[test]
    fn plain_forms_are_apaches() {
        let mut sources = Sources::new();
        let file = sources.add("/etc/x.conf", &b"a\nListen \\\n zz\n"[..]);
        let span = Span { file, line: 2, column: 1, length: 6 };
        let error = Diagnostic::error(span, "Port must be specified");
        let plain = "AH00526: Syntax error on line 3 of /etc/x.conf:\nPort must be specified";
        assert_eq!(error.render_plain(&sources), plain);
        let reading = Diagnostic { code: "", ..error };
        let plain = "Syntax error on line 3 of /etc/x.conf: Port must be specified";
        assert_eq!(reading.render_plain(&sources), plain);
        let warning = Diagnostic::warning(span, "AH00111", "Config variable ${X} is not defined");
        let plain = "AH00111: Config variable ${X} is not defined";
        assert_eq!(warning.render_plain(&sources), plain);
    }

    #[test]
    fn the_form_for_people_has_line_caret_and_help() {
        let mut sources = Sources::new();
        let file = sources.add("/etc/x.conf", &b"# one\n  Listn 80\n"[..]);
        let span = Span { file, line: 2, column: 3, length: 5 };
        let text = Diagnostic::error(span, "Invalid command 'Listn'")
            .with_label("unknown")
            .with_help("did you mean Listen?")
            .render(&sources, false);
        assert!(text.contains("/etc/x.conf:2:3"), "{text}");
        assert!(text.contains("  Listn 80") && text.contains("^^^^^ unknown"), "{text}");
        assert!(text.contains("help: did you mean Listen?"), "{text}");
    }
}
