//! Formats a diagnostic with its source line and a caret.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use bstr::ByteSlice;

use crate::diag::{Diagnostic, Severity};
use crate::source::{Sources, Span};

/// Most characters shown of a source line; the rest is cut off.
const MAX_SHOWN_CHARS: usize = 400;

pub(crate) fn render(diagnostic: &Diagnostic, sources: &Sources, colour: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let shown = diagnostic.span.and_then(|span| Shown::new(span, sources));
    let mut title = level.primary_title(printable(&diagnostic.message));
    if !diagnostic.code.is_empty() {
        title = title.id(diagnostic.code);
    }
    let mut group = match &shown {
        Some(shown) => Group::with_title(title).element(shown.snippet(&diagnostic.label)),
        None => Group::with_title(title),
    };
    for step in &diagnostic.via {
        let name = sources.name(step.file);
        let note = printable(&format!("included from {name}:{}", step.line));
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(printable(help)));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// The source line, and the part of it that the finding is about.
struct Shown {
    name: String,
    line: String,
    number: usize,
    marked: Range<usize>,
}

impl Shown {
    fn new(span: Span, sources: &Sources) -> Option<Shown> {
        let source = sources.line(span)?;
        let line: String = source
            .chars()
            .take(MAX_SHOWN_CHARS)
            // A tab or control character would displace the caret.
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        let column = usize::try_from(span.column).ok()?.saturating_sub(1);
        let length = usize::try_from(span.length).ok()?;
        let byte = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
        let marked = byte(column)..byte(column.saturating_add(length));
        let name = printable(&sources.name(span.file).to_str_lossy());
        Some(Shown { name, number: usize::try_from(span.line).ok()?, marked, line })
    }

    fn snippet<'s>(&'s self, label: &'s str) -> Snippet<'s, annotate_snippets::Annotation<'s>> {
        let mut annotation = AnnotationKind::Primary.span(self.marked.clone());
        if !label.is_empty() {
            annotation = annotation.label(label);
        }
        Snippet::source(self.line.as_str())
            .path(self.name.as_str())
            .line_start(self.number)
            .annotation(annotation)
    }
}

/// Replaces control characters, which could affect a terminal, except line ends.
fn printable(text: &str) -> String {
    let harmless = |letter: char| if letter.is_control() && letter != '\n' { ' ' } else { letter };
    text.chars().map(harmless).collect()
}
