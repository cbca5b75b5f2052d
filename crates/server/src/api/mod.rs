//! The parts of a module: its directives, hooks, and filters.

pub mod directive;
pub mod filter;
pub mod hooks;
pub mod missing;
pub mod module;
pub mod unprovided;
