//! mod_watchdog.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_watchdog.html>

use server::module::Module;

/// `mod_watchdog.c`
pub struct Watchdog;

impl Module for Watchdog {
    const NAME: &'static str = "watchdog_module";
    const FILE: &'static str = "mod_watchdog.c";
    type Server = ();
    type Dir = ();
}
