//! Apache's `modules/core`.

pub mod mod_macro;
pub mod mod_so;
pub mod mod_watchdog;
