//! Apache's `modules/mappers`.

pub mod mod_alias;
pub mod mod_dir;
pub mod mod_negotiation;
