//! Apache's `modules/debugging`.

pub mod mod_dumpio;
