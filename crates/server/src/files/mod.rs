//! Access to the file system, and its caches.

pub mod contents;
pub mod mirror;
pub mod path;
pub mod validity;
