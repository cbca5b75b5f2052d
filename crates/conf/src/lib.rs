//! The configuration language: text becomes a tree, the tree becomes typed values, all with spans.
//!
//! [`reader::read_config`] reads Apache's files as Apache does and returns a [`tree::Node`] per
//! directive; [`values`] and [`expr`] give arguments their types. This crate knows no HTTP, opens
//! no sockets, and reads only the files that a configuration includes.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod defines;
pub mod diag;
pub mod expr;
pub mod fnmatch;
pub mod lines;
pub mod reader;
mod render;
pub mod resolve;
pub mod source;
pub mod text;
pub mod tree;
pub mod values;
pub mod word;

pub use bstr::{BStr, BString};
pub use defines::Defines;
pub use diag::{Diagnostic, Severity, suggest};
pub use reader::{Host, Macros, Options, Tree, read_config, read_htaccess};
pub use source::{FileId, Source, Sources, Span};
pub use text::Text;
pub use tree::{Arg, Node};
