//! What goes into a reading and what comes out.

use std::path::PathBuf;

use bstr::BString;

use crate::defines::Defines;
use crate::source::{FileId, Sources, Span};
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
    /// (`Include`, `Define`, `LoadModule`, conditions, macros) is not among them; `ServerRoot` is.
    pub nodes: Vec<Node>,
    /// All texts; spans point into them.
    pub sources: Sources,
    /// The files in the order of reading, each with who included it.
    pub includes: Vec<Include>,
    /// What is defined at the end.
    pub defines: Defines,
    /// ServerRoot at the end.
    pub server_root: PathBuf,
}

impl Tree {
    /// Nothing read yet.
    pub(crate) fn empty(options: &Options) -> Tree {
        let mut tree = Tree { server_root: options.server_root.clone(), ..Tree::default() };
        for name in &options.defines {
            tree.defines.set(name, None);
        }
        tree
    }
}

/// One file that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Include {
    /// The file.
    pub file: FileId,
    /// The `Include` directive; `None` for the main file.
    pub by: Option<Span>,
}
