//! `Include` and `IncludeOptional`: files, directories and wildcards.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::execute::words;
use super::options::Include;
use super::{Reader, Statement};
use crate::diag::Diagnostic;
use crate::fnmatch::{self, fnmatch, has_wildcard};
use crate::source::Span;
use crate::values::relative_to;

/// Most nested `Include`s; Apache's `AP_MAX_INCLUDE_DEPTH`.
pub const MAX_INCLUDE_DEPTH: usize = 128;
/// Deepest nesting of included directories; Apache's `AP_MAX_INCLUDE_DIR_DEPTH`.
pub const MAX_DIRECTORY_DEPTH: usize = 20;
/// Most bytes of a configuration file.
pub const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

const TAKES_ONE: [&str; 2] = [
    "Include takes one argument, Name(s) of the config file(s) to be included; fails if the \
     wildcard does not match at least one file",
    "IncludeOptional takes one argument, Name or pattern of the config file(s) to be included; \
     ignored if the file does not exist or the pattern does not match any files",
];

impl Reader<'_> {
    pub(super) fn include(&mut self, statement: &Statement, optional: bool) {
        let words = words(statement);
        let [name] = words.as_slice() else {
            let [required, of_optional] = TAKES_ONE;
            return self.error(statement.span, if optional { of_optional } else { required });
        };
        if name.text.is_empty() {
            let [required, of_optional] = TAKES_ONE;
            return self.error(statement.span, if optional { of_optional } else { required });
        }
        let Some(path) = relative_to(&self.tree.server_root, &name.text) else {
            return self.error(name.span, format!("Invalid Include path {}", name.text));
        };
        if self.via.len() >= MAX_INCLUDE_DEPTH {
            let message = format!(
                "Exceeded maximum include depth of {MAX_INCLUDE_DEPTH}, \
                 There appears to be a recursion."
            );
            return self.error(name.span, message);
        }
        self.last_include = Some(statement.number);
        let at = IncludeAt { span: name.span, optional };
        let path_bytes = path.as_os_str().as_bytes();
        if has_wildcard(path_bytes) {
            let parts: Vec<&[u8]> = path_bytes.split(|byte| *byte == b'/').skip(1).collect();
            self.include_matching(Path::new("/"), &parts, at);
        } else {
            self.include_path(&path, at, 0);
        }
    }

    /// Reads the main file: like an `Include` without a line.
    pub(super) fn read_main(&mut self, path: &Path) {
        let main = match relative_to(&self.tree.server_root, path.as_os_str().as_bytes()) {
            Some(path) => path,
            None => path.to_owned(),
        };
        match read_file(&main) {
            Ok(text) => self.read_included(&main, text, None),
            Err(error) => {
                self.tell_irregular(&main, &error);
                let message = cannot_open("file", &main, &error);
                let error = Diagnostic::without_place(message);
                self.diagnostics.push(Diagnostic { code: "", ..error });
            }
        }
    }

    /// Includes a path with wildcards in some of `parts`, which are relative to `root`.
    fn include_matching(&mut self, root: &Path, parts: &[&[u8]], at: IncludeAt) {
        let Some((pattern, rest)) = parts.split_first() else {
            return self.include_path(root, at, 0);
        };
        if !has_wildcard(pattern) {
            let next = root.join(OsStr::from_bytes(pattern));
            return self.include_matching(&next, rest, at);
        }
        let names = match sorted_names(root) {
            Ok(names) => names,
            Err(_) if at.optional => return,
            Err(error) => {
                let message = format!(
                    "Include/IncludeOptional: Could not open directory {}: {}",
                    root.display(),
                    plain(&error)
                );
                return self.error(at.span, message);
            }
        };
        let flags = fnmatch::Flags { period: true, ..fnmatch::Flags::default() };
        let mut found = false;
        for name in names.iter().filter(|name| fnmatch(pattern, name, flags)) {
            let path = root.join(OsStr::from_bytes(name));
            if rest.is_empty() || path.is_dir() {
                found = true;
                self.include_matching(&path, rest, at);
            }
        }
        if !found && !at.optional {
            let message = format!(
                "Include/IncludeOptional: No matches for the wildcard '{}' in '{}', failing",
                String::from_utf8_lossy(pattern),
                root.display()
            );
            self.error(at.span, message);
        }
    }

    /// Includes a file, or all files of a directory, sorted by name.
    fn include_path(&mut self, path: &Path, at: IncludeAt, depth: usize) {
        if self.is_full() {
            return;
        }
        if path.is_dir() {
            return self.include_directory(path, at, depth + 1);
        }
        match read_file(path) {
            Ok(text) => self.read_included(path, text, Some(at.span)),
            Err(error) if at.optional && is_missing(&error) => {}
            Err(error) => {
                self.tell_irregular(path, &error);
                self.error(at.span, cannot_open("file", path, &error));
            }
        }
    }

    fn tell_irregular(&mut self, path: &Path, error: &io::Error) {
        if error.raw_os_error() == Some(regular::NOT_REGULAR.raw_os_error()) {
            let path = path.display();
            let why = format!("Access to file {path} denied by server: not a regular file");
            self.warn(Span::default(), "AH00554", why);
        }
    }

    fn include_directory(&mut self, path: &Path, at: IncludeAt, depth: usize) {
        if depth > MAX_DIRECTORY_DEPTH {
            let message = format!(
                "Directory {} exceeds the maximum include directory nesting level of \
                 {MAX_DIRECTORY_DEPTH}. You have probably a recursion somewhere.",
                path.display()
            );
            return self.error(at.span, message);
        }
        match sorted_names(path) {
            Ok(names) => {
                for name in names {
                    self.include_path(&path.join(OsStr::from_bytes(&name)), at, depth);
                }
            }
            Err(error) => self.error(at.span, cannot_open("directory", path, &error)),
        }
    }

    fn read_included(&mut self, path: &Path, text: Vec<u8>, by: Option<Span>) {
        let file = self.tree.sources.add(path.as_os_str().as_bytes(), text);
        let by = by.filter(|span| *span != Span::default());
        self.via.extend(by);
        let (line, depth) = (self.last_include, self.via.len());
        self.tree.includes.push(Include { file, line, depth });
        self.read_source(file);
        if by.is_some() {
            self.via.pop();
        }
    }
}

/// The directive that includes files.
#[derive(Clone, Copy)]
struct IncludeAt {
    span: Span,
    optional: bool,
}

/// Reads a regular file or /dev/null; `ap_pcfg_openfile` refuses others as well.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    regular::read(path, MAX_FILE_BYTES)
}

fn sorted_names(directory: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().into_vec());
    }
    names.sort_unstable();
    Ok(names)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn cannot_open(what: &str, path: &Path, error: &io::Error) -> String {
    format!("Could not open configuration {what} {}: {}", path.display(), plain(error))
        .replace("configuration directory", "config directory")
}

/// The system's message, without Rust's `(os error 2)`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
