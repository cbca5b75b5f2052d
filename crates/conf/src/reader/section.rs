//! Sections: opening, closing, and recovery from tags that do not match.

use bstr::{BString, ByteSlice};

use super::stream::Streams;
use super::{Reader, Statement};
use crate::source::Span;
use crate::text::Text;
use crate::tree::Node;

/// Deepest nesting of sections.
pub const MAX_SECTION_DEPTH: usize = 128;

/// An open section or condition.
pub(super) enum Open {
    /// A section, with its contents so far.
    Section(Node),
    /// A true condition: its contents belong to the enclosing section.
    Condition { name: BString, span: Span },
}

impl Open {
    /// The name without `<`.
    pub(super) fn name(&self) -> &[u8] {
        match self {
            Open::Section(node) => &node.name,
            Open::Condition { name, .. } => name,
        }
    }
}

impl Reader<'_> {
    pub(super) fn open_section(&mut self, statement: Statement, streams: &mut Streams) {
        let Statement { name, span, mut args, .. } = statement;
        let name = BString::from(name.strip_prefix(b"<").unwrap_or(&name));
        // As in Apache, text after the last `>` is ignored.
        match args.bytes().rfind_byte(b'>') {
            Some(at) => args.truncate(at),
            None if args.is_empty() => {}
            None => {
                let message = format!("<{name}> directive missing closing '>'");
                self.walk_error(args.whole_span(), message);
            }
        }
        args.trim_end();
        if self.open.len() >= MAX_SECTION_DEPTH {
            let message = format!("<{name}> is nested deeper than {MAX_SECTION_DEPTH} sections");
            self.error(span, message);
            self.skip(streams, &name, span);
            return;
        }
        self.open.push(Open::Section(Node { name, span, args, children: Some(Vec::new()) }));
    }

    pub(super) fn add_directive(&mut self, statement: Statement) {
        let Statement { name, span, args, .. } = statement;
        self.add(Node { name, span, args, children: None });
    }

    /// Handles a closing tag. `tag` is its first word, `line` the whole line.
    pub(super) fn close(&mut self, tag: &BString, line: &Text, base: usize) {
        let span = line.span(2..tag.len().max(2));
        let (name, is_closed) = match tag.strip_suffix(b">") {
            Some(tag) => (tag.get(2..).unwrap_or(&[]), true),
            None => (tag.get(2..).unwrap_or(&[]), false),
        };
        let wanted = self.open.get(base..).and_then(<[Open]>::last);
        let message = match wanted {
            // For a condition the whole line must be the tag, for a section only the first word.
            Some(Open::Condition { name: wanted, .. })
                if is_closed && line.len() == tag.len() && name.eq_ignore_ascii_case(wanted) =>
            {
                None
            }
            Some(Open::Section(_)) if !is_closed => {
                Some(format!("{tag}> directive missing closing '>'"))
            }
            Some(Open::Section(node)) if name.eq_ignore_ascii_case(&node.name) => None,
            Some(Open::Section(node)) => Some(format!("Expected </{}> but saw {tag}", node.name)),
            Some(Open::Condition { .. }) | None => {
                let rest = tag.get(2..).unwrap_or(&[]).as_bstr();
                Some(format!("{tag} without matching <{rest} section"))
            }
        };
        let opened = wanted.map(|open| match open {
            Open::Section(node) => node.span,
            Open::Condition { span, .. } => *span,
        });
        if let Some(message) = message {
            self.error(span, message);
            self.add_opened_at(opened);
        }
        self.recover(name, base);
    }

    /// Closes the innermost section of this name and all sections inside it; ignores a stray tag.
    fn recover(&mut self, name: &[u8], base: usize) {
        let matches = |open: &Open| open.name().eq_ignore_ascii_case(name);
        let open = self.open.get(base..).unwrap_or(&[]);
        if let Some(index) = open.iter().rposition(matches) {
            while self.open.len() > base + index {
                self.close_innermost();
            }
        }
    }

    fn add_opened_at(&mut self, opened: Option<Span>) {
        if let (Some(opened), Some(error)) = (opened, self.diagnostics.last_mut()) {
            error.help =
                Some(format!("the section that is open here starts on line {}", opened.line));
        }
    }

    /// Reports the sections that are open at the end of a text. Apache ignores open conditions.
    pub(super) fn close_all(&mut self, base: usize) {
        while self.open.len() > base {
            match self.open.last() {
                Some(Open::Section(node)) => {
                    let (span, name) = (node.span, node.name.clone());
                    let (file, line) = self.tree.sources.place(span);
                    self.error(span, format!("{file}:{line}: <{name}> was not closed."));
                }
                Some(Open::Condition { name, span }) => {
                    let (span, message) = (*span, format!("<{name}> was not closed."));
                    self.warn(span, "", message);
                }
                None => return,
            }
            self.close_innermost();
        }
    }

    fn close_innermost(&mut self) {
        if let Some(Open::Section(node)) = self.open.pop() {
            self.add(node);
        }
    }

    /// Adds a node to the innermost section or to the tree.
    fn add(&mut self, node: Node) {
        for open in self.open.iter_mut().rev() {
            if let Open::Section(Node { children: Some(children), .. }) = open {
                children.push(node);
                return;
            }
        }
        self.tree.nodes.push(node);
    }

    /// Reports an error that Apache finds only when directives are processed.
    pub(super) fn walk_error(&mut self, span: Span, message: String) {
        let mut error = crate::diag::Diagnostic::error(span, message);
        error.via = self.via.as_slice().into();
        self.diagnostics.push(error);
    }
}
