//! Apache's `modules/ssl`.

pub mod mod_ssl;
