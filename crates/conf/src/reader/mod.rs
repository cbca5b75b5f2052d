//! Reads configuration files in Apache's order, and executes what Apache executes while reading.
//!
//! Apache's own reader is `ap_build_config`; it executes the directives with `EXEC_ON_READ`. Unlike
//! Apache this one continues after an error, to report all of them.

mod condition;
mod execute;
mod host;
mod include;
mod macros;
mod options;
mod section;
mod stream;
mod version;

pub use host::Host;
pub use include::{MAX_DIRECTORY_DEPTH, MAX_FILE_BYTES, MAX_INCLUDE_DEPTH};
pub use macros::{MAX_EXPANDED_BYTES, MAX_HTACCESS_EXPANDED_BYTES, Macros};
pub use options::{Include, Options, Tree};
pub use section::MAX_SECTION_DEPTH;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use bstr::BString;

use crate::defines::Defines;
use crate::diag::{COMMAND_LINE_SOURCE, Diagnostic};
use crate::lines::Line;
use crate::resolve::resolve;
use crate::source::{FileId, Sources, Span};
use crate::text::Text;
use crate::word;
use section::Open;
use stream::Streams;

/// Most findings before reading ends.
pub const MAX_FINDINGS: usize = 1000;

/// Reads the file at `path`, between the lines of `-C` and those of `-c`.
///
/// If there are errors among the findings, the tree is incomplete and must not be used.
pub fn read_config(path: &Path, options: &Options, host: &mut dyn Host) -> (Tree, Vec<Diagnostic>) {
    let mut reader = Reader::new(host, Tree::empty(options), options.version);
    reader.read_command_line(&options.before);
    reader.read_main(path);
    reader.read_command_line(&options.after);
    (reader.tree, reader.diagnostics)
}

/// Reads the text of an `.htaccess` file; `name` is its path. `Include` and `Define` are not
/// allowed; conditions and macros are.
///
/// `defines` and `macros` are those of the server; definitions in the text are local to it.
pub fn read_htaccess(
    text: &[u8],
    name: &Path,
    host: &mut dyn Host,
    defines: &Defines,
    macros: &Macros,
    server_root: &Path,
) -> (Tree, Vec<Diagnostic>) {
    let (defines, macros) = (defines.clone(), macros.afresh());
    let sources = Sources::numbered_from(host.first_file());
    let tree =
        Tree { defines, macros, server_root: server_root.into(), sources, ..Tree::default() };
    let mut reader = Reader::new(host, tree, Options::default().version);
    reader.is_htaccess = true;
    let file = reader.tree.sources.add(name.as_os_str().as_bytes(), text);
    reader.read_source(file);
    (reader.tree, reader.diagnostics)
}

/// The state of a reading.
struct Reader<'h> {
    host: &'h mut dyn Host,
    tree: Tree,
    diagnostics: Vec<Diagnostic>,
    /// Open sections and true conditions, the outermost first.
    open: Vec<Open>,
    version: [u32; 3],
    is_htaccess: bool,
    /// The `Include` lines that led here.
    via: Vec<Span>,
    /// The line of the last `Include`, for the list of files.
    last_include: Option<u32>,
}

/// A line other than a closing tag, split into name and arguments.
struct Statement {
    /// The name, with `<` if it opens a section.
    name: BString,
    /// The position of the name, without `<`.
    span: Span,
    /// The rest, including a section's last `>`.
    args: Text,
    /// The line number as Apache counts it.
    number: u32,
}

impl<'h> Reader<'h> {
    fn new(host: &'h mut dyn Host, tree: Tree, version: [u32; 3]) -> Reader<'h> {
        Reader {
            host,
            tree,
            diagnostics: Vec::new(),
            open: Vec::new(),
            version,
            is_htaccess: false,
            via: Vec::new(),
            last_include: None,
        }
    }

    fn read_command_line(&mut self, lines: &[BString]) {
        if !lines.is_empty() {
            let file = self.tree.sources.add(COMMAND_LINE_SOURCE, bstr::join("\n", lines));
            self.read_source(file);
        }
    }

    /// Reads a text to its end. Sections that it opens must be closed in it.
    fn read_source(&mut self, file: FileId) {
        let Some(source) = self.tree.sources.get(file) else { return };
        let mut streams = Streams::new(file, Arc::clone(&source.text));
        let base = self.open.len();
        while let Some(line) = self.next_line(&mut streams) {
            if self.is_full() {
                break;
            }
            self.line(line, &mut streams, base);
        }
        self.close_all(base);
    }

    /// The next line that is neither empty nor a comment.
    fn next_line(&mut self, streams: &mut Streams) -> Option<Line> {
        loop {
            let line = self.next_uncommented(streams)?;
            if !line.text.is_empty() {
                return Some(line);
            }
        }
    }

    /// The next line that is not a comment.
    fn next_uncommented(&mut self, streams: &mut Streams) -> Option<Line> {
        loop {
            let file = streams.file();
            let line = match streams.next()? {
                Ok(line) => line,
                Err(too_long) => {
                    let name = self.tree.sources.name(file).to_owned();
                    let number = too_long.number;
                    let why = format!("Error reading {name} at line {number}: Line too long");
                    // As in Apache, the locations are the `Include`s that led here.
                    match self.via.pop() {
                        Some(by) => {
                            self.error(by, why);
                            self.via.push(by);
                        }
                        None => self.error(Span { file, line: number, column: 1, length: 0 }, why),
                    }
                    continue;
                }
            };
            if line.cut_at_nul {
                let message = "The line holds a NUL byte; what follows it is ignored";
                self.warn(line.text.whole_span(), "", message);
            }
            if !line.text.bytes().starts_with(b"#") {
                return Some(line);
            }
        }
    }

    fn line(&mut self, line: Line, streams: &mut Streams, base: usize) {
        let text = self.resolved(&line.text);
        let Some((name, length)) = word::first_word(text.bytes()) else { return };
        if name.starts_with(b"</") {
            self.close(&name, &text, base);
            return;
        }
        let mut name = name;
        if name.ends_with(b">") {
            name.pop();
        }
        let start = usize::from(text.bytes().starts_with(b"<"));
        let end = (start + name.len().saturating_sub(start)).clamp(start, length.max(start));
        let span = text.span(start..end);
        let rest = text.bytes().get(length..).unwrap_or(&[]);
        let args = text.slice(length + word::blanks(rest)..text.len());
        self.statement(Statement { name, span, args, number: line.number }, streams);
    }

    fn statement(&mut self, statement: Statement, streams: &mut Streams) {
        match execute::Executed::by_name(&statement.name, self.host) {
            Some(executed) => self.execute(executed, statement, streams),
            None if statement.name.starts_with(b"<") => self.open_section(statement, streams),
            None => self.add_directive(statement),
        }
    }

    /// Replaces `${NAME}` in the whole line, before it is split, and warns about unknown names.
    fn resolved(&mut self, text: &Text) -> Text {
        let (text, undefined) = resolve(text, &self.tree.defines);
        for missing in undefined {
            let message = format!("Config variable ${{{}}} is not defined", missing.name);
            self.warn(missing.span, "AH00111", message);
        }
        text
    }

    /// Whether there are so many findings that reading ends.
    fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_FINDINGS
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        let via = self.via.as_slice().into();
        self.diagnostics.push(Diagnostic { code: "", via, ..Diagnostic::error(span, message) });
    }

    fn warn(&mut self, span: Span, code: &'static str, message: impl Into<String>) {
        let via = self.via.as_slice().into();
        self.diagnostics.push(Diagnostic { via, ..Diagnostic::warning(span, code, message) });
    }
}

#[cfg(test)]
mod tests;
