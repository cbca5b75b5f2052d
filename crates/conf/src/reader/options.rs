//! The inputs and outputs of a reading.

use std::path::PathBuf;

use bstr::BString;

use super::macros::Macros;
use crate::defines::Defines;
use crate::source::{FileId, Sources};
use crate::tree::Node;

/// Options of a reading.
#[derive(Clone, Debug)]
pub struct Options {
    /// The lines of `-C`, read before the file.
    pub before: Vec<BString>,
    /// The lines of `-c`, read after the file.
    pub after: Vec<BString>,
    /// The names of `-D`.
    pub defines: Vec<BString>,
    /// ServerRoot until the configuration sets it.
    pub server_root: PathBuf,
    /// The version for `IfVersion`.
    pub version: [u32; 3],
}

impl Default for Options {
    /// No additions to the file; ServerRoot `/etc/apache2`; version 2.4.71.
    fn default() -> Options {
        Options {
            before: Vec::new(),
            after: Vec::new(),
            defines: Vec::new(),
            server_root: PathBuf::from("/etc/apache2"),
            version: [2, 4, 71],
        }
    }
}

/// A configuration: conditions evaluated, files included, macros expanded.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Directives and sections in the order of reading. Those executed while reading (`Include`,
    /// `Define`, `LoadModule`, conditions, macros, `Error`) are left out, except `ServerRoot`.
    pub nodes: Vec<Node>,
    /// All texts; spans refer to them.
    pub sources: Sources,
    /// The files in the order of reading.
    pub includes: Vec<Include>,
    /// The definitions at the end.
    pub defines: Defines,
    /// The macros at the end, which `.htaccess` files may use.
    pub macros: Macros,
    /// ServerRoot at the end.
    pub server_root: PathBuf,
    /// Whether a condition tested for a file, so that another reading may differ.
    pub looked_at_files: bool,
}

impl Tree {
    /// Returns the state before reading.
    pub(super) fn empty(options: &Options) -> Tree {
        let mut tree = Tree { server_root: options.server_root.clone(), ..Tree::default() };
        for name in &options.defines {
            tree.defines.set(name, None);
        }
        tree
    }

    /// Formats the list of files as `httpd -t -D DUMP_INCLUDES`.
    pub fn dump_includes(&self) -> Vec<u8> {
        let mut out = b"Included configuration files:\n".to_vec();
        for include in &self.includes {
            out.extend(std::iter::repeat_n(b' ', 2 * (include.depth + 1)));
            match include.line {
                Some(line) => out.extend_from_slice(format!("({line}) ").as_bytes()),
                None => out.extend_from_slice(b"(*) "),
            }
            out.extend_from_slice(self.sources.name(include.file));
            out.push(b'\n');
        }
        out
    }

    /// Formats the definitions as `httpd -t -D DUMP_RUN_CFG`.
    pub fn dump_defines(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in self.defines.iter() {
            out.extend_from_slice(b"Define: ");
            out.extend_from_slice(name);
            if let Some(value) = value {
                out.push(b'=');
                out.extend_from_slice(value);
            }
            out.push(b'\n');
        }
        out
    }
}

/// A file that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Include {
    /// The file.
    pub file: FileId,
    /// The line of the last `Include` before it, as Apache shows it; `None` before the first.
    pub line: Option<u32>,
    /// The number of nested `Include`s; 0 for the main file.
    pub depth: usize,
}
