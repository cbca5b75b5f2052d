//! What the file system says, and whether it still does.

pub mod contents;
pub mod mirror;
pub mod path;
pub mod validity;
