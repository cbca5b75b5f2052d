//! `IfDefine`, `IfModule`, `IfFile`, `IfDirective`, `IfSection`, and skipping sections whose
//! condition is false.

use bstr::{BString, ByteSlice};

use super::section::Open;
use super::stream::Streams;
use super::{Reader, Statement};
use crate::source::Span;
use crate::tree::Arg;
use crate::values::relative_to;
use crate::word::{self, Words};

/// The kind of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Define,
    Module,
    File,
    Directive,
    Section,
    Version,
}

impl Reader<'_> {
    /// Evaluates a condition: its section is read or skipped unparsed.
    pub(super) fn condition(
        &mut self,
        condition: Condition,
        statement: Statement,
        streams: &mut Streams,
    ) {
        let name = statement.section_name();
        let is_true = match condition {
            Condition::Version => self.version_condition(&statement),
            _ => self.simple_condition(condition, &statement),
        };
        if is_true {
            self.open.push(Open::Condition { name, span: statement.span });
        } else {
            self.skip(streams, &name, statement.span);
        }
    }

    /// Evaluates a condition of one word with an optional `!`. An invalid one is reported and
    /// false.
    fn simple_condition(&mut self, condition: Condition, statement: &Statement) -> bool {
        let mut args = statement.args.clone();
        let name = statement.section_name();
        match args.bytes().rfind_byte(b'>') {
            Some(at) => args.truncate(at),
            None if args.is_empty() => {}
            None => {
                self.error(args.whole_span(), format!("<{name}> directive missing closing '>'"));
                return false;
            }
        }
        let negated = args.bytes().starts_with(b"!");
        let args = args.slice(usize::from(negated)..args.len());
        let Some(word) = Words::new(&args).next().filter(|word| !word.text.is_empty()) else {
            let message = format!("<{name}> directive requires additional arguments");
            self.error(statement.span, message);
            return false;
        };
        self.holds(condition, &word) != negated
    }

    fn holds(&mut self, condition: Condition, word: &Arg) -> bool {
        let text = word.text.as_bstr();
        match condition {
            Condition::Define => self.tree.defines.contains(text),
            Condition::Module => self.host.module_active(text),
            Condition::File => {
                self.tree.looked_at_files = true;
                relative_to(&self.tree.server_root, text).is_some_and(|path| path.exists())
            }
            Condition::Directive => self.host.directive_known(text),
            Condition::Section => {
                let mut section = BString::from("<");
                section.extend_from_slice(text);
                self.host.directive_known(section.as_bstr())
            }
            Condition::Version => false,
        }
    }

    /// Reads up to the closing tag. Only tags are examined; they must match each other.
    ///
    /// Source: `ap_soak_end_container`.
    pub(super) fn skip(&mut self, streams: &mut Streams, name: &BString, opened: Span) {
        let mut open = vec![name.clone()];
        while let Some(line) = self.next_line(streams) {
            let Some((word, _)) = word::first_word(line.text.bytes()) else { continue };
            if let Some(tag) = word.strip_prefix(b"</") {
                self.close_skipped(&mut open, tag, opened);
                if open.is_empty() {
                    return;
                }
            } else if let Some(tag) = word.strip_prefix(b"<") {
                open.push(tag.strip_suffix(b">").unwrap_or(tag).into());
            }
        }
        let name = open.last().unwrap_or(name);
        self.error(opened, format!("Expected </{name}> before end of configuration"));
    }

    /// As in Apache, a wrong tag is reported at the condition.
    fn close_skipped(&mut self, open: &mut Vec<BString>, tag: &[u8], opened: Span) {
        // As in Apache, the last letter is dropped, whatever it is.
        let name = tag.split_last().map_or(tag, |(_, name)| name);
        let Some(innermost) = open.last() else { return };
        if name.eq_ignore_ascii_case(innermost) {
            open.pop();
            return;
        }
        self.error(opened, format!("Expected </{innermost}> but saw </{}>", name.as_bstr()));
        if let Some(index) = open.iter().rposition(|other| other.eq_ignore_ascii_case(name)) {
            open.truncate(index);
        }
    }
}
