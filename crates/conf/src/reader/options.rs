//! What goes into a reading and what comes out.

use std::path::PathBuf;

use bstr::BString;

use super::macros::Macros;
use crate::defines::Defines;
use crate::source::{FileId, Sources};
use crate::tree::Node;

/// How a configuration is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// Lines of `-C`, read before the file.
    pub before: Vec<BString>,
    /// Lines of `-c`, read after the file.
    pub after: Vec<BString>,
    /// Names of `-D`.
    pub defines: Vec<BString>,
    /// ServerRoot until the configuration names one.
    pub server_root: PathBuf,
    /// The version that `IfVersion` compares with.
    pub version: [u32; 3],
}

impl Default for Options {
    /// Nothing beside the file; ServerRoot `/etc/apache2`; version 2.4.71.
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

/// A configuration that was read: conditions decided, files included, macros used.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Directives and sections in the order of reading. What is executed while reading
    /// (`Include`, `Define`, `LoadModule`, conditions, macros, `Error`) is not among them;
    /// `ServerRoot` is.
    pub nodes: Vec<Node>,
    /// All texts; spans point into them.
    pub sources: Sources,
    /// The files in the order of reading.
    pub includes: Vec<Include>,
    /// What is defined at the end.
    pub defines: Defines,
    /// The macros that are left at the end: `.htaccess` files may use them.
    pub macros: Macros,
    /// ServerRoot at the end.
    pub server_root: PathBuf,
    /// A condition asked whether a file is there: another reading may come to something else.
    pub looked_at_files: bool,
}

impl Tree {
    /// Nothing read yet.
    pub(super) fn empty(options: &Options) -> Tree {
        let mut tree = Tree { server_root: options.server_root.clone(), ..Tree::default() };
        for name in &options.defines {
            tree.defines.set(name, None);
        }
        tree
    }

    /// The files that were read, in the layout of `httpd -t -D DUMP_INCLUDES`.
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

    /// What is defined, in the layout of `httpd -t -D DUMP_RUN_CFG`.
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

/// One file that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Include {
    /// The file.
    pub file: FileId,
    /// The line of the last `Include` before it, as Apache shows it; `None` before the first.
    pub line: Option<u32>,
    /// How many `Include`s led to it; 0 for the main file.
    pub depth: usize,
}
