//! Apache's `modules/database`.

pub mod mod_dbd;
