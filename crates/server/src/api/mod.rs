//! What a module is made of: its directives, its hooks, its filters.

pub mod directive;
pub mod filter;
pub mod hooks;
pub mod missing;
pub mod module;
