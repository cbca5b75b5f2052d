//! Apache's `modules/echo`.

pub mod mod_echo;
