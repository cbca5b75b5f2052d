//! mod_log_config.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_log_config.html>

use server::module::Module;

/// `mod_log_config.c`
pub struct LogConfig;

impl Module for LogConfig {
    const NAME: &'static str = "log_config_module";
    const FILE: &'static str = "mod_log_config.c";
    type Server = ();
    type Dir = ();
}
