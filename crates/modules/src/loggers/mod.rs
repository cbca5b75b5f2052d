//! Apache's `modules/loggers`.

pub mod mod_log_config;
pub mod mod_logio;
