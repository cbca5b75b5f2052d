//! `<Macro>`, `Use` and `UndefMacro`: mod_macro.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use super::execute::words;
use super::stream::Streams;
use super::{Reader, Statement};
use crate::source::{FileId, Span};
use crate::text::Text;
use crate::word::{self, Words};

/// Most bytes that all macros of a configuration may expand to.
pub const MAX_EXPANDED_BYTES: usize = 64 * 1024 * 1024;

/// The same for an `.htaccess`, whose authors may not be the server's administrators.
pub const MAX_HTACCESS_EXPANDED_BYTES: usize = 1024 * 1024;

const PREFIXES: &[u8] = b"$%@";

/// The defined macros.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    /// Macros by lower-case name.
    by_name: BTreeMap<BString, Macro>,
    pub(super) ignores_empty_arguments: bool,
    pub(super) ignores_bad_nesting: bool,
    expanded_bytes: usize,
    any_defined: bool,
}

impl Macros {
    /// The same definitions with a fresh limit, for another reading.
    pub(super) fn afresh(&self) -> Macros {
        Macros { expanded_bytes: 0, ..self.clone() }
    }
}

#[derive(Clone, Debug)]
struct Macro {
    /// `on line 2 of "/path"`
    location: String,
    arguments: Vec<BString>,
    lines: Vec<BString>,
}

/// The lines up to `</Macro>`.
struct Body {
    lines: Vec<BString>,
    /// The number of opening tags minus that of closing tags.
    nesting: i64,
    /// The line number of the closing tag.
    end: u32,
    is_complete: bool,
}

impl Reader<'_> {
    /// `<Macro name $argument …>` with its lines. If it has an error, it is read and dropped.
    pub(super) fn define_macro(&mut self, statement: Statement, streams: &mut Streams) {
        let file = streams.file();
        let body = self.macro_body(streams);
        let Some(args) = self.macro_arguments(&statement) else { return };
        let mut words = Words::new(&args);
        let Some(name) = words.next().filter(|name| !name.text.is_empty()) else {
            return self.error(statement.span, "<Macro macro definition: empty name");
        };
        let key = BString::from(name.text.to_ascii_lowercase());
        let location = self.location(file, statement.number);
        let shown = format!("macro '{key}' (defined {location})");
        if let Some(earlier) = self.tree.macros.by_name.get(&key) {
            let message = format!(
                "macro '{key}' multiply defined: defined {}, redefined {location}",
                earlier.location
            );
            self.warn(name.span, "AH02802", message);
        }
        if name.text.first().is_some_and(|byte| PREFIXES.contains(byte)) {
            let message = format!("{shown} better prefix a macro name with any of '$%@'");
            self.warn(name.span, "AH02803", message);
        }
        let arguments: Vec<BString> = words.map(|word| word.text).collect();
        if !self.check_arguments(&shown, &arguments, args.whole_span()) {
            return;
        }
        if !body.is_complete {
            let message = format!("{shown}\n\tcontents error: expected token not found: </Macro>");
            return self.error(statement.span, message);
        }
        self.check_body(&shown, &arguments, &body, &statement);
        let defined = Macro { location, arguments, lines: body.lines };
        self.tree.macros.by_name.insert(key, defined);
        self.tree.macros.any_defined = true;
    }

    /// The text before the closing `>`.
    fn macro_arguments(&mut self, statement: &Statement) -> Option<Text> {
        let mut args = statement.args.clone();
        let Some(end) = args.bytes().rfind_byte(b'>') else {
            if args.is_empty() {
                return Some(args);
            }
            self.error(args.whole_span(), "<Macro> directive missing closing '>'");
            return None;
        };
        let trailing = args.slice(end + 1..args.len());
        if !trailing.bytes().trim_ascii().is_empty() {
            let message = format!(
                "AH02801: non blank chars found after <Macro closing '>' on line {} of {}: {}",
                statement.number,
                self.tree.sources.name(statement.span.file),
                trailing.bytes()
            );
            self.warn(trailing.whole_span(), "AH02989", message);
        }
        args.truncate(end);
        Some(args)
    }

    /// Reads lines verbatim up to this macro's `</Macro>`; macros may nest.
    fn macro_body(&mut self, streams: &mut Streams) -> Body {
        let mut body = Body { lines: Vec::new(), nesting: 0, end: 0, is_complete: false };
        let mut open_macros = 1;
        // Empty lines count in messages, comments do not.
        while let Some(line) = self.next_uncommented(streams) {
            let text = line.text.bytes();
            let (word, _) = word::first_word(text).unwrap_or_default();
            if word.eq_ignore_ascii_case(b"</Macro>") {
                open_macros -= 1;
                if open_macros == 0 {
                    body.end = line.number;
                    body.is_complete = true;
                    return body;
                }
            }
            if word.eq_ignore_ascii_case(b"<Macro") {
                open_macros += 1;
            }
            body.nesting += match (word.starts_with(b"</"), word.starts_with(b"<")) {
                (true, _) => -1,
                (false, true) => 1,
                (false, false) => 0,
            };
            body.lines.push(text.to_owned());
        }
        body
    }

    /// Reports mod_macro's findings about the names. Returns false if the macro is unusable.
    fn check_arguments(&mut self, shown: &str, arguments: &[BString], span: Span) -> bool {
        for (index, name) in arguments.iter().enumerate() {
            let number = index + 1;
            if name.is_empty() {
                self.error(span, format!("{shown}: empty argument #{number} name"));
                return false;
            }
            if name.starts_with(b"${") {
                let message = format!(
                    "{shown} argument name '{name}' (#{number}) clashes with 'Define' syntax \
                     '${{...}}', better use '$(...)'."
                );
                self.warn(span, "AH02805", message);
            }
            if !name.first().is_some_and(|byte| PREFIXES.contains(byte)) {
                let message = format!(
                    "{shown} argument name '{name}' (#{number}) without expected prefix, \
                     better prefix argument names with one of '$%@'."
                );
                self.warn(span, "AH02796", message);
            }
        }
        for (index, name) in arguments.iter().enumerate() {
            for (later, other) in arguments.iter().enumerate().skip(index + 1) {
                if name == other {
                    let message = format!(
                        "argument name conflict in {shown}: argument '{name}': #{} and #{}, \
                         change argument names!",
                        index + 1,
                        later + 1
                    );
                    self.error(span, message);
                    return false;
                }
                if name.starts_with(other) || other.starts_with(name) {
                    let message = format!(
                        "{shown}: argument name prefix conflict ({name} #{} and {other} #{}), \
                         be careful about your macro definition!",
                        index + 1,
                        later + 1
                    );
                    self.warn(span, "AH02797", message);
                }
            }
        }
        true
    }

    fn check_body(
        &mut self,
        shown: &str,
        arguments: &[BString],
        body: &Body,
        statement: &Statement,
    ) {
        let span = statement.span;
        if body.nesting < 0 && !self.tree.macros.ignores_bad_nesting {
            let number = body.end.saturating_sub(statement.number);
            self.warn(
                span,
                "AH02793",
                format!("bad (negative) nesting on line {number} of {shown}"),
            );
        }
        if body.nesting != 0 && !self.tree.macros.ignores_bad_nesting {
            let nesting = body.nesting;
            self.warn(span, "AH02795", format!("bad cumulated nesting ({nesting:+}) in {shown}"));
        }
        if body.lines.is_empty() {
            self.warn(span, "AH02799", format!("{shown}: empty contents!"));
            return;
        }
        for (index, name) in arguments.iter().enumerate() {
            let is_used = body.lines.iter().any(|line| uses(line.as_bstr(), arguments, index));
            if !is_used {
                let message = format!("{shown}: argument '{name}' (#{}) never used", index + 1);
                self.warn(span, "AH02800", message);
            }
        }
    }

    /// `Use name value …`: reading continues in the macro's lines, then here.
    pub(super) fn use_macro(&mut self, statement: &Statement, streams: &mut Streams) {
        if !self.tree.macros.any_defined {
            return self.error(statement.span, "no macro defined before Use");
        }
        let mut values = words(statement).into_iter();
        let Some(name) = values.next().filter(|name| !name.text.is_empty()) else {
            return self.error(statement.span, "no macro name specified with Use");
        };
        let key = BString::from(name.text.to_ascii_lowercase());
        let Some(found) = self.tree.macros.by_name.get(&key).cloned() else {
            let known = self.tree.macros.by_name.keys().filter_map(|known| known.to_str().ok());
            let help = crate::diag::suggest(&key.to_str_lossy(), known)
                .map(|known| format!("did you mean {known}?"));
            self.error(name.span, format!("macro '{key}' undefined"));
            if let Some(error) = self.diagnostics.last_mut() {
                error.help = help;
            }
            return;
        };
        if streams.is_expanding(key.as_bstr()) {
            return self.error(name.span, format!("recursive use of macro '{key}' is invalid"));
        }
        let shown = format!("macro '{key}' (defined {})", found.location);
        let values: Vec<BString> = values.map(|value| value.text).collect();
        if values.len() != found.arguments.len() {
            let (given, wanted) = (values.len(), found.arguments.len());
            let message = format!("{shown} used with {given} arguments instead of {wanted}");
            return self.error(name.span, message);
        }
        let place = self.location(streams.file(), statement.number);
        let place = format!("{shown} used {place}");
        if !self.tree.macros.ignores_empty_arguments {
            for (index, _) in values.iter().enumerate().filter(|(_, value)| value.is_empty()) {
                let message = format!("{place}: empty argument #{}", index + 1);
                self.warn(statement.span, "AH02798", message);
            }
        }
        self.expand(key, &found, &values, place, statement.span, streams);
    }

    fn expand(
        &mut self,
        key: BString,
        found: &Macro,
        values: &[BString],
        place: String,
        span: Span,
        streams: &mut Streams,
    ) {
        let limit = if self.is_htaccess { MAX_HTACCESS_EXPANDED_BYTES } else { MAX_EXPANDED_BYTES };
        let mut text = Vec::new();
        for line in &found.lines {
            substitute(line, &found.arguments, values, &mut text);
            text.push(b'\n');
            if self.tree.macros.expanded_bytes + text.len() > limit {
                return self.error(span, format!("{place}: macros expand to over {limit} bytes"));
            }
        }
        self.tree.macros.expanded_bytes += text.len() + place.len();
        let file = self.tree.sources.add(place, text);
        if let Some(source) = self.tree.sources.get(file) {
            streams.push(key, file, std::sync::Arc::clone(&source.text));
        }
    }

    pub(super) fn undefine_macro(&mut self, statement: &Statement) {
        let message = "UndefMacro takes one argument, Remove a macro definition.";
        let Some(name) = self.only_word(statement, message) else { return };
        if !self.tree.macros.any_defined {
            return self.error(statement.span, "no macro defined before UndefMacro");
        }
        let key = BString::from(name.text.to_ascii_lowercase());
        if self.tree.macros.by_name.remove(&key).is_none() {
            self.error(name.span, format!("cannot remove undefined macro '{key}'"));
        }
    }

    /// `on line 2 of "/path"`
    fn location(&self, file: FileId, number: u32) -> String {
        format!("on line {number} of \"{}\"", self.tree.sources.name(file))
    }
}

/// The argument whose name is at the start of `text`; of several the longest.
fn argument_at(text: &[u8], arguments: &[BString]) -> Option<usize> {
    let matching = arguments.iter().enumerate().filter(|(_, name)| text.starts_with(name));
    matching.max_by_key(|(_, name)| name.len()).map(|(index, _)| index)
}

fn uses(line: &BStr, arguments: &[BString], index: usize) -> bool {
    let mut rest: &[u8] = line;
    while let Some((_, after)) = rest.split_first() {
        match argument_at(rest, arguments) {
            Some(found) if found == index => return true,
            Some(found) => {
                let length = arguments.get(found).map_or(1, |name| name.len());
                rest = rest.get(length..).unwrap_or(&[]);
            }
            None => rest = after,
        }
    }
    false
}

/// Appends the line with names replaced by values; the values of `@names` are quoted. Inserted text
/// is not expanded again.
fn substitute(line: &[u8], arguments: &[BString], values: &[BString], out: &mut Vec<u8>) {
    let mut rest = line;
    while let Some((byte, after)) = rest.split_first() {
        let found = argument_at(rest, arguments)
            .and_then(|index| Some((arguments.get(index)?, values.get(index)?)));
        match found {
            Some((name, value)) => {
                match name.starts_with(b"@") {
                    true => quote(value, out),
                    false => out.extend_from_slice(value),
                }
                rest = rest.get(name.len()..).unwrap_or(&[]);
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
}

fn quote(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
