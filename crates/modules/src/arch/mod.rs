//! Apache's `modules/arch/unix`.

pub mod mod_unixd;
