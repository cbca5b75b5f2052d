//! Apache's `modules/loggers`.

pub mod mod_log_config;
pub mod mod_log_debug;
pub mod mod_log_forensic;
pub mod mod_logio;
