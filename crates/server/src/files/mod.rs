//! Access to the file system, and its caches.

pub mod contents;
mod info;
pub mod mirror;
pub mod path;
pub mod validity;

pub use info::{FileInfo, FileKind};
