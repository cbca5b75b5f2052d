//! Builds a [`host::Server`] from directives: read at startup, merged, and shared by all loops.

pub mod budget;
pub mod build;
pub mod canonical;
pub mod context;
pub mod core;
mod hint;
pub mod host;
pub mod registry;
pub mod section;
mod server_root;
mod variable_mentions;
pub mod version;
pub mod vhost;
pub mod within;
